package v2pipe

import (
	"context"

	wire "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	v2 "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"google.golang.org/grpc"
)

type volumeClient struct{ pipe wire.VolumeClient }

func volumeOver(connection grpc.ClientConnInterface) v2.Interface {
	return volumeClient{wire.NewVolumeClient(connection)}
}

func (c volumeClient) FormatVolume(ctx context.Context, request *v2.FormatVolumeRequest) (*v2.FormatVolumeResponse, error) {
	_, err := c.pipe.FormatVolume(ctx, &wire.FormatVolumeRequest{VolumeId: request.VolumeID})
	return answer(&v2.FormatVolumeResponse{}, err)
}

func (c volumeClient) GetClosestVolumeIDFromTargetPath(ctx context.Context, request *v2.GetClosestVolumeIDFromTargetPathRequest) (*v2.GetClosestVolumeIDFromTargetPathResponse, error) {
	got, err := c.pipe.GetClosestVolumeIDFromTargetPath(ctx, &wire.GetClosestVolumeIDFromTargetPathRequest{TargetPath: request.TargetPath})
	return answer(&v2.GetClosestVolumeIDFromTargetPathResponse{VolumeID: got.GetVolumeId()}, err)
}

func (c volumeClient) GetDiskNumberFromVolumeID(ctx context.Context, request *v2.GetDiskNumberFromVolumeIDRequest) (*v2.GetDiskNumberFromVolumeIDResponse, error) {
	got, err := c.pipe.GetDiskNumberFromVolumeID(ctx, &wire.GetDiskNumberFromVolumeIDRequest{VolumeId: request.VolumeID})
	return answer(&v2.GetDiskNumberFromVolumeIDResponse{DiskNumber: got.GetDiskNumber()}, err)
}

func (c volumeClient) GetVolumeIDFromTargetPath(ctx context.Context, request *v2.GetVolumeIDFromTargetPathRequest) (*v2.GetVolumeIDFromTargetPathResponse, error) {
	got, err := c.pipe.GetVolumeIDFromTargetPath(ctx, &wire.GetVolumeIDFromTargetPathRequest{TargetPath: request.TargetPath})
	return answer(&v2.GetVolumeIDFromTargetPathResponse{VolumeID: got.GetVolumeId()}, err)
}

func (c volumeClient) GetVolumeStats(ctx context.Context, request *v2.GetVolumeStatsRequest) (*v2.GetVolumeStatsResponse, error) {
	got, err := c.pipe.GetVolumeStats(ctx, &wire.GetVolumeStatsRequest{VolumeId: request.VolumeID})
	return answer(&v2.GetVolumeStatsResponse{TotalBytes: got.GetTotalBytes(), UsedBytes: got.GetUsedBytes()}, err)
}

func (c volumeClient) IsVolumeFormatted(ctx context.Context, request *v2.IsVolumeFormattedRequest) (*v2.IsVolumeFormattedResponse, error) {
	got, err := c.pipe.IsVolumeFormatted(ctx, &wire.IsVolumeFormattedRequest{VolumeId: request.VolumeID})
	return answer(&v2.IsVolumeFormattedResponse{Formatted: got.GetFormatted()}, err)
}

func (c volumeClient) ListVolumesOnDisk(ctx context.Context, request *v2.ListVolumesOnDiskRequest) (*v2.ListVolumesOnDiskResponse, error) {
	got, err := c.pipe.ListVolumesOnDisk(ctx, &wire.ListVolumesOnDiskRequest{DiskNumber: request.DiskNumber, PartitionNumber: request.PartitionNumber})
	return answer(&v2.ListVolumesOnDiskResponse{VolumeIDs: got.GetVolumeIds()}, err)
}

func (c volumeClient) MountVolume(ctx context.Context, request *v2.MountVolumeRequest) (*v2.MountVolumeResponse, error) {
	_, err := c.pipe.MountVolume(ctx, &wire.MountVolumeRequest{VolumeId: request.VolumeID, TargetPath: request.TargetPath})
	return answer(&v2.MountVolumeResponse{}, err)
}

func (c volumeClient) ResizeVolume(ctx context.Context, request *v2.ResizeVolumeRequest) (*v2.ResizeVolumeResponse, error) {
	_, err := c.pipe.ResizeVolume(ctx, &wire.ResizeVolumeRequest{VolumeId: request.VolumeID, SizeBytes: request.SizeBytes})
	return answer(&v2.ResizeVolumeResponse{}, err)
}

func (c volumeClient) UnmountVolume(ctx context.Context, request *v2.UnmountVolumeRequest) (*v2.UnmountVolumeResponse, error) {
	_, err := c.pipe.UnmountVolume(ctx, &wire.UnmountVolumeRequest{VolumeId: request.VolumeID, TargetPath: request.TargetPath})
	return answer(&v2.UnmountVolumeResponse{}, err)
}

func (c volumeClient) WriteVolumeCache(ctx context.Context, request *v2.WriteVolumeCacheRequest) (*v2.WriteVolumeCacheResponse, error) {
	_, err := c.pipe.WriteVolumeCache(ctx, &wire.WriteVolumeCacheRequest{VolumeId: request.VolumeID})
	return answer(&v2.WriteVolumeCacheResponse{}, err)
}
