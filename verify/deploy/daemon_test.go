package deploy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
)

// daemon is a running csi-proxy-sim, which takes the flags of csi-proxy.
type daemon struct {
	process *exec.Cmd
	// The address of its status pages, such as 127.0.0.1:9818.
	address string
	// The addresses of its metrics.
	metrics []string
	// The folder of its sockets.
	sockets string
}

// start starts the program that the environment names, and waits until it serves.
func start(t *testing.T, arguments ...string) daemon {
	t.Helper()
	return startIn(t, nil, arguments...)
}

// startIn starts the program by a command that ends with it, as `start` does.
func startIn(t *testing.T, command []string, arguments ...string) daemon {
	t.Helper()
	program := os.Getenv("CSI_PROXY_SIM")
	if program == "" {
		t.Skip("CSI_PROXY_SIM does not name csi-proxy-sim; `cargo xtask test deploy` builds it")
	}
	// The path of a socket must be short, and t.TempDir has the name of the test in its path.
	folder, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	sockets := filepath.Join(folder, "sockets")
	command = append(append(command, program), append(arguments, "-socket-folder="+sockets)...)
	process := exec.Command(command[0], command[1:]...)
	log := new(bytes.Buffer)
	process.Stderr = log
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
		if t.Failed() {
			t.Logf("csi-proxy-sim %v:\n%s", process.Args[1:], log)
		}
	})
	started := daemon{process: process, sockets: sockets}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if address, ok := strings.CutPrefix(line, "metrics at http://"); ok {
			started.metrics = append(started.metrics, strings.TrimSuffix(address, "/metrics"))
		}
		if address, ok := strings.CutPrefix(line, "status at http://"); ok {
			started.address, _, _ = strings.Cut(address, "/")
		}
		if strings.HasPrefix(line, "Press Ctrl-C") {
			go io.Copy(io.Discard, output)
			return started
		}
	}
	t.Fatalf("the daemon has ended: csi-proxy-sim %v", process.Args[1:])
	return daemon{}
}

// get returns the body of a response with the status OK.
func (d daemon) get(t *testing.T, path string) string {
	t.Helper()
	code, body := ask(t, d.address, path, "")
	if code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, code, body)
	}
	return body
}

// metric returns the value of a metric without labels.
func (d daemon) metric(t *testing.T, name string) int64 {
	t.Helper()
	for line := range strings.Lines(d.get(t, "/metrics")) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatal(err)
			}
			return int64(value)
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// ask returns the status code and the body of a response. A request that a proxy forwards names its client.
func ask(t *testing.T, address, path, client string) (int, string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if client != "" {
		request.Header.Set("X-Forwarded-For", client)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// waitForProbe asks until the daemon answers with the status OK, as kubelet does: a daemon that has just opened its pipes may
// not accept connections yet.
func (d daemon) waitForProbe(t *testing.T, path string) {
	t.Helper()
	var last string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		response, err := http.Get("http://" + d.address + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
		last = response.Status
	}
	t.Fatalf("%s: %s for a minute", path, last)
}

// nodeAddress returns an address of this machine that is not a loopback address, which stands for the address of a node.
func nodeAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil && !network.IP.IsLoopback() {
			return network.IP.String()
		}
	}
	t.Skip("this machine has only loopback addresses")
	return ""
}

// arguments returns the arguments of the container as kubelet expands them on a node with this address. The port is any free
// one, since the tests share a machine.
func arguments(t *testing.T, container core.Container, node string) []string {
	t.Helper()
	var expanded []string
	for _, argument := range container.Args {
		for _, variable := range container.Env {
			value := variable.Value
			if variable.ValueFrom != nil {
				value = node
			}
			argument = strings.ReplaceAll(argument, "$("+variable.Name+")", value)
		}
		if strings.Contains(argument, "$(") {
			t.Errorf("%s has an unknown variable", argument)
		}
		if strings.HasPrefix(argument, "-metrics-bind-address=") {
			argument = strings.Replace(argument, ":"+container.LivenessProbe.HTTPGet.Port.String(), ":0", 1)
		}
		expanded = append(expanded, argument)
	}
	return expanded
}

// The daemon starts with the arguments of each rendering, serves all pipes, and answers what kubelet asks.
func TestTheDaemonStartsAndAnswersTheProbesOfEveryRendering(t *testing.T) {
	node := nodeAddress(t)
	tested := map[string]bool{}
	for name, objects := range renderings(t) {
		container := only[*apps.DaemonSet](t, objects).Spec.Template.Spec.Containers[0]
		expanded := arguments(t, container, node)
		key := fmt.Sprint(expanded, container.LivenessProbe.HTTPGet.Path)
		if tested[key] {
			continue
		}
		tested[key] = true
		t.Run(name, func(t *testing.T) {
			daemon := start(t, expanded...)
			for _, probe := range []*core.Probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
				daemon.waitForProbe(t, probe.HTTPGet.Path)
				expect(t, probe.HTTPGet.Path, daemon.get(t, probe.HTTPGet.Path), "ok\n")
			}
			pattern := daemon.sockets + "/csi-proxy-*.sock"
			if runtime.GOOS == "windows" {
				pattern = `\\.\pipe\csi-proxy-*`
			}
			endpoints, err := filepath.Glob(pattern)
			if wanted := pipesOf(t, expanded); err != nil || len(endpoints) != wanted {
				t.Errorf("%d endpoints, not %d: %v", len(endpoints), wanted, err)
			}
			daemon.showsItsStatusOnlyToTheNode(t, node)
		})
	}
}

// showsItsStatusOnlyToTheNode checks what kubectl port-forward and csi-proxyctl top read at 127.0.0.1, and what Prometheus reads at
// the address of the node, if the daemon listens there.
func (d daemon) showsItsStatusOnlyToTheNode(t *testing.T, node string) {
	t.Helper()
	_, port, err := net.SplitHostPort(d.address)
	if err != nil {
		t.Fatalf("%s: %v", d.address, err)
	}
	isAtNode := false
	for _, address := range d.metrics {
		isAtNode = isAtNode || address == net.JoinHostPort(node, port)
		for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
			if code, _ := ask(t, address, path, "10.0.0.7"); code != http.StatusOK {
				t.Errorf("%s%s: %d", address, path, code)
			}
		}
	}
	for _, path := range []string{"/", "/statusz", "/flagz"} {
		d.get(t, path)
		if code, _ := ask(t, d.address, path, "10.0.0.7"); code != http.StatusForbidden {
			t.Errorf("%s through a proxy: %d", path, code)
		}
		if isAtNode {
			if code, _ := ask(t, net.JoinHostPort(node, port), path, ""); code != http.StatusForbidden {
				t.Errorf("%s at the address of the node: %d", path, code)
			}
		}
	}
	expect(t, "listens at the address of the node", isAtNode, strings.Contains(d.get(t, "/flagz"), "metrics-bind-address="+node))
	program := os.Getenv("CSI_PROXYCTL")
	if program == "" || runtime.GOOS == "windows" {
		t.Log("csi-proxyctl top was not run")
		return
	}
	top, err := exec.Command(program, "--endpoint-dir", d.sockets, "top", "--address", d.address).CombinedOutput()
	if err != nil || !strings.Contains(string(top), "Endpoints: "+d.sockets) {
		t.Errorf("csi-proxyctl top: %v\n%s", err, top)
	}
}

// pipesOf returns how many pipes a daemon with these arguments serves: one for each version of a group, which has a folder.
func pipesOf(t *testing.T, arguments []string) int {
	t.Helper()
	groups := []string{"*"}
	for _, argument := range arguments {
		if listed, ok := strings.CutPrefix(argument, "-api-groups="); ok {
			groups = strings.Split(listed, ",")
		}
	}
	count := 0
	for _, group := range groups {
		versions, err := filepath.Glob(root + "/crates/api/proto/" + group + "/*/api.proto")
		if err != nil {
			t.Fatal(err)
		}
		count += len(versions)
	}
	return count
}
