package main

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volume "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// node is the node service. Kubelet repeats its calls, so each does only what has not been done yet, also after a failure
// or a crash of csi-proxy at any point. A failed call of csi-proxy is returned with its status code, by which kubelet decides
// whether the operation may still be running.
//
// The ID of a volume is the serial number of its disk. NodeUnstageVolume gets only the ID, and must find the disk when the
// volume is no longer mounted. A driver with other IDs keeps the serial number in a file from NodeStageVolume on.
type node struct {
	csi.UnimplementedNodeServer
	proxy *csiProxy
	id    string
}

func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.id}, nil
}

func (*node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, capability := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
	} {
		rpc := &csi.NodeServiceCapability_RPC{Type: capability}
		response.Capabilities = append(response.Capabilities,
			&csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: rpc}})
	}
	return response, nil
}

// NodeStageVolume formats the disk if it is new, and mounts its volume in the staging directory.
func (n *node) NodeStageVolume(ctx context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	staging := windowsPath(req.GetStagingTargetPath())
	if err := required("volume ID", req.GetVolumeId(), "staging target path", staging); err != nil {
		return nil, err
	}
	if err := checkCapability(req.GetVolumeCapability()); err != nil {
		return nil, err
	}
	number, found, err := n.findDisk(ctx, req.GetVolumeId())
	if err == nil && !found {
		// Only now: a bus that does not answer holds up a rescan, and so would hold up all volumes.
		if _, err := n.proxy.disks.Rescan(ctx, &disk.RescanRequest{}); err != nil {
			return nil, err
		}
		number, found, err = n.findDisk(ctx, req.GetVolumeId())
	}
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, status.Errorf(codes.NotFound, "no disk has the serial number %s", req.GetVolumeId())
	}
	// First: the csi-proxy written in Go cannot partition an offline disk.
	if _, err := n.proxy.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: number, IsOnline: true}); err != nil {
		return nil, err
	}
	// A disk that has a partition table is left as it is.
	if _, err := n.proxy.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: number}); err != nil {
		return nil, err
	}
	onDisk, err := n.proxy.volumes.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: number})
	if err != nil {
		return nil, err
	}
	if len(onDisk.GetVolumeIds()) != 1 {
		return nil, status.Errorf(codes.FailedPrecondition, "disk %d has %d volumes, expected 1", number, len(onDisk.GetVolumeIds()))
	}
	id := onDisk.GetVolumeIds()[0]
	formatted, err := n.proxy.volumes.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeId: id})
	if err != nil {
		return nil, err
	}
	if !formatted.GetFormatted() {
		if _, err := n.proxy.volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeId: id}); err != nil {
			return nil, err
		}
	}
	if err := n.mount(ctx, id, staging); err != nil {
		return nil, err
	}
	// The disk may be larger than the volume: it may have grown while it was detached, or be a copy of a smaller one.
	if _, err := n.proxy.volumes.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeId: id}); err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// findDisk returns the number of the disk with exactly this serial number, if there is one. Numbers change when Windows
// restarts.
func (n *node) findDisk(ctx context.Context, serialNumber string) (number uint32, found bool, err error) {
	list, err := n.proxy.disks.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
	if err != nil {
		return 0, false, err
	}
	for other, ids := range list.GetDiskIDs() {
		if strings.TrimSpace(ids.GetSerialNumber()) != serialNumber {
			continue
		}
		if found {
			// Do not guess: one of them would be formatted.
			return 0, false, status.Errorf(codes.FailedPrecondition, "several disks have the serial number %s", serialNumber)
		}
		number, found = other, true
	}
	return number, found, nil
}

// mount mounts a volume in a directory, unless it is mounted there.
func (n *node) mount(ctx context.Context, id, path string) error {
	// Kubelet has created the directory. Mkdir succeeds if it exists.
	if _, err := n.proxy.files.Mkdir(ctx, &filesystem.MkdirRequest{Path: path}); err != nil {
		return err
	}
	mounted, err := n.mountedAt(ctx, path)
	if err != nil || mounted == id {
		return err
	}
	if mounted != "" {
		return status.Errorf(codes.FailedPrecondition, "%s has the volume %s", path, mounted)
	}
	_, err = n.proxy.volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeId: id, TargetPath: path})
	return err
}

// mountedAt returns the volume that is mounted at a path or that a link at this path leads to, or nothing.
func (n *node) mountedAt(ctx context.Context, path string) (string, error) {
	request := &volume.GetVolumeIDFromTargetPathRequest{TargetPath: path}
	response, err := n.proxy.volumes.GetVolumeIDFromTargetPath(ctx, request)
	if isNotMounted(err) {
		return "", nil
	}
	return response.GetVolumeId(), err
}

// NodeUnstageVolume unmounts the volume and takes its disk offline, so that it can be detached. Kubelet removes the directory.
func (n *node) NodeUnstageVolume(ctx context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	staging := windowsPath(req.GetStagingTargetPath())
	if err := required("volume ID", req.GetVolumeId(), "staging target path", staging); err != nil {
		return nil, err
	}
	number, found, err := n.findDisk(ctx, req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	id, err := n.mountedAt(ctx, staging)
	if err != nil {
		return nil, err
	}
	if id != "" {
		onDisk, err := n.proxy.volumes.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeId: id})
		if err != nil {
			return nil, err
		}
		if !found || onDisk.GetDiskNumber() != number {
			return nil, status.Errorf(codes.FailedPrecondition, "%s has the volume of disk %d", staging, onDisk.GetDiskNumber())
		}
		// This writes the cache of the volume first.
		if _, err := n.proxy.volumes.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeId: id, TargetPath: staging}); err != nil {
			return nil, err
		}
	}
	// Not only if a volume was mounted: an earlier attempt may have failed after it had unmounted the volume.
	if found {
		if _, err := n.proxy.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: number, IsOnline: false}); err != nil {
			return nil, err
		}
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume creates a link to the staging directory, which the container runtime follows.
func (n *node) NodePublishVolume(ctx context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	staging, target := windowsPath(req.GetStagingTargetPath()), windowsPath(req.GetTargetPath())
	if err := required("volume ID", req.GetVolumeId(), "target path", target); err != nil {
		return nil, err
	}
	if err := checkCapability(req.GetVolumeCapability()); err != nil {
		return nil, err
	}
	if err := required("staging target path", staging); err != nil {
		return nil, err
	}
	if req.GetReadonly() {
		return nil, status.Error(codes.InvalidArgument, "read-only volumes are not supported")
	}
	staged, err := n.mountedAt(ctx, staging)
	if err != nil {
		return nil, err
	}
	if staged == "" {
		return nil, status.Errorf(codes.FailedPrecondition, "no volume is staged at %s", staging)
	}
	// The csi-proxy written in Go refuses to create a link that exists.
	if published, err := n.mountedAt(ctx, target); err != nil {
		return nil, err
	} else if published == staged {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := n.removeTarget(ctx, target); err != nil {
		return nil, err
	}
	// Kubelet has created the parent directory of the target.
	parent := target[:max(strings.LastIndex(target, `\`), 0)]
	if _, err := n.proxy.files.Mkdir(ctx, &filesystem.MkdirRequest{Path: parent}); err != nil {
		return nil, err
	}
	link := &filesystem.CreateSymlinkRequest{SourcePath: staging, TargetPath: target}
	if _, err := n.proxy.files.CreateSymlink(ctx, link); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume removes the link.
func (n *node) NodeUnpublishVolume(ctx context.Context, req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	target := windowsPath(req.GetTargetPath())
	if err := required("volume ID", req.GetVolumeId(), "target path", target); err != nil {
		return nil, err
	}
	if err := n.removeTarget(ctx, target); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

// removeTarget removes a link, or an empty directory. Without Force, csi-proxy refuses to remove a directory with files in it,
// which may be a pod's data.
func (n *node) removeTarget(ctx context.Context, target string) error {
	link, err := n.proxy.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: target})
	if err != nil || !link.GetExists() {
		return err
	}
	_, err = n.proxy.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: target})
	return err
}

// NodeGetVolumeStats reports the size of the file system.
func (n *node) NodeGetVolumeStats(ctx context.Context, req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	id, err := n.volumeAt(ctx, req.GetVolumeId(), req.GetVolumePath())
	if err != nil {
		return nil, err
	}
	stats, err := n.proxy.volumes.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeId: id})
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{
		Unit:      csi.VolumeUsage_BYTES,
		Total:     stats.GetTotalBytes(),
		Used:      stats.GetUsedBytes(),
		Available: stats.GetTotalBytes() - stats.GetUsedBytes(),
	}}}, nil
}

// NodeExpandVolume grows the volume to the size of its disk, which the controller has made larger.
func (n *node) NodeExpandVolume(ctx context.Context, req *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	id, err := n.volumeAt(ctx, req.GetVolumeId(), req.GetVolumePath())
	if err != nil {
		return nil, err
	}
	if _, err := n.proxy.disks.Rescan(ctx, &disk.RescanRequest{}); err != nil {
		return nil, err
	}
	if _, err := n.proxy.volumes.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeId: id}); err != nil {
		return nil, err
	}
	onDisk, err := n.proxy.volumes.GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeId: id})
	if err != nil {
		return nil, err
	}
	// The file system is somewhat smaller than the disk; the capacity is that of the disk.
	stats, err := n.proxy.disks.GetDiskStats(ctx, &disk.GetDiskStatsRequest{DiskNumber: onDisk.GetDiskNumber()})
	if err != nil {
		return nil, err
	}
	if size, requested := stats.GetTotalBytes(), req.GetCapacityRange().GetRequiredBytes(); size < requested {
		return nil, status.Errorf(codes.FailedPrecondition,
			"disk %d has %d bytes, fewer than the requested %d: the controller has not grown it", onDisk.GetDiskNumber(), size, requested)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: stats.GetTotalBytes()}, nil
}

// volumeAt checks the arguments of a request about a published volume, and returns the volume.
func (n *node) volumeAt(ctx context.Context, volumeID, path string) (string, error) {
	path = windowsPath(path)
	if err := required("volume ID", volumeID, "volume path", path); err != nil {
		return "", err
	}
	id, err := n.mountedAt(ctx, path)
	if status.Code(err) == codes.InvalidArgument || (err == nil && id == "") {
		return "", status.Errorf(codes.NotFound, "no volume is mounted at %s", path)
	}
	return id, err
}

// checkCapability refuses what the plugin does not support.
func checkCapability(capability *csi.VolumeCapability) error {
	if capability.GetMount() == nil {
		return status.Error(codes.InvalidArgument, "the volume capability is missing, or is not for a mounted volume")
	}
	if fileSystem := capability.GetMount().GetFsType(); fileSystem != "" && !strings.EqualFold(fileSystem, "ntfs") {
		return status.Errorf(codes.InvalidArgument, "the file system %s is not supported, only NTFS", fileSystem)
	}
	switch mode := capability.GetAccessMode().GetMode(); mode {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		return nil
	default:
		return status.Errorf(codes.InvalidArgument, "the access mode %v is not supported: NTFS cannot be shared between nodes", mode)
	}
}

// required returns an error for the first value that is empty. Each value follows its name.
func required(namesAndValues ...string) error {
	for i := 0; i < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] == "" {
			return status.Errorf(codes.InvalidArgument, "the %s is missing", namesAndValues[i])
		}
	}
	return nil
}

// windowsPath returns a path of kubelet as csi-proxy requires it: with backslashes and a drive. By default, the root folder of
// kubelet is \var\lib\kubelet, without a drive.
func windowsPath(path string) string {
	path = strings.ReplaceAll(path, "/", `\`)
	if strings.HasPrefix(path, `\`) && !strings.HasPrefix(path, `\\`) {
		path = "C:" + path
	}
	return path
}
