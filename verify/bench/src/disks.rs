//! ListDiskIDs with a constant response.

use std::collections::BTreeMap;

use api::disk::v1::disk_server;
use api::disk::v1::{
    DiskIDs, GetDiskStateRequest, GetDiskStateResponse, GetDiskStatsRequest, GetDiskStatsResponse, ListDiskIDsRequest,
    ListDiskIDsResponse, ListDiskLocationsRequest, ListDiskLocationsResponse, PartitionDiskRequest,
    PartitionDiskResponse, RescanRequest, RescanResponse, SetDiskStateRequest, SetDiskStateResponse,
};
use tonic::{Request, Response, Status};

/// Page-83 identifier and serial number by disk number, as the daemon answers for the simulated node of `../node.toml`.
/// Number 0 is the simulator's own system disk.
const DISKS: [(u32, &str, &str); 5] = [
    (0, "60022480000000000000000000000001", "SIM0000000000001"),
    (1, "Google  persistent-disk-1", "bench-serial-1"),
    (2, "Google  persistent-disk-2", "bench-serial-2"),
    (3, "Google  persistent-disk-3", "bench-serial-3"),
    (4, "Google  persistent-disk-4", "bench-serial-4"),
];

pub(crate) struct Disks;

#[tonic::async_trait]
impl disk_server::Disk for Disks {
    async fn list_disk_ids(&self, _: Request<ListDiskIDsRequest>) -> Result<Response<ListDiskIDsResponse>, Status> {
        let ids = |page83: &str, serial: &str| DiskIDs { page83: page83.into(), serial_number: serial.into() };
        let disk_ids: BTreeMap<_, _> = DISKS.map(|(number, page83, serial)| (number, ids(page83, serial))).into();
        Ok(Response::new(ListDiskIDsResponse { disk_ids }))
    }

    async fn list_disk_locations(
        &self,
        _: Request<ListDiskLocationsRequest>,
    ) -> Result<Response<ListDiskLocationsResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn partition_disk(
        &self,
        _: Request<PartitionDiskRequest>,
    ) -> Result<Response<PartitionDiskResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn rescan(&self, _: Request<RescanRequest>) -> Result<Response<RescanResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn get_disk_stats(&self, _: Request<GetDiskStatsRequest>) -> Result<Response<GetDiskStatsResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn set_disk_state(&self, _: Request<SetDiskStateRequest>) -> Result<Response<SetDiskStateResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn get_disk_state(&self, _: Request<GetDiskStateRequest>) -> Result<Response<GetDiskStateResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }
}
