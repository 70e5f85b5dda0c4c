package v2pipe

import (
	"errors"
	"testing"

	disk "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	filesystem "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	volume "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// ofWine is the owner of a pipe that csi-proxy-sim makes under Wine.
const ofWine = "S-1-5-21-0-0-0-513"

// TestADiskOnThisNode takes a new disk through its life, as a driver with the v2 library does. It needs csi-proxy-sim.
func TestADiskOnThisNode(t *testing.T) {
	node, err := OpenOwnedBy(t.Context(), ofWine)
	if errors.Is(err, ErrNoPipe) {
		t.Skip("csi-proxy-sim does not run here")
	}
	must(t, err)
	defer node.Close()
	ctx := t.Context()

	listed, err := node.Disk.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
	must(t, err)
	var number uint32
	for candidate, ids := range listed.DiskIDs {
		if ids.SerialNumber == "v2pipe" {
			number = candidate
		}
	}
	if number == 0 {
		t.Fatalf("no disk has the serial number v2pipe: %v", listed.DiskIDs)
	}
	_, err = node.Disk.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: number, IsOnline: true})
	must(t, err)
	state, err := node.Disk.GetDiskState(ctx, &disk.GetDiskStateRequest{DiskNumber: number})
	must(t, err)
	if !state.IsOnline {
		t.Error("the disk is offline")
	}
	_, err = node.Disk.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: number})
	must(t, err)
	volumes, err := node.Volume.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: number})
	must(t, err)
	if len(volumes.VolumeIDs) != 1 {
		t.Fatal(volumes.VolumeIDs)
	}
	id := volumes.VolumeIDs[0]
	_, err = node.Volume.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: id})
	must(t, err)

	const staging, pod = `C:\var\lib\kubelet\plugins\v2pipe\globalmount`, `C:\var\lib\kubelet\pods\v2pipe`
	_, err = node.Filesystem.Mkdir(ctx, &filesystem.MkdirRequest{Path: staging})
	must(t, err)
	_, err = node.Volume.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: id, TargetPath: staging})
	must(t, err)
	_, err = node.Filesystem.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: staging, TargetPath: pod})
	must(t, err)
	closest, err := node.Volume.GetClosestVolumeIDFromTargetPath(ctx, &volume.GetClosestVolumeIDFromTargetPathRequest{TargetPath: pod})
	must(t, err)
	if closest.VolumeID != id {
		t.Errorf("the pod has the volume %s and not %s", closest.VolumeID, id)
	}
	_, err = node.Filesystem.Rmdir(ctx, &filesystem.RmdirRequest{Path: pod})
	must(t, err)
	_, err = node.Volume.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: id, TargetPath: staging})
	must(t, err)
	exists, err := node.Filesystem.PathExists(ctx, &filesystem.PathExistsRequest{Path: pod})
	must(t, err)
	if exists.Exists {
		t.Error("the link of the pod is left")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
