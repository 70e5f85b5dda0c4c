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
)

// A crash takes a second, so `cargo xtask test` disturbs only some calls. `cargo xtask verify` disturbs all, and a test of
// csi-proxy-client all those of an example with the same calls.
var everyCall = flag.Bool("every-call", false, "disturb each call of Windows, and not only each 4th or, with a crash, each 16th")

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

// Makes each call of Windows fail in each call of kubelet, and csi-proxy crash after it. Kubelet repeats its call, which must
// end in the state of an undisturbed call.
func TestARepeatedCallEndsWellWhateverFailedBefore(t *testing.T) {
	disturbances := []struct {
		name  string
		fault map[string]any
		// Each how many calls are disturbed.
		each int
	}{
		{"fails", map[string]any{"code": 5}, 4},
		{"crashes", map[string]any{"crash": true, "after": true}, 16},
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
					l, nth := life{node, newController(node), csi.NewNodeClient(connect(t, node.address))}, 0
					for disk := 1; disk <= 2; disk++ { // Those of node.toml would only cost time.
						l.simulate(t, "UnplugDisk", map[string]any{"diskNumber": disk}, &struct{}{})
					}
					for l.disturb(t, at, nth, disturbance.fault) {
						nth += each
					}
					t.Logf("%d calls of Windows, each %dth of them disturbed", nth, each)
					if nth < 10 {
						t.Error("the step makes fewer calls than expected")
					}
				})
			}
		}
	}
}

// life has the two halves of a driver on a node.
type life struct {
	started
	controller *controller
	plugin     csi.NodeClient
}

// disturb runs the life of a new volume, and disturbs one call of Windows in one step. Tells whether the step makes so many
// calls.
func (l life) disturb(t *testing.T, at, nth int, fault map[string]any) bool {
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
	wasHit := false
	for now, step := range steps() {
		if now != at {
			l.complete(t, step, id)
			continue
		}
		disturbance := map[string]any{"skip": nth, "count": 1}
		for key, value := range fault {
			disturbance[key] = value
		}
		l.simulate(t, "InjectFault", map[string]any{"fault": disturbance}, &struct{}{})
		err := step.call(t.Context(), l.plugin, id)
		var injected struct {
			Faults []struct {
				Hits    int `json:",string"`
				LastHit string
			}
		}
		l.simulate(t, "ListFaults", map[string]any{}, &injected)
		l.simulate(t, "ClearFaults", map[string]any{}, &struct{}{})
		hit := injected.Faults[0]
		wasHit = hit.Hits > 0
		if !wasHit && err != nil {
			t.Fatalf("%s without a disturbance: %v", step.name, err)
		}
		l.complete(t, step, id)
		if end := l.state(t, l.controller.volumes[id].number); end != step.end {
			t.Errorf("%s, disturbed at %d, %s: %v; repeated, it leaves %+v and not %+v", step.name, nth, hit.LastHit, err, end, step.end)
		}
	}
	if _, err := l.controller.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id}); err != nil {
		t.Fatal(err)
	}
	return wasHit
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

// simulate calls the control API.
func (l life) simulate(t *testing.T, rpc string, request map[string]any, response any) {
	t.Helper()
	if err := l.simulation.call(t.Context(), rpc, request, response); err != nil {
		t.Fatalf("%s: %v", rpc, err)
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
