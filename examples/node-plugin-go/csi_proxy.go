package main

import (
	"context"
	"net"
	"strings"

	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volume "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
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

// isNotMounted tells whether GetVolumeIDFromTargetPath failed because no volume is mounted at the path. The text is the
// same in every csi-proxy; the csi-proxy written in Go has no status codes.
func isNotMounted(err error) bool {
	return err != nil && strings.Contains(err.Error(), "because it does not exist")
}
