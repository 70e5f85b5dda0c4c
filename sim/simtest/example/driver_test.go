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

// repeat repeats a call until it succeeds, as kubelet does whatever the error is.
func repeat(t *testing.T, call func() error) {
	t.Helper()
	err := call()
	for begin := time.Now(); err != nil && time.Since(begin) < 10*time.Second; err = call() {
		time.Sleep(10 * time.Millisecond)
	}
	must(t, err)
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

func TestACrashAtEachRPC(t *testing.T) {
	calls := []struct {
		name string
		call func(driver, context.Context, string, string) error
	}{{"stage", driver.stage}, {"unstage", driver.unstage}}
	effects := map[string][]simtest.FaultOption{"before": nil, "after": {simtest.AfterEffect()}}
	for at, crashed := range calls {
		for when, options := range effects {
			t.Run(crashed.name+"/"+when, func(t *testing.T) {
				node, d, ctx := start(t)
				hits := uint64(1)
				for rpc := uint64(0); hits > 0; rpc++ {
					// A disk that is formatted already would need fewer RPCs.
					serial := fmt.Sprintf("new-%d", rpc)
					node.AddDisk(oneGiB, serial, "offline = true")
					before := node.NodeFile()
					for now, kubelet := range calls {
						if now == at {
							crash := node.CrashAt("*", append(options, simtest.Skip(rpc), simtest.MayMiss())...)
							err := kubelet.call(d, ctx, serial, staging)
							crash.Clear()
							if hits = crash.Hits(); hits > 0 && err == nil {
								t.Errorf("the crash at RPC %d was not noticed", rpc)
							}
						}
						repeat(t, func() error { return kubelet.call(d, ctx, serial, staging) })
					}
					node.RequireSame(before)
					if hits == 0 && rpc < 6 {
						t.Errorf("only %d RPCs", rpc)
					}
				}
			})
		}
	}
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
	tests := exec.Command(os.Args[0], "-test.v", "-test.skip=Running|Recorded|Crash")
	tests.Env = append(os.Environ(), simtest.Address+"="+line[strings.LastIndex(line, " ")+1:len(line)-1])
	report, err := tests.CombinedOutput()
	if err != nil || strings.Count(string(report), "\n--- PASS") < 6 {
		t.Errorf("%v\n%s", err, report)
	}
}
