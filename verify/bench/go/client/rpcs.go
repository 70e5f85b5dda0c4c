package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync/atomic"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// An rpc is an RPC that can be measured: the pipe that serves it, and how to call it with the published stubs.
type rpc struct {
	pipe string
	// call returns the response, and its content in a word or two.
	call func(ctx context.Context, connection grpc.ClientConnInterface, path string) (proto.Message, string, error)
}

var rpcs = map[string]rpc{
	"PathExists": {"csi-proxy-filesystem-v1", func(ctx context.Context, connection grpc.ClientConnInterface, path string) (proto.Message, string, error) {
		response, err := filesystemv1.NewFilesystemClient(connection).PathExists(ctx, &filesystemv1.PathExistsRequest{Path: path})
		return response, strconv.FormatBool(response.GetExists()), err
	}},
	"IsSymlink": {"csi-proxy-filesystem-v1", func(ctx context.Context, connection grpc.ClientConnInterface, path string) (proto.Message, string, error) {
		response, err := filesystemv1.NewFilesystemClient(connection).IsSymlink(ctx, &filesystemv1.IsSymlinkRequest{Path: path})
		return response, strconv.FormatBool(response.GetIsSymlink()), err
	}},
	"ListDiskIDs": {"csi-proxy-disk-v1", func(ctx context.Context, connection grpc.ClientConnInterface, _ string) (proto.Message, string, error) {
		response, err := diskv1.NewDiskClient(connection).ListDiskIDs(ctx, &diskv1.ListDiskIDsRequest{})
		return response, strconv.Itoa(len(response.GetDiskIDs())) + " disks", err
	}},
	// The path is the number of the disk.
	"ListVolumesOnDisk": {"csi-proxy-volume-v1", func(ctx context.Context, connection grpc.ClientConnInterface, disk string) (proto.Message, string, error) {
		response, err := listVolumes(ctx, connection, disk)
		return response, strconv.Itoa(len(response.GetVolumeIds())) + " volumes", err
	}},
	// The path is the volume.
	"GetVolumeStats": {"csi-proxy-volume-v1", func(ctx context.Context, connection grpc.ClientConnInterface, volume string) (proto.Message, string, error) {
		response, err := volumev1.NewVolumeClient(connection).GetVolumeStats(ctx, &volumev1.GetVolumeStatsRequest{VolumeId: volume})
		return response, strconv.FormatInt(response.GetTotalBytes(), 10) + " bytes", err
	}},
}

func listVolumes(ctx context.Context, connection grpc.ClientConnInterface, disk string) (*volumev1.ListVolumesOnDiskResponse, error) {
	number, err := strconv.ParseUint(disk, 10, 32)
	if err != nil {
		return nil, err
	}
	request := volumev1.ListVolumesOnDiskRequest{DiskNumber: uint32(number)}
	return volumev1.NewVolumeClient(connection).ListVolumesOnDisk(ctx, &request)
}

func rpcNames() []string {
	return slices.Sorted(maps.Keys(rpcs))
}

// newServer returns what the options say to call.
func newServer(o options) (server, error) {
	if o.rpc == pingPong {
		return pingPongServer{o}, nil
	}
	rpc, ok := rpcs[o.rpc]
	if !ok {
		return nil, fmt.Errorf("unknown RPC %q", o.rpc)
	}
	return &grpcServer{rpc: rpc, options: o}, nil
}

// A grpcServer is called through the published stubs.
type grpcServer struct {
	rpc     rpc
	options options
	bytes   atomic.Int64
}

func (s *grpcServer) pipe() string { return s.rpc.pipe }

func (s *grpcServer) responseBytes() int { return int(s.bytes.Load()) }

func (s *grpcServer) connect() (connection, error) {
	channel, err := newChannel(s.options.folder, s.rpc.pipe)
	return &grpcConnection{s, channel}, err
}

type grpcConnection struct {
	server *grpcServer
	*grpc.ClientConn
}

// call fails unless the answer is the expected one. For an error, the answer is its code.
func (c *grpcConnection) call() error {
	rpc, o := c.server.rpc, c.server.options
	response, answer, err := rpc.call(context.Background(), c.ClientConn, o.path)
	if err != nil {
		answer = status.Code(err).String()
	}
	if answer != o.expect {
		return fmt.Errorf("%s %s: expected %s, got %s (%v)", o.rpc, o.path, o.expect, answer, err)
	}
	if size := int64(proto.Size(response)); c.server.bytes.Load() != size {
		c.server.bytes.Store(size)
	}
	return nil
}

// newChannel returns a connection that is opened by the first call.
func newChannel(folder, pipe string) (*grpc.ClientConn, error) {
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		connection, err := dial(ctx, folder, pipe)
		if err != nil {
			return nil, err
		}
		return counted{connection}, nil
	}
	return grpc.NewClient("passthrough:///"+pipe,
		grpc.WithContextDialer(dialer),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// A driver sends the pipe's path, which tonic refuses. All servers must receive the same authority, so it is a
		// valid one.
		grpc.WithAuthority("localhost"))
}
