package nodeplugins

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/OWNER/csi-proxy/sim/simtest"
)

func TestThePluginIsReadyWhateverKubeletsFolderIs(t *testing.T) {
	for name, program := range plugins(t) {
		if !isUnderWine(program) {
			t.Run(name, func(t *testing.T) { start(t, program, `-kubelet-path=C:\k8s\kubelet`) })
		}
	}
}

func TestADiskThatWindowsHasDetectedIsStagedWithoutARescan(t *testing.T) {
	for name, program := range plugins(t) {
		if isUnderWine(program) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			node := start(t, program, "-fast")
			node.node.FailRPC("disk/Rescan", codes.Internal, simtest.MayMiss())
			_, err := csi.NewNodeClient(connect(t, node.address)).NodeStageVolume(within(t), &csi.NodeStageVolumeRequest{
				VolumeId: "disk-1", StagingTargetPath: stagingPath, VolumeCapability: ntfs,
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
