// Server is a minimal grpc-go server for the RPCs that `cargo xtask bench` measures. It shows the cost of serving
// them in Go without the daemon's checks, limits, metrics and log.
package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The only folder in which paths may be.
const workingDirectory = `C:\var\lib\kubelet\`

func main() {
	folder := flag.String("socket-folder", "", "folder for the sockets; created if missing")
	root := flag.String("root", "", "the folder that stands for "+workingDirectory)
	flag.Parse()

	if err := os.MkdirAll(*folder, 0o700); err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	filesystemv1.RegisterFilesystemServer(server, &filesystem{root: *root})
	diskv1.RegisterDiskServer(server, &disks{})
	volumev1.RegisterVolumeServer(server, &volumes{})
	failed := make(chan error)
	for _, pipe := range []string{"csi-proxy-filesystem-v1", "csi-proxy-disk-v1", "csi-proxy-volume-v1"} {
		listener, err := net.Listen("unix", filepath.Join(*folder, pipe+".sock"))
		if err != nil {
			log.Fatal(err)
		}
		go func() { failed <- server.Serve(listener) }()
	}
	log.Fatal(<-failed)
}

type filesystem struct {
	filesystemv1.UnimplementedFilesystemServer
	root string
}

func (f *filesystem) PathExists(_ context.Context, request *filesystemv1.PathExistsRequest) (*filesystemv1.PathExistsResponse, error) {
	_, err := f.lstat(request.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &filesystemv1.PathExistsResponse{Exists: err == nil}, nil
}

func (f *filesystem) IsSymlink(_ context.Context, request *filesystemv1.IsSymlinkRequest) (*filesystemv1.IsSymlinkResponse, error) {
	info, err := f.lstat(request.Path)
	if err != nil {
		return nil, err
	}
	return &filesystemv1.IsSymlinkResponse{IsSymlink: info.Mode()&fs.ModeSymlink != 0}, nil
}

func (f *filesystem) lstat(path string) (fs.FileInfo, error) {
	below, ok := strings.CutPrefix(path, workingDirectory)
	if !ok {
		return nil, status.Errorf(codes.PermissionDenied, "%s is not in %s", path, workingDirectory)
	}
	return os.Lstat(filepath.Join(f.root, strings.ReplaceAll(below, `\`, "/")))
}

// The response of the daemon for the simulated node of ../../node.toml. Number 0 is the simulator's own system disk.
var diskIDs = map[uint32]*diskv1.DiskIDs{
	0: {Page83: "60022480000000000000000000000001", SerialNumber: "SIM0000000000001"},
	1: {Page83: "Google  persistent-disk-1", SerialNumber: "bench-serial-1"},
	2: {Page83: "Google  persistent-disk-2", SerialNumber: "bench-serial-2"},
	3: {Page83: "Google  persistent-disk-3", SerialNumber: "bench-serial-3"},
	4: {Page83: "Google  persistent-disk-4", SerialNumber: "bench-serial-4"},
}

type disks struct {
	diskv1.UnimplementedDiskServer
}

// ListDiskIDs returns a constant, so that only the serving is measured.
func (*disks) ListDiskIDs(context.Context, *diskv1.ListDiskIDsRequest) (*diskv1.ListDiskIDsResponse, error) {
	return &diskv1.ListDiskIDsResponse{DiskIDs: diskIDs}, nil
}

type volumes struct {
	volumev1.UnimplementedVolumeServer
}

// ListVolumesOnDisk returns the volume on disk 2 of the simulated node.
func (*volumes) ListVolumesOnDisk(context.Context, *volumev1.ListVolumesOnDiskRequest) (*volumev1.ListVolumesOnDiskResponse, error) {
	return &volumev1.ListVolumesOnDiskResponse{VolumeIds: []string{`\\?\Volume{2a7b67af-6c6a-450e-866d-5e7f3e46f143}\`}}, nil
}

// GetVolumeStats returns the sizes of that volume.
func (*volumes) GetVolumeStats(context.Context, *volumev1.GetVolumeStatsRequest) (*volumev1.GetVolumeStatsResponse, error) {
	return &volumev1.GetVolumeStatsResponse{TotalBytes: 10719588352, UsedBytes: 16777216}, nil
}
