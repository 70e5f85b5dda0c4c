//! The conversions of the messages of the volume group.

use std::num::TryFromIntError;

use api::volume::{v1, v1beta1, v2alpha1};
use storage_ops::{
    Config, DiskNumber, FormatVolume, GetClosestVolumeIdFromTargetPath, GetDiskNumberFromVolumeId,
    GetVolumeIdFromTargetPath, GetVolumeStats, IsVolumeFormatted, ListVolumesOnDisk, MountVolume,
    OperationError, OperationResult, ResizeTarget, ResizeVolume, UnmountVolume, VolumeId,
    VolumeStats, WriteVolumeCache,
};

use crate::rpc::convert::{self, IntoOperation, IntoResponse};

impl IntoOperation for v1::ListVolumesOnDiskRequest {
    type Operation = ListVolumesOnDisk;

    fn operation(self, _: &Config) -> OperationResult<ListVolumesOnDisk> {
        Ok(ListVolumesOnDisk {
            disk: DiskNumber(self.disk_number),
            partition: self.partition_number,
        })
    }
}

impl IntoOperation for v1beta1::ListVolumesOnDiskRequest {
    type Operation = ListVolumesOnDisk;

    fn operation(self, _: &Config) -> OperationResult<ListVolumesOnDisk> {
        Ok(ListVolumesOnDisk {
            disk: DiskNumber::parse(&self.disk_id)?,
            partition: 0,
        })
    }
}

impl IntoResponse<v1::ListVolumesOnDiskResponse> for Vec<VolumeId> {
    fn into_response(self) -> Result<v1::ListVolumesOnDiskResponse, TryFromIntError> {
        Ok(v1::ListVolumesOnDiskResponse {
            volume_ids: self.iter().map(VolumeId::to_string).collect(),
        })
    }
}

impl IntoOperation for v1::MountVolumeRequest {
    type Operation = MountVolume;

    fn operation(self, config: &Config) -> OperationResult<MountVolume> {
        let volume = VolumeId::parse(&self.volume_id)?;
        Ok(MountVolume {
            volume,
            target: convert::loose(&self.target_path, config)?,
        })
    }
}

impl IntoOperation for v1beta1::MountVolumeRequest {
    type Operation = MountVolume;

    fn operation(self, config: &Config) -> OperationResult<MountVolume> {
        let volume = VolumeId::parse(&self.volume_id)?;
        Ok(MountVolume {
            volume,
            target: convert::loose(&self.path, config)?,
        })
    }
}

impl IntoOperation for v1::UnmountVolumeRequest {
    type Operation = UnmountVolume;

    fn operation(self, config: &Config) -> OperationResult<UnmountVolume> {
        let volume = VolumeId::parse(&self.volume_id)?;
        Ok(UnmountVolume {
            volume,
            target: convert::loose(&self.target_path, config)?,
        })
    }
}

impl IntoOperation for v1beta1::DismountVolumeRequest {
    type Operation = UnmountVolume;

    fn operation(self, config: &Config) -> OperationResult<UnmountVolume> {
        let volume = VolumeId::parse(&self.volume_id)?;
        Ok(UnmountVolume {
            volume,
            target: convert::loose(&self.path, config)?,
        })
    }
}

impl IntoOperation for v1::IsVolumeFormattedRequest {
    type Operation = IsVolumeFormatted;

    fn operation(self, _: &Config) -> OperationResult<IsVolumeFormatted> {
        Ok(IsVolumeFormatted {
            volume: VolumeId::parse(&self.volume_id)?,
        })
    }
}

impl IntoResponse<v1::IsVolumeFormattedResponse> for bool {
    fn into_response(self) -> Result<v1::IsVolumeFormattedResponse, TryFromIntError> {
        Ok(v1::IsVolumeFormattedResponse { formatted: self })
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

impl IntoOperation for v1::GetVolumeStatsRequest {
    type Operation = GetVolumeStats;

    fn operation(self, _: &Config) -> OperationResult<GetVolumeStats> {
        Ok(GetVolumeStats {
            volume: VolumeId::parse(&self.volume_id)?,
        })
    }
}

impl IntoOperation for v1beta1::VolumeStatsRequest {
    type Operation = GetVolumeStats;

    fn operation(self, _: &Config) -> OperationResult<GetVolumeStats> {
        Ok(GetVolumeStats {
            volume: VolumeId::parse(&self.volume_id)?,
        })
    }
}

impl IntoResponse<v1::GetVolumeStatsResponse> for VolumeStats {
    fn into_response(self) -> Result<v1::GetVolumeStatsResponse, TryFromIntError> {
        Ok(v1::GetVolumeStatsResponse {
            total_bytes: self.total.try_into()?,
            used_bytes: self.used.try_into()?,
        })
    }
}

impl IntoResponse<v1beta1::VolumeStatsResponse> for VolumeStats {
    fn into_response(self) -> Result<v1beta1::VolumeStatsResponse, TryFromIntError> {
        // The total size, although one old driver interprets it as the free space.
        let (volume_size, volume_used_size) = (self.total.try_into()?, self.used.try_into()?);
        Ok(v1beta1::VolumeStatsResponse {
            volume_size,
            volume_used_size,
        })
    }
}

impl IntoOperation for v1::GetDiskNumberFromVolumeIdRequest {
    type Operation = GetDiskNumberFromVolumeId;

    fn operation(self, _: &Config) -> OperationResult<GetDiskNumberFromVolumeId> {
        Ok(GetDiskNumberFromVolumeId {
            volume: VolumeId::parse(&self.volume_id)?,
        })
    }
}

impl IntoOperation for v1beta1::VolumeDiskNumberRequest {
    type Operation = GetDiskNumberFromVolumeId;

    fn operation(self, _: &Config) -> OperationResult<GetDiskNumberFromVolumeId> {
        Ok(GetDiskNumberFromVolumeId {
            volume: VolumeId::parse(&self.volume_id)?,
        })
    }
}

impl IntoResponse<v1::GetDiskNumberFromVolumeIdResponse> for DiskNumber {
    fn into_response(self) -> Result<v1::GetDiskNumberFromVolumeIdResponse, TryFromIntError> {
        Ok(v1::GetDiskNumberFromVolumeIdResponse {
            disk_number: self.0,
        })
    }
}

impl IntoResponse<v1beta1::VolumeDiskNumberResponse> for DiskNumber {
    fn into_response(self) -> Result<v1beta1::VolumeDiskNumberResponse, TryFromIntError> {
        Ok(v1beta1::VolumeDiskNumberResponse {
            disk_number: self.0.into(),
        })
    }
}

impl IntoOperation for v1::GetVolumeIdFromTargetPathRequest {
    type Operation = GetVolumeIdFromTargetPath;

    fn operation(self, config: &Config) -> OperationResult<GetVolumeIdFromTargetPath> {
        Ok(GetVolumeIdFromTargetPath {
            target: convert::loose(&self.target_path, config)?,
        })
    }
}

impl IntoOperation for v1beta1::VolumeIdFromMountRequest {
    type Operation = GetVolumeIdFromTargetPath;

    fn operation(self, config: &Config) -> OperationResult<GetVolumeIdFromTargetPath> {
        Ok(GetVolumeIdFromTargetPath {
            target: convert::loose(&self.mount, config)?,
        })
    }
}

impl IntoOperation for v2alpha1::GetClosestVolumeIdFromTargetPathRequest {
    type Operation = GetClosestVolumeIdFromTargetPath;

    fn operation(self, config: &Config) -> OperationResult<GetClosestVolumeIdFromTargetPath> {
        Ok(GetClosestVolumeIdFromTargetPath {
            target: convert::loose(&self.target_path, config)?,
        })
    }
}

impl IntoResponse<v1::GetVolumeIdFromTargetPathResponse> for VolumeId {
    fn into_response(self) -> Result<v1::GetVolumeIdFromTargetPathResponse, TryFromIntError> {
        Ok(v1::GetVolumeIdFromTargetPathResponse {
            volume_id: self.to_string(),
        })
    }
}

impl IntoResponse<v1beta1::VolumeIdFromMountResponse> for VolumeId {
    fn into_response(self) -> Result<v1beta1::VolumeIdFromMountResponse, TryFromIntError> {
        Ok(v1beta1::VolumeIdFromMountResponse {
            volume_id: self.to_string(),
        })
    }
}

impl IntoResponse<v2alpha1::GetClosestVolumeIdFromTargetPathResponse> for VolumeId {
    fn into_response(
        self,
    ) -> Result<v2alpha1::GetClosestVolumeIdFromTargetPathResponse, TryFromIntError> {
        Ok(v2alpha1::GetClosestVolumeIdFromTargetPathResponse {
            volume_id: self.to_string(),
        })
    }
}

impl IntoOperation for v1::WriteVolumeCacheRequest {
    type Operation = WriteVolumeCache;

    fn operation(self, _: &Config) -> OperationResult<WriteVolumeCache> {
        Ok(WriteVolumeCache {
            volume: VolumeId::parse(&self.volume_id)?,
        })
    }
}
