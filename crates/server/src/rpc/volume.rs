//! The conversions of the messages of the volume group.

use api::volume::{v1, v1beta1, v2alpha1};
use storage_ops::{
    Config, DiskNumber, FormatVolume, GetClosestVolumeIdFromTargetPath, GetDiskNumberFromVolumeId,
    GetVolumeIdFromTargetPath, GetVolumeStats, IsVolumeFormatted, ListVolumesOnDisk, MountVolume,
    OperationError, OperationResult, ResizeTarget, ResizeVolume, UnmountVolume, VolumeId,
    VolumeStats, WriteVolumeCache,
};

use crate::rpc::convert::{self, IntoOperation};

convert::requests! {
    |request, config|
    v1::ListVolumesOnDiskRequest => ListVolumesOnDisk {
        disk: DiskNumber(request.disk_number),
        partition: request.partition_number,
    }
    v1beta1::ListVolumesOnDiskRequest => ListVolumesOnDisk {
        disk: DiskNumber::parse(&request.disk_id)?,
        partition: 0,
    }
    v1::MountVolumeRequest => MountVolume {
        volume: VolumeId::parse(&request.volume_id)?,
        target: convert::loose(&request.target_path, config)?,
    }
    v1beta1::MountVolumeRequest => MountVolume {
        volume: VolumeId::parse(&request.volume_id)?,
        target: convert::loose(&request.path, config)?,
    }
    v1::UnmountVolumeRequest => UnmountVolume {
        volume: VolumeId::parse(&request.volume_id)?,
        target: convert::loose(&request.target_path, config)?,
    }
    v1beta1::DismountVolumeRequest => UnmountVolume {
        volume: VolumeId::parse(&request.volume_id)?,
        target: convert::loose(&request.path, config)?,
    }
    v1::IsVolumeFormattedRequest => IsVolumeFormatted {
        volume: VolumeId::parse(&request.volume_id)?,
    }
    v1::GetVolumeStatsRequest, v1beta1::VolumeStatsRequest => GetVolumeStats {
        volume: VolumeId::parse(&request.volume_id)?,
    }
    v1::GetDiskNumberFromVolumeIdRequest, v1beta1::VolumeDiskNumberRequest => GetDiskNumberFromVolumeId {
        volume: VolumeId::parse(&request.volume_id)?,
    }
    v1::GetVolumeIdFromTargetPathRequest => GetVolumeIdFromTargetPath {
        target: convert::loose(&request.target_path, config)?,
    }
    v1beta1::VolumeIdFromMountRequest => GetVolumeIdFromTargetPath {
        target: convert::loose(&request.mount, config)?,
    }
    v2alpha1::GetClosestVolumeIdFromTargetPathRequest => GetClosestVolumeIdFromTargetPath {
        target: convert::loose(&request.target_path, config)?,
    }
    v1::WriteVolumeCacheRequest => WriteVolumeCache {
        volume: VolumeId::parse(&request.volume_id)?,
    }
}

convert::responses! {
    |result|
    Vec<VolumeId> => v1::ListVolumesOnDiskResponse {
        volume_ids: result.iter().map(VolumeId::to_string).collect(),
    }
    bool => v1::IsVolumeFormattedResponse { formatted: result }
    VolumeStats => v1::GetVolumeStatsResponse {
        total_bytes: result.total.try_into()?,
        used_bytes: result.used.try_into()?,
    }
    // The total size, although one old driver interprets it as the free space.
    VolumeStats => v1beta1::VolumeStatsResponse {
        volume_size: result.total.try_into()?,
        volume_used_size: result.used.try_into()?,
    }
    DiskNumber => v1::GetDiskNumberFromVolumeIdResponse {
        disk_number: result.0,
    }
    DiskNumber => v1beta1::VolumeDiskNumberResponse {
        disk_number: result.0.into(),
    }
    VolumeId => v1::GetVolumeIdFromTargetPathResponse {
        volume_id: result.to_string(),
    }
    VolumeId => v1beta1::VolumeIdFromMountResponse {
        volume_id: result.to_string(),
    }
    VolumeId => v2alpha1::GetClosestVolumeIdFromTargetPathResponse {
        volume_id: result.to_string(),
    }
}

impl IntoOperation for v1::FormatVolumeRequest {
    type Operation = FormatVolume;

    // A fork of the API chooses the file system by another field.
    const ONLY_FIELDS: Option<&'static [u32]> = Some(&[1]);

    fn operation(self, _: &Config) -> OperationResult<FormatVolume> {
        Ok(FormatVolume::new(VolumeId::parse(&self.volume_id)?))
    }
}

fn size(bytes: i64) -> OperationResult<u64> {
    u64::try_from(bytes).map_err(|_| OperationError::invalid(format!("size {bytes} is negative")))
}

/// Reads a volume id; a number is the number of a disk and means its first volume.
fn resize_target(id: &str) -> OperationResult<ResizeTarget> {
    if !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(ResizeTarget::FirstVolumeOfDisk(DiskNumber::parse(id)?));
    }
    Ok(ResizeTarget::Volume(VolumeId::parse(id)?))
}

impl IntoOperation for v1::ResizeVolumeRequest {
    type Operation = ResizeVolume;

    fn operation(self, _: &Config) -> OperationResult<ResizeVolume> {
        let size = size(self.size_bytes)?;
        Ok(ResizeVolume::new(resize_target(&self.volume_id)?, size))
    }
}

impl IntoOperation for v1beta1::ResizeVolumeRequest {
    type Operation = ResizeVolume;

    fn operation(self, _: &Config) -> OperationResult<ResizeVolume> {
        let size = size(self.size)?;
        Ok(ResizeVolume::new(resize_target(&self.volume_id)?, size))
    }
}
