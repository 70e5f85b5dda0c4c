package v2pipe

import (
	"context"

	wire "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	v2 "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"google.golang.org/grpc"
)

type smbClient struct{ pipe wire.SmbClient }

func smbOver(connection grpc.ClientConnInterface) v2.Interface {
	return smbClient{wire.NewSmbClient(connection)}
}

func (c smbClient) NewSMBGlobalMapping(ctx context.Context, request *v2.NewSMBGlobalMappingRequest) (*v2.NewSMBGlobalMappingResponse, error) {
	_, err := c.pipe.NewSmbGlobalMapping(ctx, &wire.NewSmbGlobalMappingRequest{
		RemotePath: request.RemotePath,
		LocalPath:  request.LocalPath,
		Username:   request.Username,
		Password:   request.Password,
	})
	return answer(&v2.NewSMBGlobalMappingResponse{}, err)
}

func (c smbClient) RemoveSMBGlobalMapping(ctx context.Context, request *v2.RemoveSMBGlobalMappingRequest) (*v2.RemoveSMBGlobalMappingResponse, error) {
	_, err := c.pipe.RemoveSmbGlobalMapping(ctx, &wire.RemoveSmbGlobalMappingRequest{RemotePath: request.RemotePath})
	return answer(&v2.RemoveSMBGlobalMappingResponse{}, err)
}
