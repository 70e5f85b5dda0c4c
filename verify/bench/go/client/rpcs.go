package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
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
	"ListDiskIDs": {"csi-proxy-disk-v1", func(ctx context.Context, connection grpc.ClientConnInterface, _ string) (proto.Message, string, error) {
		response, err := diskv1.NewDiskClient(connection).ListDiskIDs(ctx, &diskv1.ListDiskIDsRequest{})
		return response, strconv.Itoa(len(response.GetDiskIDs())) + " disks", err
	}},
}

func rpcNames() []string {
	return slices.Sorted(maps.Keys(rpcs))
}

// checked calls the RPC and fails unless the answer is the expected one. For an error, the answer is its code.
func (r rpc) checked(connection grpc.ClientConnInterface, o options) (proto.Message, error) {
	response, answer, err := r.call(context.Background(), connection, o.path)
	if err != nil {
		answer = status.Code(err).String()
	}
	if answer != o.expect {
		return nil, fmt.Errorf("%s %s: expected %s, got %s (%v)", o.rpc, o.path, o.expect, answer, err)
	}
	return response, nil
}

// connect waits until the server accepts connections on the socket.
func connect(socket string) (*grpc.ClientConn, error) {
	if err := awaitListener(socket); err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return grpc.NewClient("passthrough:///"+socket,
		grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// A driver sends the pipe's path, which tonic refuses. All servers must receive the same authority, so it is a
		// valid one.
		grpc.WithAuthority("localhost"))
}

// awaitListener polls by itself, since grpc-go waits a second before it dials again.
func awaitListener(socket string) error {
	deadline := time.Now().Add(patience)
	for {
		connection, err := net.Dial("unix", socket)
		if err == nil {
			return connection.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server does not accept connections: %w", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
