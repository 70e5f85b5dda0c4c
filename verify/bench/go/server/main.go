// Server is a minimal grpc-go server: PathExists as one lstat, without the daemon's checks, limits, metrics and log.
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
	listener, err := net.Listen("unix", filepath.Join(*folder, "csi-proxy-filesystem-v1.sock"))
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(server.Serve(listener))
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

func (f *filesystem) lstat(path string) (fs.FileInfo, error) {
	below, ok := strings.CutPrefix(path, workingDirectory)
	if !ok {
		return nil, status.Errorf(codes.PermissionDenied, "%s is not in %s", path, workingDirectory)
	}
	return os.Lstat(filepath.Join(f.root, strings.ReplaceAll(below, `\`, "/")))
}
