// Package simtest starts csi-proxy-sim in a Go test: a simulated Windows node for the test of a CSI driver.
//
//	node := simtest.Start(t, simtest.NodeFile("[[disk]]\nsize = \"1 GiB\"\nserial = \"vol-1\"\n"))
//	disks := disk.NewDiskClient(node.Connect("disk/v1"))
//	node.FailRPC("volume/MountVolume", codes.Aborted, simtest.Times(1))
//
// The program is found by the option Program, by the environment variable CSI_PROXY_SIM, or on the PATH. It needs neither
// Windows nor privileges. Each node is a process of its own, so tests can run in parallel. It ends with the test, also if
// the test is killed.
//
// A method that fails ends the test. The stubs of the control API, for everything that has no method here, are in the
// package simcontrol.
package simtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/OWNER/csi-proxy/sim/simtest/simcontrol"
)

// Environment is the variable that names the program csi-proxy-sim.
const Environment = "CSI_PROXY_SIM"

// Address is the variable that names the TCP address of a csi-proxy-sim that is running already, such as one in a
// container that was started with -listen. Start then gives that node the node file, and the node that it was before when the
// test ends. It skips tests with flags other than -fast, which it cannot choose. Tests must not run in parallel.
const Address = "CSI_PROXY_SIM_ADDRESS"

// patience is how long a call of the control API, or the start of the program, may take.
const patience = time.Minute

// Node is a running simulated node.
type Node struct {
	// Sockets is the folder of the sockets, named after the pipes: csi-proxy-disk-v1.sock. Empty if the node was not started
	// by Start.
	Sockets string
	// Simulation and Files are the control API.
	Simulation simcontrol.SimulationClient
	Files      simcontrol.ContainerFilesClient

	t       testing.TB
	address string
	// ended has the result of the program, if it ends.
	ended chan error
}

// Option changes how a node starts.
type Option func(*options)

type options struct {
	program string
	// node is the node file; nil for the built-in node.
	node  *string
	flags []string
}

// Program names the program csi-proxy-sim.
func Program(path string) Option { return func(o *options) { o.program = path } }

// NodeFile describes the node in TOML, instead of the built-in one.
func NodeFile(toml string) Option { return func(o *options) { o.node = &toml } }

// Flags gives the program flags, such as -fast, -like-go or -api-versions=disk/v1beta3.
func Flags(flags ...string) Option { return func(o *options) { o.flags = append(o.flags, flags...) } }

// Start starts a node that ends with the test. It returns when all endpoints are open.
func Start(t testing.TB, opts ...Option) *Node {
	t.Helper()
	var o options
	for _, option := range opts {
		option(&o)
	}
	node := &Node{t: t, address: os.Getenv(Address)}
	if node.address == "" {
		node.run(o)
	} else if slices.ContainsFunc(o.flags, func(flag string) bool { return flag != "-fast" }) {
		t.Skipf("the test needs flags, and the node at %s=%s is running already", Address, node.address)
	}
	// A node file has the contents of the node's files, without a limit.
	control := node.connect("sim-control", grpc.MaxCallRecvMsgSize(1<<30), grpc.WaitForReady(true))
	node.Simulation = simcontrol.NewSimulationClient(control)
	node.Files = simcontrol.NewContainerFilesClient(control)
	health := grpc_health_v1.NewHealthClient(control)
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		checked, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		cancel()
		if checked.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING {
			break
		}
		if len(node.ended) > 0 {
			t.FailNow() // The clean-up says why.
		}
		if time.Since(begin) > patience {
			t.Fatalf("csi-proxy-sim does not serve: %v", err)
		}
	}
	if node.address != "" {
		before := node.NodeFile()
		t.Cleanup(func() { node.restart(&simcontrol.RestartRequest{NodeFile: &before}) })
		if o.node != nil {
			node.restart(&simcontrol.RestartRequest{NodeFile: o.node})
		}
	} else if o.node != nil {
		node.must(os.Remove(node.file()))
	}
	return node
}

// Find returns the program csi-proxy-sim that CSI_PROXY_SIM names or that is on the PATH, for its other commands.
func Find(t testing.TB) string {
	t.Helper()
	if program := os.Getenv(Environment); program != "" {
		return program
	}
	program, err := exec.LookPath("csi-proxy-sim")
	if err != nil {
		t.Fatalf("csi-proxy-sim is not on the PATH: install it, or set %s to its path", Environment)
	}
	return program
}

// run starts the program.
func (n *Node) run(o options) {
	n.t.Helper()
	program := o.program
	if program == "" {
		program = Find(n.t)
	}
	// The path of a socket must be short, and t.TempDir has the name of the test in its path.
	folder, err := os.MkdirTemp("", "sim")
	n.must(err)
	n.t.Cleanup(func() { os.RemoveAll(folder) })
	n.Sockets = folder
	// If the test is killed, its end of the pipe closes: the program ends, and removes the folder, which is empty then.
	arguments := append([]string{"-exit-with-stdin", "-socket-folder=" + folder, "-drain=0"}, o.flags...)
	if o.node != nil {
		n.must(os.WriteFile(n.file(), []byte(*o.node), 0o600))
		arguments = append(arguments, "-node="+n.file())
	}
	process, log := exec.Command(program, arguments...), new(bytes.Buffer)
	process.Stderr = log
	_, err = process.StdinPipe()
	n.must(err)
	if err := process.Start(); err != nil {
		n.t.Fatalf("cannot start csi-proxy-sim, which %s or the option Program names: %v", Environment, err)
	}
	n.ended = make(chan error, 1)
	go func() { n.ended <- process.Wait() }()
	n.t.Cleanup(func() {
		select {
		case err := <-n.ended:
			n.t.Errorf("%s has ended: %v", program, err)
		default:
			process.Process.Kill()
			<-n.ended
		}
		if n.t.Failed() {
			n.t.Logf("%s %s:\n%s", program, strings.Join(arguments, " "), log)
		}
	})
}

// file returns the path of the node file, which exists until the program serves.
func (n *Node) file() string { return filepath.Join(n.Sockets, "node.toml") }

// Connect returns a connection to a group-version, such as "disk/v1", that is closed at the end of the test. While csi-proxy
// does not serve, calls fail at once with Unavailable, as those of a driver do.
func (n *Node) Connect(groupVersion string) *grpc.ClientConn {
	n.t.Helper()
	return n.connect("csi-proxy-" + strings.ReplaceAll(groupVersion, "/", "-"))
}

// Target returns the target of grpc.NewClient for a group-version, for a driver that connects by itself.
func (n *Node) Target(groupVersion string) string {
	return n.target("csi-proxy-" + strings.ReplaceAll(groupVersion, "/", "-"))
}

func (n *Node) target(endpoint string) string {
	if n.address != "" {
		return n.address
	}
	return "unix:" + filepath.Join(n.Sockets, endpoint+".sock")
}

func (n *Node) connect(endpoint string, options ...grpc.CallOption) *grpc.ClientConn {
	n.t.Helper()
	// The program opens its sockets within milliseconds, and again after a crash.
	soon := grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 10 * time.Millisecond, MaxDelay: 10 * time.Millisecond}, MinConnectTimeout: patience}
	connection, err := grpc.NewClient(n.target(endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(soon), grpc.WithDefaultCallOptions(options...))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { connection.Close() })
	return connection
}

// Add adds the disks, servers, services and files of a node file, and returns the numbers of the disks.
func (n *Node) Add(toml string) []uint32 {
	n.t.Helper()
	added, err := n.Simulation.Add(within(n.t), &simcontrol.AddRequest{NodeFile: toml})
	n.must(err)
	return added.GetDiskNumbers()
}

// AddDisk plugs in a new disk and returns its number. `keys` are further keys of a disk in a node file, such as
// `location = "..."`, `offline = true` or `copy_of = 1`.
func (n *Node) AddDisk(size int64, serial string, keys ...string) uint32 {
	n.t.Helper()
	return n.Add(fmt.Sprintf("[[disk]]\nsize = %d\nserial = %q\n%s\n", size, serial, strings.Join(keys, "\n")))[0]
}

// Unplug unplugs a disk without warning, and returns the function that plugs it in again and returns its number.
func (n *Node) Unplug(disk uint32) (plug func() uint32) {
	n.t.Helper()
	unplugged, err := n.Simulation.UnplugDisk(within(n.t), &simcontrol.UnplugDiskRequest{DiskNumber: disk})
	n.must(err)
	return func() uint32 {
		n.t.Helper()
		plugged, err := n.Simulation.PlugDisk(within(n.t), &simcontrol.PlugDiskRequest{Handle: unplugged.GetHandle()})
		n.must(err)
		return plugged.GetDiskNumber()
	}
}

// GrowDisk enlarges a disk.
func (n *Node) GrowDisk(disk uint32, size uint64) {
	n.t.Helper()
	_, err := n.Simulation.GrowDisk(within(n.t), &simcontrol.GrowDiskRequest{DiskNumber: disk, Size: size})
	n.must(err)
}

// SetSMBReachable makes an SMB server answer, or not answer.
func (n *Node) SetSMBReachable(server string, reachable bool) {
	n.t.Helper()
	n.setReachable(&simcontrol.SetReachableRequest{What: &simcontrol.SetReachableRequest_SmbServer{SmbServer: server}, Reachable: reachable})
}

// SetPortalReachable makes an iSCSI portal, given as its address, answer or not answer.
func (n *Node) SetPortalReachable(portal string, reachable bool) {
	n.t.Helper()
	n.setReachable(&simcontrol.SetReachableRequest{What: &simcontrol.SetReachableRequest_IscsiPortal{IscsiPortal: portal}, Reachable: reachable})
}

func (n *Node) setReachable(request *simcontrol.SetReachableRequest) {
	n.t.Helper()
	_, err := n.Simulation.SetReachable(within(n.t), request)
	n.must(err)
}

// SetSMBPassword changes the password of a user of an SMB server.
func (n *Node) SetSMBPassword(server, user, password string) {
	n.t.Helper()
	request := &simcontrol.SetSmbPasswordRequest{Server: server, User: user, Password: password}
	_, err := n.Simulation.SetSmbPassword(within(n.t), request)
	n.must(err)
}

// MkdirAll makes a directory and its missing parents, as kubelet does.
func (n *Node) MkdirAll(path string) {
	n.t.Helper()
	_, err := n.Files.MakeDirectory(within(n.t), &simcontrol.MakeDirectoryRequest{Path: path})
	n.must(err)
}

// Restart restarts the node.
func (n *Node) Restart() { n.t.Helper(); n.restart(&simcontrol.RestartRequest{}) }

// RestartDaemon restarts csi-proxy alone, as when it is upgraded.
func (n *Node) RestartDaemon() { n.t.Helper(); n.restart(&simcontrol.RestartRequest{DaemonOnly: true}) }

// RestartRenumbered restarts the node, and gives each disk except disk 0 the number of another one. A single disk keeps its
// number.
func (n *Node) RestartRenumbered(seed uint64) {
	n.t.Helper()
	n.restart(&simcontrol.RestartRequest{RenumberDisks: true, Seed: seed})
}

func (n *Node) restart(request *simcontrol.RestartRequest) {
	n.t.Helper()
	_, err := n.Simulation.Restart(within(n.t), request)
	n.must(err)
}

// Advance advances the clock of the node: what takes time on the node ends sooner.
func (n *Node) Advance(span time.Duration) {
	n.t.Helper()
	_, err := n.Simulation.AdvanceClock(within(n.t), &simcontrol.AdvanceClockRequest{Milliseconds: uint64(span.Milliseconds())})
	n.must(err)
}

// NodeFile returns the node as it is now, as a node file, for RequireSame.
func (n *Node) NodeFile() string {
	n.t.Helper()
	node, err := n.Simulation.GetNode(within(n.t), &simcontrol.GetNodeRequest{})
	n.must(err)
	return node.GetNodeFile()
}

// RequireSame fails the test if the node differs from what NodeFile has returned: if the driver has left a mount, a link,
// an SMB mapping, a session, a directory or an online disk behind. What is on the disks may differ.
func (n *Node) RequireSame(before string) {
	n.t.Helper()
	n.requireSame(&simcontrol.CompareRequest{NodeFile: before})
}

// RequireSameData does as RequireSame does, and compares what is on the disks too.
func (n *Node) RequireSameData(before string) {
	n.t.Helper()
	n.requireSame(&simcontrol.CompareRequest{NodeFile: before, WithData: true})
}

func (n *Node) requireSame(request *simcontrol.CompareRequest) {
	n.t.Helper()
	compared, err := n.Simulation.Compare(within(n.t), request)
	n.must(err)
	if differences := compared.GetDifferences(); len(differences) > 0 {
		n.t.Errorf("the node is not as it was:\n%s", strings.Join(differences, "\n"))
	}
}

func (n *Node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// within returns a context for a call that must end.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
