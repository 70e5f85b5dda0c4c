//! The conversions of the messages of the disk group.

use std::collections::BTreeMap;
use std::num::TryFromIntError;

use api::disk::{v1, v1alpha1, v1beta1, v1beta2};
use storage_ops::{
    Config, DiskIds, DiskLocation, DiskNumber, GetDiskNumberByName, GetDiskState, GetDiskStats,
    ListDiskIds, ListDiskLocations, OperationResult, PartitionDisk, Rescan, SetDiskState,
};

use crate::rpc::convert::{IntoOperation, IntoResponse};

impl IntoOperation for v1::ListDiskLocationsRequest {
    type Operation = ListDiskLocations;

    fn operation(self, _: &Config) -> OperationResult<ListDiskLocations> {
        Ok(ListDiskLocations)
    }
}

fn location(location: DiskLocation) -> v1::DiskLocation {
    let DiskLocation {
        adapter,
        bus,
        target,
        lun,
        ..
    } = location;
    v1::DiskLocation {
        adapter,
        bus,
        target,
        lunid: lun,
    }
}

impl IntoResponse<v1::ListDiskLocationsResponse> for BTreeMap<DiskNumber, DiskLocation> {
    fn into_response(self) -> Result<v1::ListDiskLocationsResponse, TryFromIntError> {
        let disk_locations = self
            .into_iter()
            .map(|(disk, at)| (disk.0, location(at)))
            .collect();
        Ok(v1::ListDiskLocationsResponse { disk_locations })
    }
}

impl IntoResponse<v1beta2::ListDiskLocationsResponse> for BTreeMap<DiskNumber, DiskLocation> {
    fn into_response(self) -> Result<v1beta2::ListDiskLocationsResponse, TryFromIntError> {
        let disk_locations = self
            .into_iter()
            .map(|(disk, at)| (disk.0.to_string(), location(at)))
            .collect();
        Ok(v1beta2::ListDiskLocationsResponse { disk_locations })
    }
}

impl IntoOperation for v1::ListDiskIDsRequest {
    type Operation = ListDiskIds;

    fn operation(self, _: &Config) -> OperationResult<ListDiskIds> {
        Ok(ListDiskIds)
    }
}

impl IntoResponse<v1::ListDiskIDsResponse> for BTreeMap<DiskNumber, DiskIds> {
    fn into_response(self) -> Result<v1::ListDiskIDsResponse, TryFromIntError> {
        let ids = |DiskIds { page83, serial, .. }| v1::DiskIDs {
            page83,
            serial_number: serial,
        };
        Ok(v1::ListDiskIDsResponse {
            disk_ids: self
                .into_iter()
                .map(|(disk, found)| (disk.0, ids(found)))
                .collect(),
        })
    }
}

impl IntoResponse<v1beta2::ListDiskIDsResponse> for BTreeMap<DiskNumber, DiskIds> {
    fn into_response(self) -> Result<v1beta2::ListDiskIDsResponse, TryFromIntError> {
        // Exactly these two keys: clients would take a third one for an identifier.
        let ids = |DiskIds { page83, serial, .. }| v1beta2::DiskIDs {
            identifiers: BTreeMap::from([
                ("page83".to_owned(), page83),
                ("serialNumber".to_owned(), serial),
            ]),
        };
        let disk_ids = self
            .into_iter()
            .map(|(disk, found)| (disk.0.to_string(), ids(found)))
            .collect();
        Ok(v1beta2::ListDiskIDsResponse { disk_ids })
    }
}

impl IntoOperation for v1::PartitionDiskRequest {
    type Operation = PartitionDisk;

    fn operation(self, _: &Config) -> OperationResult<PartitionDisk> {
        Ok(PartitionDisk {
            disk: DiskNumber(self.disk_number),
        })
    }
}

impl IntoOperation for v1beta2::PartitionDiskRequest {
    type Operation = PartitionDisk;

    fn operation(self, _: &Config) -> OperationResult<PartitionDisk> {
        Ok(PartitionDisk {
            disk: DiskNumber::parse(&self.disk_id)?,
        })
    }
}

impl IntoOperation for v1::RescanRequest {
    type Operation = Rescan;

    fn operation(self, _: &Config) -> OperationResult<Rescan> {
        Ok(Rescan)
    }
}

impl IntoOperation for v1::GetDiskStatsRequest {
    type Operation = GetDiskStats;

    fn operation(self, _: &Config) -> OperationResult<GetDiskStats> {
        Ok(GetDiskStats {
            disk: DiskNumber(self.disk_number),
        })
    }
}

impl IntoOperation for v1beta1::DiskStatsRequest {
    type Operation = GetDiskStats;

    fn operation(self, _: &Config) -> OperationResult<GetDiskStats> {
        Ok(GetDiskStats {
            disk: DiskNumber::parse(&self.disk_id)?,
        })
    }
}

impl IntoResponse<v1::GetDiskStatsResponse> for u64 {
    fn into_response(self) -> Result<v1::GetDiskStatsResponse, TryFromIntError> {
        Ok(v1::GetDiskStatsResponse {
            total_bytes: self.try_into()?,
        })
    }
}

impl IntoResponse<v1beta1::DiskStatsResponse> for u64 {
    fn into_response(self) -> Result<v1beta1::DiskStatsResponse, TryFromIntError> {
        Ok(v1beta1::DiskStatsResponse {
            disk_size: self.try_into()?,
        })
    }
}

impl IntoOperation for v1::SetDiskStateRequest {
    type Operation = SetDiskState;

    fn operation(self, _: &Config) -> OperationResult<SetDiskState> {
        Ok(SetDiskState {
            disk: DiskNumber(self.disk_number),
            online: self.is_online,
        })
    }
}

impl IntoOperation for v1beta2::SetAttachStateRequest {
    type Operation = SetDiskState;

    fn operation(self, _: &Config) -> OperationResult<SetDiskState> {
        Ok(SetDiskState {
            disk: DiskNumber::parse(&self.disk_id)?,
            online: self.is_online,
        })
    }
}

impl IntoOperation for v1::GetDiskStateRequest {
    type Operation = GetDiskState;

    fn operation(self, _: &Config) -> OperationResult<GetDiskState> {
        Ok(GetDiskState {
            disk: DiskNumber(self.disk_number),
        })
    }
}

impl IntoOperation for v1beta2::GetAttachStateRequest {
    type Operation = GetDiskState;

    fn operation(self, _: &Config) -> OperationResult<GetDiskState> {
        Ok(GetDiskState {
            disk: DiskNumber::parse(&self.disk_id)?,
        })
    }
}

impl IntoResponse<v1::GetDiskStateResponse> for bool {
    fn into_response(self) -> Result<v1::GetDiskStateResponse, TryFromIntError> {
        Ok(v1::GetDiskStateResponse { is_online: self })
    }
}

impl IntoResponse<v1beta2::GetAttachStateResponse> for bool {
    fn into_response(self) -> Result<v1beta2::GetAttachStateResponse, TryFromIntError> {
        Ok(v1beta2::GetAttachStateResponse { is_online: self })
    }
}

impl IntoOperation for v1alpha1::GetDiskNumberByNameRequest {
    type Operation = GetDiskNumberByName;

    fn operation(self, _: &Config) -> OperationResult<GetDiskNumberByName> {
        Ok(GetDiskNumberByName {
            name: self.disk_name,
        })
    }
}

impl IntoResponse<v1alpha1::GetDiskNumberByNameResponse> for DiskNumber {
    fn into_response(self) -> Result<v1alpha1::GetDiskNumberByNameResponse, TryFromIntError> {
        Ok(v1alpha1::GetDiskNumberByNameResponse {
            disk_number: self.0.to_string(),
        })
    }
}
