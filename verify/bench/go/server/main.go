// Server is a minimal grpc-go server for the two RPCs that `cargo xtask bench` measures. It shows the cost of serving
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
	failed := make(chan error)
	for _, pipe := range []string{"csi-proxy-filesystem-v1", "csi-proxy-disk-v1"} {
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
	below, ok := strings.CutPrefix(request.Path, workingDirectory)
	if !ok {
		return nil, status.Errorf(codes.PermissionDenied, "%s is not in %s", request.Path, workingDirectory)
	}
	_, err := os.Lstat(filepath.Join(f.root, strings.ReplaceAll(below, `\`, "/")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &filesystemv1.PathExistsResponse{Exists: err == nil}, nil
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
