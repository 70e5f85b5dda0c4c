package v2pipe

import (
	disk "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	filesystem "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	filesystemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	iscsi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	smb "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	system "github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	volume "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// library returns the library, which acts within this process.
func library() (*Node, error) {
	files, err := filesystem.New(filesystemapi.New())
	if err != nil {
		return nil, err
	}
	node := &Node{Filesystem: files}
	if node.Disk, err = disk.New(diskapi.New()); err != nil {
		return nil, err
	}
	if node.ISCSI, err = iscsi.New(iscsiapi.New()); err != nil {
		return nil, err
	}
	if node.SMB, err = smb.New(smbapi.New(), files); err != nil {
		return nil, err
	}
	if node.System, err = system.New(systemapi.New()); err != nil {
		return nil, err
	}
	if node.Volume, err = volume.New(volumeapi.New()); err != nil {
		return nil, err
	}
	return node, nil
}
