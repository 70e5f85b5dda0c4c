//! The volume group.

use std::num::TryFromIntError;

use api::volume::{v1, v1beta1, v2alpha1};
use storage_ops::{
    Config, DiskNumber, Fault, FormatVolume, GetClosestVolumeIdFromTargetPath, GetDiskNumberFromVolumeId,
    GetVolumeIdFromTargetPath, GetVolumeStats, IsVolumeFormatted, ListVolumesOnDisk, MountVolume, Outcome,
    UnmountVolume, VolumeId, VolumeStats, WriteVolumeCache,
};

use crate::rpc::convert::{self, Ask, IntoWire};
use crate::rpc::resize::Resize;

crate::rpc::handlers::services! {
    volume::volume_server::{Volume, VolumeServer};
    v1 | v1beta3 => {
        list_volumes_on_disk(ListVolumesOnDiskRequest) -> ListVolumesOnDiskResponse,
        mount_volume(MountVolumeRequest) -> MountVolumeResponse,
        unmount_volume(UnmountVolumeRequest) -> UnmountVolumeResponse,
        is_volume_formatted(IsVolumeFormattedRequest) -> IsVolumeFormattedResponse,
        format_volume(FormatVolumeRequest) -> FormatVolumeResponse,
        resize_volume(ResizeVolumeRequest) -> ResizeVolumeResponse,
        get_volume_stats(GetVolumeStatsRequest) -> GetVolumeStatsResponse,
        get_disk_number_from_volume_id(GetDiskNumberFromVolumeIdRequest) -> GetDiskNumberFromVolumeIdResponse,
        get_volume_id_from_target_path(GetVolumeIdFromTargetPathRequest) -> GetVolumeIdFromTargetPathResponse,
        write_volume_cache(WriteVolumeCacheRequest) -> WriteVolumeCacheResponse,
    }
    v2alpha1 => {
        list_volumes_on_disk(ListVolumesOnDiskRequest) -> ListVolumesOnDiskResponse,
        mount_volume(MountVolumeRequest) -> MountVolumeResponse,
        unmount_volume(UnmountVolumeRequest) -> UnmountVolumeResponse,
        is_volume_formatted(IsVolumeFormattedRequest) -> IsVolumeFormattedResponse,
        format_volume(FormatVolumeRequest) -> FormatVolumeResponse,
        resize_volume(ResizeVolumeRequest) -> ResizeVolumeResponse,
        get_volume_stats(GetVolumeStatsRequest) -> GetVolumeStatsResponse,
        get_disk_number_from_volume_id(GetDiskNumberFromVolumeIdRequest) -> GetDiskNumberFromVolumeIdResponse,
        get_volume_id_from_target_path(GetVolumeIdFromTargetPathRequest) -> GetVolumeIdFromTargetPathResponse,
        get_closest_volume_id_from_target_path(GetClosestVolumeIdFromTargetPathRequest)
            -> GetClosestVolumeIdFromTargetPathResponse,
        write_volume_cache(WriteVolumeCacheRequest) -> WriteVolumeCacheResponse,
    }
    v1beta2 => {
        list_volumes_on_disk(ListVolumesOnDiskRequest) -> ListVolumesOnDiskResponse,
        mount_volume(MountVolumeRequest) -> MountVolumeResponse,
        dismount_volume(DismountVolumeRequest) -> DismountVolumeResponse,
        is_volume_formatted(IsVolumeFormattedRequest) -> IsVolumeFormattedResponse,
        format_volume(FormatVolumeRequest) -> FormatVolumeResponse,
        resize_volume(ResizeVolumeRequest) -> ResizeVolumeResponse,
        volume_stats(VolumeStatsRequest) -> VolumeStatsResponse,
        get_volume_disk_number(VolumeDiskNumberRequest) -> VolumeDiskNumberResponse,
        get_volume_id_from_mount(VolumeIdFromMountRequest) -> VolumeIdFromMountResponse,
        write_volume_cache(WriteVolumeCacheRequest) -> WriteVolumeCacheResponse,
    }
    v1beta1 => {
        list_volumes_on_disk(ListVolumesOnDiskRequest) -> ListVolumesOnDiskResponse,
        mount_volume(MountVolumeRequest) -> MountVolumeResponse,
        dismount_volume(DismountVolumeRequest) -> DismountVolumeResponse,
        is_volume_formatted(IsVolumeFormattedRequest) -> IsVolumeFormattedResponse,
        format_volume(FormatVolumeRequest) -> FormatVolumeResponse,
        resize_volume(ResizeVolumeRequest) -> ResizeVolumeResponse,
        volume_stats(VolumeStatsRequest) -> VolumeStatsResponse,
        get_volume_disk_number(VolumeDiskNumberRequest) -> VolumeDiskNumberResponse,
        get_volume_id_from_mount(VolumeIdFromMountRequest) -> VolumeIdFromMountResponse,
    }
    v1alpha1 => {
        list_volumes_on_disk(ListVolumesOnDiskRequest) -> ListVolumesOnDiskResponse,
        mount_volume(MountVolumeRequest) -> MountVolumeResponse,
        dismount_volume(DismountVolumeRequest) -> DismountVolumeResponse,
        is_volume_formatted(IsVolumeFormattedRequest) -> IsVolumeFormattedResponse,
        format_volume(FormatVolumeRequest) -> FormatVolumeResponse,
        resize_volume(ResizeVolumeRequest) -> ResizeVolumeResponse,
    }
}

impl Ask for v1::ListVolumesOnDiskRequest {
    type Operation = ListVolumesOnDisk;

    fn operation(self, _: &Config) -> Outcome<ListVolumesOnDisk> {
        Ok(ListVolumesOnDisk { disk: DiskNumber(self.disk_number), partition: self.partition_number })
    }
}

impl Ask for v1beta1::ListVolumesOnDiskRequest {
    type Operation = ListVolumesOnDisk;

    fn operation(self, _: &Config) -> Outcome<ListVolumesOnDisk> {
        Ok(ListVolumesOnDisk { disk: DiskNumber::parse(&self.disk_id)?, partition: 0 })
    }
}

impl IntoWire<v1::ListVolumesOnDiskResponse> for Vec<VolumeId> {
    fn into_wire(self) -> Result<v1::ListVolumesOnDiskResponse, TryFromIntError> {
        Ok(v1::ListVolumesOnDiskResponse { volume_ids: self.iter().map(VolumeId::to_string).collect() })
    }
}

impl Ask for v1::MountVolumeRequest {
    type Operation = MountVolume;

    fn operation(self, config: &Config) -> Outcome<MountVolume> {
        let volume = VolumeId::parse(&self.volume_id)?;
        Ok(MountVolume { volume, target: convert::loose(&self.target_path, config)? })
    }
}

impl Ask for v1beta1::MountVolumeRequest {
    type Operation = MountVolume;

    fn operation(self, config: &Config) -> Outcome<MountVolume> {
        let volume = VolumeId::parse(&self.volume_id)?;
        Ok(MountVolume { volume, target: convert::loose(&self.path, config)? })
    }
}

impl Ask for v1::UnmountVolumeRequest {
    type Operation = UnmountVolume;

    fn operation(self, config: &Config) -> Outcome<UnmountVolume> {
        let volume = VolumeId::parse(&self.volume_id)?;
        Ok(UnmountVolume { volume, target: convert::loose(&self.target_path, config)? })
    }
}

impl Ask for v1beta1::DismountVolumeRequest {
    type Operation = UnmountVolume;

    fn operation(self, config: &Config) -> Outcome<UnmountVolume> {
        let volume = VolumeId::parse(&self.volume_id)?;
        Ok(UnmountVolume { volume, target: convert::loose(&self.path, config)? })
    }
}

impl Ask for v1::IsVolumeFormattedRequest {
    type Operation = IsVolumeFormatted;

    fn operation(self, _: &Config) -> Outcome<IsVolumeFormatted> {
        Ok(IsVolumeFormatted { volume: VolumeId::parse(&self.volume_id)? })
    }
}

impl IntoWire<v1::IsVolumeFormattedResponse> for bool {
    fn into_wire(self) -> Result<v1::IsVolumeFormattedResponse, TryFromIntError> {
        Ok(v1::IsVolumeFormattedResponse { formatted: self })
    }
}

impl Ask for v1::FormatVolumeRequest {
    type Operation = FormatVolume;

    fn operation(self, _: &Config) -> Outcome<FormatVolume> {
        Ok(FormatVolume { volume: VolumeId::parse(&self.volume_id)? })
    }
}

fn size(bytes: i64) -> Outcome<u64> {
    u64::try_from(bytes).map_err(|_| Fault::invalid(format!("{bytes} is not a size")))
}

impl Ask for v1::ResizeVolumeRequest {
    type Operation = Resize;

    fn operation(self, _: &Config) -> Outcome<Resize> {
        Resize::parse(&self.volume_id, size(self.size_bytes)?)
    }
}

impl Ask for v1beta1::ResizeVolumeRequest {
    type Operation = Resize;

    fn operation(self, _: &Config) -> Outcome<Resize> {
        Resize::parse(&self.volume_id, size(self.size)?)
    }
}

impl Ask for v1::GetVolumeStatsRequest {
    type Operation = GetVolumeStats;

    fn operation(self, _: &Config) -> Outcome<GetVolumeStats> {
        Ok(GetVolumeStats { volume: VolumeId::parse(&self.volume_id)? })
    }
}

impl Ask for v1beta1::VolumeStatsRequest {
    type Operation = GetVolumeStats;

    fn operation(self, _: &Config) -> Outcome<GetVolumeStats> {
        Ok(GetVolumeStats { volume: VolumeId::parse(&self.volume_id)? })
    }
}

impl IntoWire<v1::GetVolumeStatsResponse> for VolumeStats {
    fn into_wire(self) -> Result<v1::GetVolumeStatsResponse, TryFromIntError> {
        Ok(v1::GetVolumeStatsResponse { total_bytes: self.total.try_into()?, used_bytes: self.used.try_into()? })
    }
}

impl IntoWire<v1beta1::VolumeStatsResponse> for VolumeStats {
    fn into_wire(self) -> Result<v1beta1::VolumeStatsResponse, TryFromIntError> {
        // One old driver takes the size for what is free; it has always been the total.
        let (volume_size, volume_used_size) = (self.total.try_into()?, self.used.try_into()?);
        Ok(v1beta1::VolumeStatsResponse { volume_size, volume_used_size })
    }
}

impl Ask for v1::GetDiskNumberFromVolumeIdRequest {
    type Operation = GetDiskNumberFromVolumeId;

    fn operation(self, _: &Config) -> Outcome<GetDiskNumberFromVolumeId> {
        Ok(GetDiskNumberFromVolumeId { volume: VolumeId::parse(&self.volume_id)? })
    }
}

impl Ask for v1beta1::VolumeDiskNumberRequest {
    type Operation = GetDiskNumberFromVolumeId;

    fn operation(self, _: &Config) -> Outcome<GetDiskNumberFromVolumeId> {
        Ok(GetDiskNumberFromVolumeId { volume: VolumeId::parse(&self.volume_id)? })
    }
}

impl IntoWire<v1::GetDiskNumberFromVolumeIdResponse> for DiskNumber {
    fn into_wire(self) -> Result<v1::GetDiskNumberFromVolumeIdResponse, TryFromIntError> {
        Ok(v1::GetDiskNumberFromVolumeIdResponse { disk_number: self.0 })
    }
}

impl IntoWire<v1beta1::VolumeDiskNumberResponse> for DiskNumber {
    fn into_wire(self) -> Result<v1beta1::VolumeDiskNumberResponse, TryFromIntError> {
        Ok(v1beta1::VolumeDiskNumberResponse { disk_number: self.0.into() })
    }
}

impl Ask for v1::GetVolumeIdFromTargetPathRequest {
    type Operation = GetVolumeIdFromTargetPath;

    fn operation(self, config: &Config) -> Outcome<GetVolumeIdFromTargetPath> {
        Ok(GetVolumeIdFromTargetPath { target: convert::loose(&self.target_path, config)? })
    }
}

impl Ask for v1beta1::VolumeIdFromMountRequest {
    type Operation = GetVolumeIdFromTargetPath;

    fn operation(self, config: &Config) -> Outcome<GetVolumeIdFromTargetPath> {
        Ok(GetVolumeIdFromTargetPath { target: convert::loose(&self.mount, config)? })
    }
}

impl Ask for v2alpha1::GetClosestVolumeIdFromTargetPathRequest {
    type Operation = GetClosestVolumeIdFromTargetPath;

    fn operation(self, config: &Config) -> Outcome<GetClosestVolumeIdFromTargetPath> {
        Ok(GetClosestVolumeIdFromTargetPath { target: convert::loose(&self.target_path, config)? })
    }
}

impl IntoWire<v1::GetVolumeIdFromTargetPathResponse> for VolumeId {
    fn into_wire(self) -> Result<v1::GetVolumeIdFromTargetPathResponse, TryFromIntError> {
        Ok(v1::GetVolumeIdFromTargetPathResponse { volume_id: self.to_string() })
    }
}

impl IntoWire<v1beta1::VolumeIdFromMountResponse> for VolumeId {
    fn into_wire(self) -> Result<v1beta1::VolumeIdFromMountResponse, TryFromIntError> {
        Ok(v1beta1::VolumeIdFromMountResponse { volume_id: self.to_string() })
    }
}

impl IntoWire<v2alpha1::GetClosestVolumeIdFromTargetPathResponse> for VolumeId {
    fn into_wire(self) -> Result<v2alpha1::GetClosestVolumeIdFromTargetPathResponse, TryFromIntError> {
        Ok(v2alpha1::GetClosestVolumeIdFromTargetPathResponse { volume_id: self.to_string() })
    }
}

impl Ask for v1::WriteVolumeCacheRequest {
    type Operation = WriteVolumeCache;

    fn operation(self, _: &Config) -> Outcome<WriteVolumeCache> {
        Ok(WriteVolumeCache { volume: VolumeId::parse(&self.volume_id)? })
    }
}
