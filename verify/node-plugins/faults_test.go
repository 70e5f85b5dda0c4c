package nodeplugins

import (
	"context"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	volume "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/OWNER/csi-proxy/sim/simtest"
	"github.com/OWNER/csi-proxy/sim/simtest/sanity"
	"github.com/OWNER/csi-proxy/sim/simtest/simcontrol"
)

// Each crash takes a second, so by default only a sample of the calls of Windows is disturbed. `cargo xtask verify` sets this
// flag.
var everyCall = flag.Bool("every-call", false, "disturb every Windows call instead of every 8th (failure) or 32nd (crash)")

// state is what a step leaves behind: where the volume can be reached, and whether its disk is online.
type state struct{ staged, published, online bool }

// step is a call of kubelet.
type step struct {
	name string
	call func(ctx context.Context, plugin csi.NodeClient, id string) error
	end  state
}

// steps has the life of a volume. The paths are those of kubelet's default root folder, which has no drive.
func steps() []step {
	staging, target := strings.TrimPrefix(stagingPath, "C:"), strings.ReplaceAll(strings.TrimPrefix(targetPath, "C:"), `\`, "/")
	return []step{
		{"Stage", func(ctx context.Context, plugin csi.NodeClient, id string) error {
			_, err := plugin.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging, VolumeCapability: ntfs})
			return err
		}, state{staged: true, online: true}},
		{"Publish", func(ctx context.Context, plugin csi.NodeClient, id string) error {
			_, err := plugin.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
				VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: ntfs,
			})
			return err
		}, state{staged: true, published: true, online: true}},
		{"Expand", func(ctx context.Context, plugin csi.NodeClient, id string) error {
			_, err := plugin.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{VolumeId: id, VolumePath: target})
			return err
		}, state{staged: true, published: true, online: true}},
		{"Unpublish", func(ctx context.Context, plugin csi.NodeClient, id string) error {
			_, err := plugin.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target})
			return err
		}, state{staged: true, online: true}},
		{"Unstage", func(ctx context.Context, plugin csi.NodeClient, id string) error {
			_, err := plugin.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging})
			return err
		}, state{}},
	}
}

// Makes RPCs and calls of Windows fail in each call of kubelet, and csi-proxy crash after them. Kubelet repeats its call,
// which must end in the state of an undisturbed call.
func TestARepeatedCallEndsWellWhateverFailedBefore(t *testing.T) {
	internal := &simcontrol.Fault_Status{Status: &simcontrol.RpcStatus{Code: uint32(codes.Internal)}}
	crash := &simcontrol.Fault_Crash{Crash: true}
	disturbances := []struct {
		name  string
		fault *simcontrol.Fault
		// Each how many calls are disturbed, and how many calls each step makes at least.
		each, atLeast int
	}{
		{"RPCFails", &simcontrol.Fault{Rpc: "*", Action: internal}, 1, 2},
		{"RPCFailsAfterItsEffect", &simcontrol.Fault{Rpc: "*", Action: internal, After: true}, 1, 2},
		{"RPCCrashes", &simcontrol.Fault{Rpc: "*", Action: crash, After: true}, 1, 2},
		{"WindowsFails", &simcontrol.Fault{Action: &simcontrol.Fault_Code{Code: 5}}, 5, 10},
		{"WindowsCrashes", &simcontrol.Fault{Action: crash, After: true}, 32, 10},
	}
	for name, program := range plugins(t) {
		if isUnderWine(program) {
			continue
		}
		for at, disturbed := range steps() {
			for _, disturbance := range disturbances {
				t.Run(name+"/"+disturbed.name+"/"+disturbance.name, func(t *testing.T) {
					t.Parallel()
					each := disturbance.each
					if *everyCall {
						each = 1
					}
					node := start(t, program, "-fast")
					l, nth, failed := life{node, sanity.NewController(node.plugin()), csi.NewNodeClient(connect(t, node.address))}, 0, 0
					for disk := uint32(1); disk <= 2; disk++ { // Those of node.toml would only cost time.
						node.node.Unplug(disk)
					}
					for {
						isHit, err := l.disturb(t, at, nth, disturbance.fault)
						if !isHit {
							break
						}
						nth += each
						if err != nil {
							failed++
						}
						if nth%50 == 0 {
							t.Logf("call %d", nth) // xtask ends a test that prints nothing for five minutes.
						}
					}
					t.Logf("%d of %d calls disturbed; kubelet saw %d failures", nth/each, nth, failed)
					if nth < disturbance.atLeast {
						t.Error("the step makes fewer calls than expected")
					}
					// The client in Rust repeats calls that a crash has cut off.
					if failed == 0 && !disturbance.fault.GetCrash() {
						t.Error("no call of kubelet failed, so that none was tested")
					}
				})
			}
		}
	}
}

// life has the two halves of a driver on a node.
type life struct {
	started
	controller *sanity.Controller
	plugin     csi.NodeClient
}

// disturb runs the life of a new volume, and disturbs one call in one step. Returns whether the step makes so many calls, and
// the error of the disturbed step.
func (l life) disturb(t *testing.T, at, nth int, fault *simcontrol.Fault) (isHit bool, failure error) {
	t.Helper()
	created, err := l.controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: t.Name() + time.Now().String(), CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
	})
	id := created.GetVolume().GetVolumeId()
	if err == nil {
		_, err = l.controller.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: id})
	}
	if err != nil {
		t.Fatal(err)
	}
	for now, step := range steps() {
		if now != at {
			l.complete(t, step, id)
			continue
		}
		injected := l.node.Inject(proto.CloneOf(fault), simtest.Skip(uint64(nth)), simtest.Times(1), simtest.MayMiss())
		failure = step.call(t.Context(), l.plugin, id)
		injected.Clear()
		isHit = injected.Hits() > 0
		if !isHit && failure != nil {
			t.Fatalf("%s without a disturbance: %v", step.name, failure)
		}
		l.complete(t, step, id)
		if end := l.state(t, l.controller.DiskNumber(id)); end != step.end {
			t.Errorf("%s, disturbed at %d, %s: %v; repeated, it leaves %+v and not %+v", step.name, nth, injected.LastHit(), failure, end, step.end)
		}
	}
	if _, err := l.controller.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id}); err != nil {
		t.Fatal(err)
	}
	return isHit, failure
}

// complete repeats a call until it succeeds, as kubelet does, while csi-proxy may be starting again.
func (l life) complete(t *testing.T, step step, id string) {
	t.Helper()
	err := step.call(t.Context(), l.plugin, id)
	for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); err = step.call(t.Context(), l.plugin, id) {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("%s of %s does not succeed: %v", step.name, id, err)
	}
}

// state asks csi-proxy for the state of the volume on a disk.
func (l life) state(t *testing.T, number uint32) state {
	t.Helper()
	reaches := func(path string) bool {
		_, err := l.volumes.GetVolumeIDFromTargetPath(t.Context(), &volume.GetVolumeIDFromTargetPathRequest{TargetPath: path})
		return err == nil
	}
	onDisk, err := l.disks.GetDiskState(t.Context(), &disk.GetDiskStateRequest{DiskNumber: number})
	if err != nil {
		t.Fatal(err)
	}
	return state{reaches(stagingPath), reaches(targetPath), onDisk.GetIsOnline()}
}
