package nodeplugins

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/OWNER/csi-proxy/sim/simtest/sanity"
)

// attached is a volume in use, with clients of the driver's two halves.
type attached struct {
	controller *sanity.Controller
	plugin     csi.NodeClient
	volume     *csi.Volume
}

var ntfs = &csi.VolumeCapability{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ntfs"}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}

// daemons has the flags with which csi-proxy-sim answers as each csi-proxy that a driver meets: this one, and versions of the
// one written in Go.
var daemons = [][]string{nil, {"-like-go"}, {"-like-go=1.3"}}

func TestAVolumeGrowsInUseAndKeepsItsSizeWhenItIsAttachedAgain(t *testing.T) {
	for name, program := range plugins(t) {
		for _, flags := range daemons {
			t.Run(name+strings.Join(flags, ""), func(t *testing.T) { growInUse(t, start(t, program, flags...)) })
		}
	}
}

// growInUse grows the disk of a volume that a pod uses. Then it detaches the volume and attaches it again.
func growInUse(t *testing.T, node started) {
	a := attached{controller: sanity.NewController(node.plugin()), plugin: csi.NewNodeClient(connect(t, node.address))}
	created, err := a.controller.CreateVolume(within(t), &csi.CreateVolumeRequest{
		Name: "grows", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.volume = created.GetVolume()

	a.attach(t)
	if size := a.size(t); size < 900<<20 || size > 1<<30 {
		t.Errorf("the file system has %d bytes", size)
	}
	wanted := &csi.CapacityRange{RequiredBytes: 4 << 30}
	expand := &csi.NodeExpandVolumeRequest{VolumeId: a.volume.GetVolumeId(), VolumePath: targetPath, CapacityRange: wanted}
	if _, err := a.plugin.NodeExpandVolume(within(t), expand); err == nil {
		t.Error("the volume has grown without its disk")
	}
	grow := &csi.ControllerExpandVolumeRequest{VolumeId: a.volume.GetVolumeId(), CapacityRange: wanted}
	if _, err := a.controller.ControllerExpandVolume(within(t), grow); err != nil {
		t.Fatal(err)
	}
	if expanded, err := a.plugin.NodeExpandVolume(within(t), expand); err != nil || expanded.GetCapacityBytes() != 4<<30 {
		t.Fatal(expanded, err)
	}
	grown := a.size(t)
	if grown < 3900<<20 || grown > 4<<30 {
		t.Errorf("the file system has grown to %d bytes", grown)
	}

	detach := &csi.ControllerUnpublishVolumeRequest{VolumeId: a.volume.GetVolumeId(), NodeId: "node-1"}
	if _, err := a.controller.ControllerUnpublishVolume(within(t), detach); err == nil {
		t.Error("the disk was unplugged while a pod used it")
	}
	a.detach(t)
	a.attach(t)
	if size := a.size(t); size != grown {
		t.Errorf("the file system had %d bytes, and now has %d", grown, size)
	}
	a.detach(t)
}

// attach does what Kubernetes does to start a pod with the volume.
func (a *attached) attach(t *testing.T) {
	t.Helper()
	id := a.volume.GetVolumeId()
	_, err := a.controller.ControllerPublishVolume(within(t), &csi.ControllerPublishVolumeRequest{
		VolumeId: id, NodeId: "node-1", VolumeCapability: ntfs,
	})
	if err == nil {
		_, err = a.plugin.NodeStageVolume(within(t), &csi.NodeStageVolumeRequest{
			VolumeId: id, StagingTargetPath: stagingPath, VolumeCapability: ntfs,
		})
	}
	if err == nil {
		_, err = a.plugin.NodePublishVolume(within(t), &csi.NodePublishVolumeRequest{
			VolumeId: id, StagingTargetPath: stagingPath, TargetPath: targetPath, VolumeCapability: ntfs,
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// detach does what Kubernetes does when the pod has ended.
func (a *attached) detach(t *testing.T) {
	t.Helper()
	id := a.volume.GetVolumeId()
	_, err := a.plugin.NodeUnpublishVolume(within(t), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: targetPath})
	if err == nil {
		_, err = a.plugin.NodeUnstageVolume(within(t), &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: stagingPath})
	}
	if err == nil {
		_, err = a.controller.ControllerUnpublishVolume(within(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: "node-1"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// size returns the size of the file system, as kubelet learns it.
func (a *attached) size(t *testing.T) int64 {
	t.Helper()
	stats, err := a.plugin.NodeGetVolumeStats(within(t), &csi.NodeGetVolumeStatsRequest{VolumeId: a.volume.GetVolumeId(), VolumePath: targetPath})
	if err != nil {
		t.Fatal(err)
	}
	return stats.GetUsage()[0].GetTotal()
}
