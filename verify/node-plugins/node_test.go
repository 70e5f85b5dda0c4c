package nodeplugins

import (
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

	"github.com/OWNER/csi-proxy/sim/simtest"
	"github.com/OWNER/csi-proxy/sim/simtest/sanity"
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
	// Clients of csi-proxy, for kubelet's part; nil under Wine, where csi-proxy-sim serves pipes.
	disks   disk.DiskClient
	files   filesystem.FilesystemClient
	volumes volume.VolumeClient
	// node is the simulated node; nil under Wine.
	node *simtest.Node
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
	file, err := os.ReadFile("node.toml")
	if err != nil {
		t.Fatal(err)
	}
	// The path of a socket must be short, and t.TempDir has the name of the test in its path.
	folder, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	simulated := simtest.Start(t, simtest.NodeFile(string(file)), simtest.Flags(flags...))
	node := started{node: simulated, csi: filepath.Join(folder, "csi.sock"), registration: filepath.Join(folder, "example-reg.sock")}
	output := run(t, plugin, "--endpoint=unix://"+node.csi, "--node-id=node-1", "--csi-proxy-sockets="+simulated.Sockets,
		"--registration-socket="+node.registration, "--kubelet-registration-path="+node.csi)
	go io.Copy(io.Discard, output)
	node.disks = disk.NewDiskClient(simulated.Connect("disk/v1"))
	node.files = filesystem.NewFilesystemClient(simulated.Connect("filesystem/v1"))
	node.volumes = volume.NewVolumeClient(simulated.Connect("volume/v1"))
	node.address = "unix:" + node.csi
	waitUntilReady(t, node.address)
	return node
}

// plugin returns the plugin for the tests of sanity.
func (s started) plugin() sanity.Plugin { return sanity.Plugin{Address: s.address, Node: s.node} }

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
