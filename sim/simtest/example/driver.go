// Package example is the part of a CSI driver that calls csi-proxy, reduced to staging and unstaging, to show how simtest
// tests one. Copy the tests, and put your driver in the place of this one.
package example

import (
	"context"
	"fmt"
	"slices"
	"strings"

	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volume "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// driver has the clients of a node's csi-proxy.
type driver struct {
	disks   disk.DiskClient
	volumes volume.VolumeClient
	files   filesystem.FilesystemClient
}

// find returns the number of the one disk with a serial number. The number is valid until Windows restarts.
func (d driver) find(ctx context.Context, serial string) (uint32, error) {
	disks, err := d.disks.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
	if err != nil {
		return 0, err
	}
	var found []uint32
	for number, ids := range disks.GetDiskIDs() {
		if ids.GetSerialNumber() == serial {
			found = append(found, number)
		}
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("%d disks have the serial number %s", len(found), serial)
	}
	return found[0], nil
}

// stage formats the disk, unless it has a file system, and mounts it at a path. It may be repeated.
func (d driver) stage(ctx context.Context, serial, path string) error {
	number, err := d.find(ctx, serial)
	if err != nil {
		return err
	}
	// First: the csi-proxy written in Go cannot partition an offline disk.
	if _, err := d.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: number, IsOnline: true}); err != nil {
		return err
	}
	// A disk that has a partition table is left as it is.
	if _, err := d.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: number}); err != nil {
		return err
	}
	volumes, err := d.volumes.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: number})
	if err != nil {
		return err
	}
	// The csi-proxy written in Go may answer with an empty list.
	if len(volumes.GetVolumeIds()) != 1 {
		return fmt.Errorf("disk %d has %d volumes, expected 1", number, len(volumes.GetVolumeIds()))
	}
	id := volumes.GetVolumeIds()[0]
	formatted, err := d.volumes.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeId: id})
	if err != nil {
		return err
	}
	// The csi-proxy written in Go formats a volume again.
	if !formatted.GetFormatted() {
		if _, err := d.volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeId: id}); err != nil {
			return err
		}
	}
	if _, err := d.files.Mkdir(ctx, &filesystem.MkdirRequest{Path: path}); err != nil {
		return err
	}
	_, err = d.volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeId: id, TargetPath: path})
	return err
}

// unstage undoes stage. It may be repeated: the disk is taken offline whether or not it is still mounted.
func (d driver) unstage(ctx context.Context, serial, path string) error {
	mounted, err := d.volumes.GetVolumeIDFromTargetPath(ctx, &volume.GetVolumeIDFromTargetPathRequest{TargetPath: path})
	switch {
	case err == nil:
		unmount := &volume.UnmountVolumeRequest{VolumeId: mounted.GetVolumeId(), TargetPath: path}
		if _, err := d.volumes.UnmountVolume(ctx, unmount); err != nil {
			return err
		}
	case !isNotMounted(err):
		return err
	}
	exists, err := d.files.PathExists(ctx, &filesystem.PathExistsRequest{Path: path})
	if err != nil {
		return err
	}
	if exists.GetExists() {
		// Without Force, which would delete what a pod has written.
		if _, err := d.files.Rmdir(ctx, &filesystem.RmdirRequest{Path: path}); err != nil {
			return err
		}
	}
	number, err := d.find(ctx, serial)
	if err != nil {
		return err
	}
	_, err = d.disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: number, IsOnline: false})
	return err
}

// notMounted has the texts with which the csi-proxy written in Go, whose errors have no codes, says that nothing is mounted at
// a path. Up to version 1.2, the first one is for a missing path and the second for a directory. Version 1.3 has the others.
var notMounted = []string{
	"because it does not exist",
	").Target, output: , error: <nil>",
	"not a mounted folder",
	"The system cannot find the file specified.",
	"The system cannot find the path specified.",
}

// isNotMounted tells whether GetVolumeIDFromTargetPath failed because no volume is mounted at the path. Code first: while
// csi-proxy starts, its pipe is missing, and the error is Unavailable with one of these texts.
func isNotMounted(err error) bool {
	switch status.Code(err) {
	case codes.NotFound:
		return true
	case codes.Unknown:
		return slices.ContainsFunc(notMounted, func(text string) bool { return strings.Contains(err.Error(), text) })
	}
	return false
}
