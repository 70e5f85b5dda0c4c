//! The conversions of the messages of the disk group.

use std::collections::BTreeMap;

use api::disk::{v1, v1alpha1, v1beta1, v1beta2};
use storage_ops::{
    DiskIds, DiskLocation, DiskNumber, GetDiskNumberByName, GetDiskState, GetDiskStats,
    ListDiskIds, ListDiskLocations, PartitionDisk, Rescan, SetDiskState,
};

use crate::rpc::convert;

convert::requests! {
    |request, config|
    v1::ListDiskLocationsRequest => ListDiskLocations {}
    v1::ListDiskIDsRequest => ListDiskIds {}
    v1::PartitionDiskRequest => PartitionDisk {
        disk: DiskNumber(request.disk_number),
    }
    v1beta2::PartitionDiskRequest => PartitionDisk {
        disk: DiskNumber::parse(&request.disk_id)?,
    }
    v1::RescanRequest => Rescan {}
    v1::GetDiskStatsRequest => GetDiskStats {
        disk: DiskNumber(request.disk_number),
    }
    v1beta1::DiskStatsRequest => GetDiskStats {
        disk: DiskNumber::parse(&request.disk_id)?,
    }
    v1::SetDiskStateRequest => SetDiskState {
        disk: DiskNumber(request.disk_number),
        online: request.is_online,
    }
    v1beta2::SetAttachStateRequest => SetDiskState {
        disk: DiskNumber::parse(&request.disk_id)?,
        online: request.is_online,
    }
    v1::GetDiskStateRequest => GetDiskState {
        disk: DiskNumber(request.disk_number),
    }
    v1beta2::GetAttachStateRequest => GetDiskState {
        disk: DiskNumber::parse(&request.disk_id)?,
    }
    v1alpha1::GetDiskNumberByNameRequest => GetDiskNumberByName {
        name: request.disk_name,
    }
}

fn location(at: DiskLocation) -> v1::DiskLocation {
    v1::DiskLocation {
        adapter: at.adapter,
        bus: at.bus,
        target: at.target,
        lunid: at.lun,
    }
}

fn ids(found: DiskIds) -> v1::DiskIDs {
    v1::DiskIDs {
        page83: found.page83,
        serial_number: found.serial,
    }
}

/// Exactly these two keys: clients would take a third one for an identifier.
fn identifiers(found: DiskIds) -> v1beta2::DiskIDs {
    v1beta2::DiskIDs {
        identifiers: BTreeMap::from([
            ("page83".to_owned(), found.page83),
            ("serialNumber".to_owned(), found.serial),
        ]),
    }
}

convert::responses! {
    |result|
    BTreeMap<DiskNumber, DiskLocation> => v1::ListDiskLocationsResponse {
        disk_locations: result.into_iter().map(|(disk, at)| (disk.0, location(at))).collect(),
    }
    BTreeMap<DiskNumber, DiskLocation> => v1beta2::ListDiskLocationsResponse {
        disk_locations: result
            .into_iter()
            .map(|(disk, at)| (disk.0.to_string(), location(at)))
            .collect(),
    }
    BTreeMap<DiskNumber, DiskIds> => v1::ListDiskIDsResponse {
        disk_ids: result.into_iter().map(|(disk, found)| (disk.0, ids(found))).collect(),
    }
    BTreeMap<DiskNumber, DiskIds> => v1beta2::ListDiskIDsResponse {
        disk_ids: result
            .into_iter()
            .map(|(disk, found)| (disk.0.to_string(), identifiers(found)))
            .collect(),
    }
    u64 => v1::GetDiskStatsResponse {
        total_bytes: result.try_into()?,
    }
    u64 => v1beta1::DiskStatsResponse {
        disk_size: result.try_into()?,
    }
    bool => v1::GetDiskStateResponse { is_online: result }
    bool => v1beta2::GetAttachStateResponse { is_online: result }
    DiskNumber => v1alpha1::GetDiskNumberByNameResponse {
        disk_number: result.0.to_string(),
    }
}
