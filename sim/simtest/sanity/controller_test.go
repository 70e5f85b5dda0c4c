package sanity

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/OWNER/csi-proxy/sim/simtest"
	"github.com/OWNER/csi-proxy/sim/simtest/simcontrol"
)

func TestTheHooksGiveTheDiskAndThePublishContextOfAVolume(t *testing.T) {
	const location = "Integrated : Adapter 3 : Port 0 : Target 0 : LUN 7"
	node := simtest.Start(t, simtest.NodeFile(""), simtest.Flags("-fast"))
	controller := NewController(Plugin{
		Node:           node,
		Disk:           func(string) string { return `location = "` + location + `"` },
		PublishContext: func(volumeID string) map[string]string { return map[string]string{volumeID: "7"} },
	})
	volume, err := controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: "a", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
	})
	if err != nil {
		t.Fatal(err)
	}
	id := volume.GetVolume().GetVolumeId()
	for range 2 {
		published, err := controller.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: id})
		if err != nil || published.GetPublishContext()[id] != "7" {
			t.Fatal(published, err)
		}
	}
	listed, err := node.Simulation.ListDisks(t.Context(), &simcontrol.ListDisksRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, disk := range listed.GetDisks() {
		if disk.GetNumber() == controller.DiskNumber(id) && disk.GetLocation() != location {
			t.Errorf("the disk is at %s", disk.GetLocation())
		}
	}
	if _, err := controller.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id}); err != nil {
		t.Error(err)
	}
}
