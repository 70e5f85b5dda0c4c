package main

import (
	"context"
	"net"
	"slices"
	"strings"

	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volume "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// csiProxy has a client for each API group that the plugin uses. The container needs their pipes as mounts.
type csiProxy struct {
	disks   disk.DiskClient
	files   filesystem.FilesystemClient
	volumes volume.VolumeClient
}

// connect connects when a call is made, and again after csi-proxy was restarted. The folder is for csi-proxy-sim.
func connect(folder string) (*csiProxy, error) {
	var connections []*grpc.ClientConn
	for _, group := range []string{"disk", "filesystem", "volume"} {
		name := "csi-proxy-" + group + "-v1"
		connection, err := grpc.NewClient("passthrough:///localhost",
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx, folder, name) }))
		if err != nil {
			return nil, err
		}
		connections = append(connections, connection)
	}
	return &csiProxy{
		disks:   disk.NewDiskClient(connections[0]),
		files:   filesystem.NewFilesystemClient(connections[1]),
		volumes: volume.NewVolumeClient(connections[2]),
	}, nil
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
