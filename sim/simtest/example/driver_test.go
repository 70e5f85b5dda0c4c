package example

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volume "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/OWNER/csi-proxy/sim/simtest"
	"github.com/OWNER/csi-proxy/sim/simtest/simcontrol"
)

var record = flag.Bool("record", false, "record testdata/recorded.json in TestLifeCycle")

const (
	serial  = "vol-1"
	staging = `C:\var\lib\kubelet\plugins\globalmount`
	data    = staging + `\data`
	oneGiB  = 1 << 30
)

// daemons has the flags for each csi-proxy that a driver meets: this one, and versions of the one written in Go, which formats
// a volume again.
var daemons = []string{"-like-go=false", "-like-go", "-like-go=1.3"}

// start starts a node with one new, offline disk, and the driver on it.
func start(t *testing.T, flags ...string) (*simtest.Node, driver, context.Context) {
	t.Helper()
	node := simtest.Start(t, simtest.NodeFile(""), simtest.Flags(append(flags, "-fast")...))
	node.AddDisk(oneGiB, serial, "offline = true")
	d := driver{
		disks:   disk.NewDiskClient(node.Connect("disk/v1")),
		volumes: volume.NewVolumeClient(node.Connect("volume/v1")),
		files:   filesystem.NewFilesystemClient(node.Connect("filesystem/v1")),
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return node, d, ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write writes a file as a pod does, and requireData requires that it is still there.
func write(t *testing.T, node *simtest.Node, ctx context.Context) {
	t.Helper()
	_, err := node.Files.WriteFile(ctx, &simcontrol.WriteFileRequest{Path: data, Data: []byte(serial)})
	must(t, err)
}

func requireData(t *testing.T, node *simtest.Node, ctx context.Context, path string) {
	t.Helper()
	file, err := node.Files.ReadFile(ctx, &simcontrol.ReadFileRequest{Path: path})
	if err != nil || string(file.GetData()) != serial {
		t.Fatalf("the data is lost: %s: %q, %v", path, file.GetData(), err)
	}
}

func TestLifeCycle(t *testing.T) {
	var flags []string
	if *record {
		flags = []string{"-record=testdata/recorded.json"}
	}
	node, d, ctx := start(t, flags...)
	before := node.NodeFile()
	for range 2 {
		must(t, d.stage(ctx, serial, staging))
		must(t, d.stage(ctx, serial, staging))
		must(t, d.unstage(ctx, serial, staging))
		must(t, d.unstage(ctx, serial, staging))
		node.RequireSame(before)
	}
}

func TestAFailedMountIsRepeated(t *testing.T) {
	node, d, ctx := start(t)
	node.FailRPC("volume/MountVolume", codes.Aborted, simtest.Times(1))
	if err := d.stage(ctx, serial, staging); status.Code(err) != codes.Aborted {
		t.Fatal(err)
	}
	must(t, d.stage(ctx, serial, staging))
}

func TestAMountWhoseAnswerIsLostIsRepeated(t *testing.T) {
	node, d, ctx := start(t)
	node.CutRPC("volume/MountVolume", simtest.AfterEffect(), simtest.Times(1))
	if err := d.stage(ctx, serial, staging); status.Code(err) != codes.Unavailable {
		t.Fatal(err)
	}
	must(t, d.stage(ctx, serial, staging))
}

func TestADiskThatIsUnpluggedDuringTheFormat(t *testing.T) {
	node, d, ctx := start(t)
	number, err := d.find(ctx, serial)
	must(t, err)
	hold := &simcontrol.Fault_Hold{Hold: true}
	format := node.Inject(&simcontrol.Fault{Primitive: "wmi call MSFT_Volume.Format", Action: hold}, simtest.Times(1))
	staged := make(chan error, 1)
	go func() { staged <- d.stage(ctx, serial, staging) }()
	format.Wait(1)
	plug := node.Unplug(number)
	format.Clear()
	if err := <-staged; err == nil {
		t.Fatal("a disk that is gone was staged")
	}
	plug()
	must(t, d.stage(ctx, serial, staging))
}

func TestEachRPCOfACallOfKubelet(t *testing.T) {
	t.Run("stage", func(t *testing.T) {
		simtest.AtEachRPC(t, func(t *testing.T) simtest.Disturbed {
			node, d, ctx := start(t)
			return simtest.Disturbed{
				Node:  node,
				Call:  func() error { return d.stage(ctx, serial, staging) },
				Check: func() { write(t, node, ctx) },
			}
		})
	})
	t.Run("unstage", func(t *testing.T) {
		simtest.AtEachRPC(t, func(t *testing.T) simtest.Disturbed {
			node, d, ctx := start(t)
			before := node.NodeFile()
			must(t, d.stage(ctx, serial, staging))
			return simtest.Disturbed{
				Node:  node,
				Call:  func() error { return d.unstage(ctx, serial, staging) },
				Check: func() { node.RequireSame(before) },
			}
		})
	})
}

func TestALifeInWhichTheNodeRestarts(t *testing.T) {
	node, d, ctx := start(t)
	kubelet := node.KubeletAt(`C:\var\lib\kubelet`, "driver.example.com")
	before := node.NodeFile()
	kubelet.Stage(serial, func(staging string) error { return d.stage(ctx, serial, staging) })
	node.Restart()
	kubelet.Resume()
	kubelet.Unstage(serial, func(staging string) error { return d.unstage(ctx, serial, staging) })
	node.RequireSame(before)
}

func TestARestoredSnapshotBesideItsVolume(t *testing.T) {
	const copied = `C:\var\lib\kubelet\plugins\snapshot`
	for _, flag := range daemons {
		t.Run(flag, func(t *testing.T) {
			node, d, ctx := start(t, flag)
			number, err := d.find(ctx, serial)
			must(t, err)
			must(t, d.stage(ctx, serial, staging))
			write(t, node, ctx)
			snapshot := node.AddDisk(oneGiB, "snap-1", fmt.Sprintf("copy_of = %d", number))
			// The snapshot has the signature of the volume, so Windows leaves it offline.
			state, err := d.disks.GetDiskState(ctx, &disk.GetDiskStateRequest{DiskNumber: snapshot})
			if err != nil || state.GetIsOnline() {
				t.Fatal(state, err)
			}
			must(t, d.stage(ctx, "snap-1", copied))
			requireData(t, node, ctx, copied+`\data`)
			requireData(t, node, ctx, data)
		})
	}
}

func TestADiskNumberThatChanges(t *testing.T) {
	node, d, ctx := start(t)
	node.AddDisk(oneGiB, "vol-2")
	must(t, d.stage(ctx, serial, staging))
	before, err := d.find(ctx, serial)
	must(t, err)
	node.RestartRenumbered(0)
	after, err := d.find(ctx, serial)
	must(t, err)
	if before == after {
		t.Errorf("the disk still has the number %d", after)
	}
	must(t, d.unstage(ctx, serial, staging))
}

func TestBothDaemons(t *testing.T) {
	for _, flag := range daemons {
		t.Run(flag, func(t *testing.T) {
			node, d, ctx := start(t, flag)
			before := node.NodeFile()
			must(t, d.stage(ctx, serial, staging))
			write(t, node, ctx)
			must(t, d.stage(ctx, serial, staging))
			requireData(t, node, ctx, data)
			must(t, d.unstage(ctx, serial, staging))
			must(t, d.unstage(ctx, serial, staging))
			must(t, d.stage(ctx, serial, staging))
			requireData(t, node, ctx, data)
			must(t, d.unstage(ctx, serial, staging))
			node.RequireSame(before)
		})
	}
}

// testdata/recorded.json has the calls of TestLifeCycle. Record them again with `go test -run TestLifeCycle -record`.
func TestRecordedCalls(t *testing.T) {
	for _, flag := range daemons {
		replay := exec.Command(simtest.Find(t), "replay", "-node=testdata/node.toml", "-fast", flag, "testdata/recorded.json")
		if output, err := replay.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", flag, err, output)
		}
	}
}

// Runs tests as on macOS, where one csi-proxy-sim in a container serves them all over TCP.
func TestOneNodeThatIsRunning(t *testing.T) {
	sockets := t.TempDir()
	node := exec.Command(simtest.Find(t), "-node=testdata/node.toml", "-fast", "-listen=127.0.0.1:0", "-socket-folder="+sockets)
	output, err := node.StdoutPipe()
	must(t, err)
	must(t, node.Start())
	t.Cleanup(func() { node.Process.Kill(); node.Wait() })
	line, err := bufio.NewReader(output).ReadString('\n')
	must(t, err)
	tests := exec.Command(os.Args[0], "-test.v", "-test.skip=Running|Recorded|EachRPC")
	tests.Env = append(os.Environ(), simtest.Address+"="+line[strings.LastIndex(line, " ")+1:len(line)-1])
	report, err := tests.CombinedOutput()
	if err != nil || strings.Count(string(report), "\n--- PASS") < 6 {
		t.Errorf("%v\n%s", err, report)
	}
}
