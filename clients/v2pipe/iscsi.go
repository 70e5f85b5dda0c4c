package v2pipe

import (
	"context"

	wire "github.com/kubernetes-csi/csi-proxy/client/api/iscsi/v1alpha2"
	v2 "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	"google.golang.org/grpc"
)

type iscsiClient struct{ pipe wire.IscsiClient }

func iscsiOver(connection grpc.ClientConnInterface) v2.Interface {
	return iscsiClient{wire.NewIscsiClient(connection)}
}

// onWire returns a portal as a message; nil stays nil, which the daemon refuses.
func onWire(portal *v2.TargetPortal) *wire.TargetPortal {
	if portal == nil {
		return nil
	}
	return &wire.TargetPortal{TargetAddress: portal.TargetAddress, TargetPort: portal.TargetPort}
}

func (c iscsiClient) AddTargetPortal(ctx context.Context, request *v2.AddTargetPortalRequest) (*v2.AddTargetPortalResponse, error) {
	_, err := c.pipe.AddTargetPortal(ctx, &wire.AddTargetPortalRequest{TargetPortal: onWire(request.TargetPortal)})
	return answer(&v2.AddTargetPortalResponse{}, err)
}

func (c iscsiClient) ConnectTarget(ctx context.Context, request *v2.ConnectTargetRequest) (*v2.ConnectTargetResponse, error) {
	_, err := c.pipe.ConnectTarget(ctx, &wire.ConnectTargetRequest{
		TargetPortal: onWire(request.TargetPortal),
		Iqn:          request.IQN,
		AuthType:     wire.AuthenticationType(request.AuthType),
		ChapUsername: request.ChapUsername,
		ChapSecret:   request.ChapSecret,
	})
	return answer(&v2.ConnectTargetResponse{}, err)
}

func (c iscsiClient) DisconnectTarget(ctx context.Context, request *v2.DisconnectTargetRequest) (*v2.DisconnectTargetResponse, error) {
	_, err := c.pipe.DisconnectTarget(ctx, &wire.DisconnectTargetRequest{TargetPortal: onWire(request.TargetPortal), Iqn: request.IQN})
	return answer(&v2.DisconnectTargetResponse{}, err)
}

func (c iscsiClient) DiscoverTargetPortal(ctx context.Context, request *v2.DiscoverTargetPortalRequest) (*v2.DiscoverTargetPortalResponse, error) {
	got, err := c.pipe.DiscoverTargetPortal(ctx, &wire.DiscoverTargetPortalRequest{TargetPortal: onWire(request.TargetPortal)})
	return answer(&v2.DiscoverTargetPortalResponse{IQNs: got.GetIqns()}, err)
}

func (c iscsiClient) GetTargetDisks(ctx context.Context, request *v2.GetTargetDisksRequest) (*v2.GetTargetDisksResponse, error) {
	got, err := c.pipe.GetTargetDisks(ctx, &wire.GetTargetDisksRequest{TargetPortal: onWire(request.TargetPortal), Iqn: request.IQN})
	return answer(&v2.GetTargetDisksResponse{DiskIDs: got.GetDiskIDs()}, err)
}

func (c iscsiClient) ListTargetPortals(ctx context.Context, _ *v2.ListTargetPortalsRequest) (*v2.ListTargetPortalsResponse, error) {
	got, err := c.pipe.ListTargetPortals(ctx, &wire.ListTargetPortalsRequest{})
	var portals []*v2.TargetPortal
	for _, portal := range got.GetTargetPortals() {
		portals = append(portals, &v2.TargetPortal{TargetAddress: portal.GetTargetAddress(), TargetPort: portal.GetTargetPort()})
	}
	return answer(&v2.ListTargetPortalsResponse{TargetPortals: portals}, err)
}

func (c iscsiClient) RemoveTargetPortal(ctx context.Context, request *v2.RemoveTargetPortalRequest) (*v2.RemoveTargetPortalResponse, error) {
	_, err := c.pipe.RemoveTargetPortal(ctx, &wire.RemoveTargetPortalRequest{TargetPortal: onWire(request.TargetPortal)})
	return answer(&v2.RemoveTargetPortalResponse{}, err)
}

func (c iscsiClient) SetMutualChapSecret(ctx context.Context, request *v2.SetMutualChapSecretRequest) (*v2.SetMutualChapSecretResponse, error) {
	_, err := c.pipe.SetMutualChapSecret(ctx, &wire.SetMutualChapSecretRequest{MutualChapSecret: request.MutualChapSecret})
	return answer(&v2.SetMutualChapSecretResponse{}, err)
}
