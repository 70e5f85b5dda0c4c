package v2pipe

import (
	"context"

	wire "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	v2 "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"google.golang.org/grpc"
)

type diskClient struct{ pipe wire.DiskClient }

func diskOver(connection grpc.ClientConnInterface) v2.Interface {
	return diskClient{wire.NewDiskClient(connection)}
}

func (c diskClient) GetDiskState(ctx context.Context, request *v2.GetDiskStateRequest) (*v2.GetDiskStateResponse, error) {
	got, err := c.pipe.GetDiskState(ctx, &wire.GetDiskStateRequest{DiskNumber: request.DiskNumber})
	return answer(&v2.GetDiskStateResponse{IsOnline: got.GetIsOnline()}, err)
}

func (c diskClient) GetDiskStats(ctx context.Context, request *v2.GetDiskStatsRequest) (*v2.GetDiskStatsResponse, error) {
	got, err := c.pipe.GetDiskStats(ctx, &wire.GetDiskStatsRequest{DiskNumber: request.DiskNumber})
	return answer(&v2.GetDiskStatsResponse{TotalBytes: got.GetTotalBytes()}, err)
}

func (c diskClient) ListDiskIDs(ctx context.Context, _ *v2.ListDiskIDsRequest) (*v2.ListDiskIDsResponse, error) {
	got, err := c.pipe.ListDiskIDs(ctx, &wire.ListDiskIDsRequest{})
	ids := make(map[uint32]*v2.DiskIDs, len(got.GetDiskIDs()))
	for number, disk := range got.GetDiskIDs() {
		ids[number] = &v2.DiskIDs{Page83: disk.GetPage83(), SerialNumber: disk.GetSerialNumber()}
	}
	return answer(&v2.ListDiskIDsResponse{DiskIDs: ids}, err)
}

func (c diskClient) ListDiskLocations(ctx context.Context, _ *v2.ListDiskLocationsRequest) (*v2.ListDiskLocationsResponse, error) {
	got, err := c.pipe.ListDiskLocations(ctx, &wire.ListDiskLocationsRequest{})
	locations := make(map[uint32]*v2.DiskLocation, len(got.GetDiskLocations()))
	for number, disk := range got.GetDiskLocations() {
		locations[number] = &v2.DiskLocation{Adapter: disk.GetAdapter(), Bus: disk.GetBus(), Target: disk.GetTarget(), LUNID: disk.GetLUNID()}
	}
	return answer(&v2.ListDiskLocationsResponse{DiskLocations: locations}, err)
}

func (c diskClient) PartitionDisk(ctx context.Context, request *v2.PartitionDiskRequest) (*v2.PartitionDiskResponse, error) {
	_, err := c.pipe.PartitionDisk(ctx, &wire.PartitionDiskRequest{DiskNumber: request.DiskNumber})
	return answer(&v2.PartitionDiskResponse{}, err)
}

func (c diskClient) Rescan(ctx context.Context, _ *v2.RescanRequest) (*v2.RescanResponse, error) {
	_, err := c.pipe.Rescan(ctx, &wire.RescanRequest{})
	return answer(&v2.RescanResponse{}, err)
}

func (c diskClient) SetDiskState(ctx context.Context, request *v2.SetDiskStateRequest) (*v2.SetDiskStateResponse, error) {
	_, err := c.pipe.SetDiskState(ctx, &wire.SetDiskStateRequest{DiskNumber: request.DiskNumber, IsOnline: request.IsOnline})
	return answer(&v2.SetDiskStateResponse{}, err)
}
