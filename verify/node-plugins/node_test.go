package nodeplugins

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volume "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// plugins returns the programs of the plugins under test by their names, or skips the test.
func plugins(t *testing.T) map[string]string {
	t.Helper()
	if os.Getenv("CSI_PROXY_SIM") == "" || os.Getenv("CSI_NODE_PLUGINS") == "" {
		t.Skip("CSI_PROXY_SIM and CSI_NODE_PLUGINS name no programs; `cargo xtask test go` builds them")
	}
	programs := map[string]string{}
	for _, plugin := range strings.Split(os.Getenv("CSI_NODE_PLUGINS"), ",") {
		name, program, _ := strings.Cut(plugin, "=")
		programs[name] = program
	}
	return programs
}

// started has what a test needs of a simulated node on which a plugin runs.
type started struct {
	// The address of the plugin for gRPC.
	address string
	// The plugin's socket for CSI and the one for its registration.
	csi, registration string
	// Clients of csi-proxy-sim, for kubelet's part; nil under Wine, where csi-proxy-sim serves pipes.
	disks      disk.DiskClient
	files      filesystem.FilesystemClient
	volumes    volume.VolumeClient
	simulation *simulation
}

// isUnderWine tells whether a plugin is the address of one that `cargo xtask test go` has started under Wine.
func isUnderWine(plugin string) bool {
	return strings.HasPrefix(plugin, "dns:")
}

// start starts a simulated node, with these flags of csi-proxy-sim, and a plugin on it, and waits until the plugin is ready.
func start(t *testing.T, plugin string, flags ...string) started {
	t.Helper()
	if isUnderWine(plugin) {
		waitUntilReady(t, plugin)
		return started{address: plugin}
	}
	sockets, folder := serveNode(t, flags)
	node := started{csi: filepath.Join(folder, "csi.sock"), registration: filepath.Join(folder, "example-reg.sock")}
	output := run(t, plugin, "--endpoint=unix://"+node.csi, "--node-id=node-1", "--csi-proxy-sockets="+sockets,
		"--registration-socket="+node.registration, "--kubelet-registration-path="+node.csi)
	go io.Copy(io.Discard, output)
	group := func(name string) *grpc.ClientConn {
		return connect(t, "unix:"+filepath.Join(sockets, "csi-proxy-"+name+"-v1.sock"))
	}
	node.disks = disk.NewDiskClient(group("disk"))
	node.files = filesystem.NewFilesystemClient(group("filesystem"))
	node.volumes = volume.NewVolumeClient(group("volume"))
	node.simulation = connectSimulation(t, sockets)
	node.address = "unix:" + node.csi
	waitUntilReady(t, node.address)
	return node
}

// serveNode starts csi-proxy-sim, and returns the folder of its sockets and one for others.
func serveNode(t *testing.T, flags []string) (sockets, folder string) {
	t.Helper()
	// The path of a socket must be short, and t.TempDir has the name of the test in its path.
	folder, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	sockets = filepath.Join(folder, "sockets")
	output := run(t, os.Getenv("CSI_PROXY_SIM"), append([]string{"-node=node.toml", "-socket-folder=" + sockets}, flags...)...)
	lines := bufio.NewScanner(output)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Press Ctrl-C") {
	}
	go io.Copy(io.Discard, output)
	return sockets, folder
}

// waitUntilReady waits until a plugin answers, and requires that csi-proxy-sim has answered the plugin.
func waitUntilReady(t *testing.T, address string) {
	t.Helper()
	identity := csi.NewIdentityClient(connect(t, address))
	probe, err := identity.Probe(within(t), &csi.ProbeRequest{}, grpc.WaitForReady(true))
	if err != nil || !probe.GetReady().GetValue() {
		t.Fatalf("the plugin is not ready: %v %v", probe, err)
	}
}

// run starts a program until the end of the test, and returns its standard output. If the test fails, it prints what
// the program has logged.
func run(t *testing.T, program string, arguments ...string) io.Reader {
	t.Helper()
	process := exec.Command(program, arguments...)
	log := new(bytes.Buffer)
	process.Stderr = log
	output, err := process.StdoutPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
		if t.Failed() {
			t.Logf("%s %v:\n%s", program, arguments, log)
		}
	})
	return output
}

// connect connects to an address when a call is made.
func connect(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// within returns a context for calls that must end.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
