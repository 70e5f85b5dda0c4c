package example

import (
	"context"
	"os/exec"
	"testing"
	"time"

	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volume "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"csi-proxy.local/simtest"
)

const (
	serial  = "vol-1"
	staging = `C:\var\lib\kubelet\plugins\globalmount`
	oneGiB  = 1 << 30
)

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

// repeat repeats a call as kubelet does, until csi-proxy has started again.
func repeat(t *testing.T, call func() error) {
	t.Helper()
	err := call()
	for ; status.Code(err) == codes.Unavailable; err = call() {
		time.Sleep(10 * time.Millisecond)
	}
	must(t, err)
}

func TestLifeCycle(t *testing.T) {
	node, d, ctx := start(t)
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
	format := node.HoldRPC("volume/FormatVolume", simtest.Times(1))
	staged := make(chan error, 1)
	go func() { staged <- d.stage(ctx, serial, staging) }()
	format.Wait(1)
	plug := node.Unplug(1)
	format.Clear()
	if err := <-staged; err == nil {
		t.Fatal("a disk that is gone was staged")
	}
	plug()
	must(t, d.stage(ctx, serial, staging))
}

func TestACrashAtEachRPC(t *testing.T) {
	for _, rpc := range []string{"disk/PartitionDisk", "volume/FormatVolume", "volume/MountVolume"} {
		t.Run(rpc, func(t *testing.T) {
			node, d, ctx := start(t)
			node.CrashAt(rpc, simtest.AfterEffect())
			if err := d.stage(ctx, serial, staging); status.Code(err) != codes.Unavailable {
				t.Fatal(err)
			}
			repeat(t, func() error { return d.stage(ctx, serial, staging) })
		})
	}
	node, d, ctx := start(t)
	before := node.NodeFile()
	must(t, d.stage(ctx, serial, staging))
	node.CrashAt("disk/SetDiskState")
	if err := d.unstage(ctx, serial, staging); err == nil {
		t.Fatal("the crash was not noticed")
	}
	repeat(t, func() error { return d.unstage(ctx, serial, staging) })
	node.RequireSame(before)
}

func TestARestoredSnapshotBesideItsVolume(t *testing.T) {
	node, d, ctx := start(t)
	must(t, d.stage(ctx, serial, staging))
	// The snapshot has the signature of the volume, so Windows leaves it offline.
	node.AddDisk(oneGiB, "snap-1", "copy_of = 1")
	must(t, d.stage(ctx, "snap-1", `C:\var\lib\kubelet\plugins\snapshot`))
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
	for _, flag := range []string{"-like-go=false", "-like-go"} {
		t.Run(flag, func(t *testing.T) {
			node, d, ctx := start(t, flag)
			before := node.NodeFile()
			must(t, d.stage(ctx, serial, staging))
			must(t, d.stage(ctx, serial, staging))
			must(t, d.unstage(ctx, serial, staging))
			must(t, d.unstage(ctx, serial, staging))
			if flag == "-like-go=false" {
				node.RequireSame(before)
			}
		})
	}
}

// testdata/recorded.json was recorded with -record while TestLifeCycle ran.
func TestRecordedCalls(t *testing.T) {
	for _, flag := range []string{"-like-go=false", "-like-go"} {
		replay := exec.Command(simtest.Find(t), "replay", "-node=testdata/node.toml", "-fast", flag, "testdata/recorded.json")
		if output, err := replay.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", flag, err, output)
		}
	}
}
