package v2pipe

import (
	"context"

	wire "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	v2 "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type filesystemClient struct{ pipe wire.FilesystemClient }

func filesystemOver(connection grpc.ClientConnInterface) v2.Interface {
	return filesystemClient{wire.NewFilesystemClient(connection)}
}

func (c filesystemClient) CreateSymlink(ctx context.Context, request *v2.CreateSymlinkRequest) (*v2.CreateSymlinkResponse, error) {
	_, err := c.pipe.CreateSymlink(ctx, &wire.CreateSymlinkRequest{SourcePath: request.SourcePath, TargetPath: request.TargetPath})
	return answer(&v2.CreateSymlinkResponse{}, err)
}

func (c filesystemClient) IsSymlink(ctx context.Context, request *v2.IsSymlinkRequest) (*v2.IsSymlinkResponse, error) {
	got, err := c.pipe.IsSymlink(ctx, &wire.IsSymlinkRequest{Path: request.Path})
	return answer(&v2.IsSymlinkResponse{IsSymlink: got.GetIsSymlink()}, err)
}

func (c filesystemClient) Mkdir(ctx context.Context, request *v2.MkdirRequest) (*v2.MkdirResponse, error) {
	_, err := c.pipe.Mkdir(ctx, &wire.MkdirRequest{Path: request.Path})
	return answer(&v2.MkdirResponse{}, err)
}

func (c filesystemClient) PathExists(ctx context.Context, request *v2.PathExistsRequest) (*v2.PathExistsResponse, error) {
	got, err := c.pipe.PathExists(ctx, &wire.PathExistsRequest{Path: request.Path})
	return answer(&v2.PathExistsResponse{Exists: got.GetExists()}, err)
}

// PathValid always fails. The library follows links to say whether a share answers, and no RPC does. No public driver
// calls this method.
func (c filesystemClient) PathValid(context.Context, *v2.PathValidRequest) (*v2.PathValidResponse, error) {
	return nil, status.Error(codes.Unimplemented, "csi-proxy has no RPC for PathValid; PathExists tells whether an entry exists and does not follow links")
}

func (c filesystemClient) Rmdir(ctx context.Context, request *v2.RmdirRequest) (*v2.RmdirResponse, error) {
	_, err := c.pipe.Rmdir(ctx, &wire.RmdirRequest{Path: request.Path, Force: request.Force})
	return answer(&v2.RmdirResponse{}, err)
}

func (c filesystemClient) RmdirContents(ctx context.Context, request *v2.RmdirContentsRequest) (*v2.RmdirContentsResponse, error) {
	_, err := c.pipe.RmdirContents(ctx, &wire.RmdirContentsRequest{Path: request.Path})
	return answer(&v2.RmdirContentsResponse{}, err)
}
