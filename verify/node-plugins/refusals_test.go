package nodeplugins

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A plugin refuses what it cannot do, instead of doing something else.
func TestWhatAVolumeCannotDoIsRefused(t *testing.T) {
	mounted := func(fileSystem string, mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
		return &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fileSystem}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		}
	}
	const writer = csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
	refused := map[string]*csi.VolumeCapability{
		"several nodes": mounted("ntfs", csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER),
		"file system":   mounted("ext4", writer),
		"block device": {
			AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: writer},
		},
	}
	for name, program := range plugins(t) {
		if isUnderWine(program) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			plugin := csi.NewNodeClient(connect(t, start(t, program, "-fast").address))
			for what, capability := range refused {
				_, err := plugin.NodeStageVolume(within(t), &csi.NodeStageVolumeRequest{
					VolumeId: "disk-1", StagingTargetPath: stagingPath, VolumeCapability: capability,
				})
				if status.Code(err) != codes.InvalidArgument {
					t.Errorf("%s: %v", what, err)
				}
			}
			stage := &csi.NodeStageVolumeRequest{VolumeId: "disk-1", StagingTargetPath: stagingPath, VolumeCapability: mounted("", writer)}
			if _, err := plugin.NodeStageVolume(within(t), stage); err != nil {
				t.Errorf("without a file system: %v", err)
			}
			_, err := plugin.NodePublishVolume(within(t), &csi.NodePublishVolumeRequest{
				VolumeId: "disk-1", StagingTargetPath: stagingPath, TargetPath: targetPath, VolumeCapability: ntfs, Readonly: true,
			})
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("read-only: %v", err)
			}
		})
	}
}
