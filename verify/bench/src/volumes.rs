//! ListVolumesOnDisk and GetVolumeStats with constant responses.

use api::volume::v1::volume_server;
use api::volume::v1::{
    FormatVolumeRequest, FormatVolumeResponse, GetDiskNumberFromVolumeIdRequest, GetDiskNumberFromVolumeIdResponse,
    GetVolumeIdFromTargetPathRequest, GetVolumeIdFromTargetPathResponse, GetVolumeStatsRequest, GetVolumeStatsResponse,
    IsVolumeFormattedRequest, IsVolumeFormattedResponse, ListVolumesOnDiskRequest, ListVolumesOnDiskResponse,
    MountVolumeRequest, MountVolumeResponse, ResizeVolumeRequest, ResizeVolumeResponse, UnmountVolumeRequest,
    UnmountVolumeResponse, WriteVolumeCacheRequest, WriteVolumeCacheResponse,
};
use tonic::{Request, Response, Status};

/// The volume on disk 2 of the simulated node of `../node.toml`.
const VOLUME: &str = r"\\?\Volume{2a7b67af-6c6a-450e-866d-5e7f3e46f143}\";
const TOTAL_BYTES: i64 = 10_719_588_352;
const USED_BYTES: i64 = 16_777_216;

pub(crate) struct Volumes;

#[tonic::async_trait]
impl volume_server::Volume for Volumes {
    async fn list_volumes_on_disk(
        &self,
        _: Request<ListVolumesOnDiskRequest>,
    ) -> Result<Response<ListVolumesOnDiskResponse>, Status> {
        Ok(Response::new(ListVolumesOnDiskResponse { volume_ids: vec![VOLUME.into()] }))
    }

    async fn get_volume_stats(
        &self,
        _: Request<GetVolumeStatsRequest>,
    ) -> Result<Response<GetVolumeStatsResponse>, Status> {
        Ok(Response::new(GetVolumeStatsResponse { total_bytes: TOTAL_BYTES, used_bytes: USED_BYTES }))
    }

    async fn mount_volume(&self, _: Request<MountVolumeRequest>) -> Result<Response<MountVolumeResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn unmount_volume(
        &self,
        _: Request<UnmountVolumeRequest>,
    ) -> Result<Response<UnmountVolumeResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn is_volume_formatted(
        &self,
        _: Request<IsVolumeFormattedRequest>,
    ) -> Result<Response<IsVolumeFormattedResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn format_volume(&self, _: Request<FormatVolumeRequest>) -> Result<Response<FormatVolumeResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn resize_volume(&self, _: Request<ResizeVolumeRequest>) -> Result<Response<ResizeVolumeResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn get_disk_number_from_volume_id(
        &self,
        _: Request<GetDiskNumberFromVolumeIdRequest>,
    ) -> Result<Response<GetDiskNumberFromVolumeIdResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn get_volume_id_from_target_path(
        &self,
        _: Request<GetVolumeIdFromTargetPathRequest>,
    ) -> Result<Response<GetVolumeIdFromTargetPathResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn write_volume_cache(
        &self,
        _: Request<WriteVolumeCacheRequest>,
    ) -> Result<Response<WriteVolumeCacheResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }
}
