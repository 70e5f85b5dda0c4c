//! Changes of the node while it runs.

use std::sync::Arc;
use std::time::Duration;

use crate::control_api::{
    AddRequest, AddResponse, AdvanceClockRequest, AdvanceClockResponse, ClearFaultsRequest,
    ClearFaultsResponse, CompareRequest, CompareResponse, Disk, GetNodeRequest, GetNodeResponse,
    GrowDiskRequest, GrowDiskResponse, InjectFaultRequest, InjectFaultResponse, InjectedFault,
    ListDisksRequest, ListDisksResponse, ListFaultsRequest, ListFaultsResponse,
    ListPrimitivesRequest, ListPrimitivesResponse, PlugDiskRequest, PlugDiskResponse, Primitive,
    RestartRequest, RestartResponse, SaveStateRequest, SaveStateResponse, SetReachableRequest,
    SetReachableResponse, SetSmbPasswordRequest, SetSmbPasswordResponse, Simulation,
    UnplugDiskRequest, UnplugDiskResponse, UnpluggedDisk, Volume, WaitForFaultRequest,
    WaitForFaultResponse, set_reachable_request::What,
};
use os_sim::iscsi::DEFAULT_PORT;
use os_sim::{Description, DiskView, Sim};
use tokio::sync::oneshot;
use tonic::{Request, Response, Status};

use super::fault_request::fault;
use super::injected::{Injected, POLL};
use super::{Control, Restart};

/// The number of the disk that Windows runs from.
const SYSTEM_DISK: u32 = 0;

/// Sizes of disks are multiples of the larger kind of sectors.
const SECTOR: u64 = 4096;

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Simulation for Control {
    async fn get_node(&self, _request: Request<GetNodeRequest>) -> Answer<GetNodeResponse> {
        Ok(Response::new(GetNodeResponse {
            node_file: self.sim.node_file(),
        }))
    }

    async fn save_state(&self, _request: Request<SaveStateRequest>) -> Answer<SaveStateResponse> {
        if self.state.is_none() {
            return Err(Status::failed_precondition(
                "csi-proxy-sim was started without -state",
            ));
        }
        self.save().map_err(Status::failed_precondition)?;
        Ok(Response::new(SaveStateResponse {}))
    }

    async fn list_disks(&self, _request: Request<ListDisksRequest>) -> Answer<ListDisksResponse> {
        let detected = self
            .sim
            .disks()
            .into_iter()
            .map(|disk| described(disk, true));
        let undetected = self
            .sim
            .undetected_disks()
            .into_iter()
            .map(|disk| described(disk, false));
        let unplugged = self
            .sim
            .unplugged_disks()
            .into_iter()
            .map(|(handle, disk)| UnpluggedDisk {
                handle,
                number: disk.number,
                size: disk.size,
                serial: disk.serial.unwrap_or_default(),
            });
        let response = ListDisksResponse {
            disks: detected.chain(undetected).collect(),
            unplugged: unplugged.collect(),
        };
        Ok(Response::new(response))
    }

    async fn add(&self, request: Request<AddRequest>) -> Answer<AddResponse> {
        let AddRequest {
            node_file,
            undetected,
        } = request.into_inner();
        let description = Description::addition_from_toml(&node_file);
        let description =
            description.map_err(|error| Status::invalid_argument(error.to_string()))?;
        let added = self.sim.add(&description, !undetected);
        let disk_numbers = added.map_err(|error| Status::failed_precondition(error.to_string()))?;
        Ok(Response::new(AddResponse { disk_numbers }))
    }

    async fn unplug_disk(&self, request: Request<UnplugDiskRequest>) -> Answer<UnplugDiskResponse> {
        let number = request.into_inner().disk_number;
        if number == SYSTEM_DISK {
            return Err(Status::failed_precondition(
                "disk 0 cannot be unplugged: Windows runs from it",
            ));
        }
        let handle = self
            .sim
            .unplug_disk(number)
            .ok_or_else(|| no_disk(number))?;
        Ok(Response::new(UnplugDiskResponse { handle }))
    }

    async fn plug_disk(&self, request: Request<PlugDiskRequest>) -> Answer<PlugDiskResponse> {
        let PlugDiskRequest { handle, undetected } = request.into_inner();
        let plugged = self.sim.plug_disk(handle, !undetected);
        let disk_number = plugged.ok_or_else(|| {
            Status::not_found(format!("no unplugged disk has the handle {handle}"))
        })?;
        Ok(Response::new(PlugDiskResponse { disk_number }))
    }

    async fn grow_disk(&self, request: Request<GrowDiskRequest>) -> Answer<GrowDiskResponse> {
        let GrowDiskRequest { disk_number, size } = request.into_inner();
        let mut disks = self
            .sim
            .disks()
            .into_iter()
            .chain(self.sim.undetected_disks());
        let disk = disks
            .find(|disk| disk.number == disk_number)
            .ok_or_else(|| no_disk(disk_number))?;
        if !size.is_multiple_of(SECTOR) {
            return Err(Status::invalid_argument(format!(
                "the size must be a multiple of {SECTOR} bytes, not {size}"
            )));
        }
        if !self.sim.grow_disk(disk_number, size) {
            let message = format!(
                "disk {disk_number} has {} bytes already: the new size must be larger, not {size}",
                disk.size
            );
            return Err(Status::failed_precondition(message));
        }
        Ok(Response::new(GrowDiskResponse {}))
    }

    async fn set_reachable(
        &self,
        request: Request<SetReachableRequest>,
    ) -> Answer<SetReachableResponse> {
        let SetReachableRequest { what, reachable } = request.into_inner();
        let (is_known, what) = match what {
            None => {
                return Err(Status::invalid_argument(
                    "an SMB server or an iSCSI portal is missing",
                ));
            }
            Some(What::SmbServer(host)) => (
                self.sim.set_smb_reachable(&host, reachable),
                format!("SMB server {host}"),
            ),
            Some(What::IscsiPortal(text)) => {
                let (address, port) = portal(&text)?;
                (
                    self.sim.set_portal_reachable(address, port, reachable),
                    format!("iSCSI portal {address}:{port}"),
                )
            }
        };
        if !is_known {
            return Err(Status::not_found(format!(
                "the node has no {what}: add it first"
            )));
        }
        Ok(Response::new(SetReachableResponse {}))
    }

    async fn set_smb_password(
        &self,
        request: Request<SetSmbPasswordRequest>,
    ) -> Answer<SetSmbPasswordResponse> {
        let SetSmbPasswordRequest {
            server,
            user,
            password,
        } = request.into_inner();
        if !self.sim.rotate_smb_password(&server, &user, &password) {
            return Err(Status::not_found(format!(
                "the SMB server {server} or its user {user} does not exist"
            )));
        }
        Ok(Response::new(SetSmbPasswordResponse {}))
    }

    async fn inject_fault(
        &self,
        request: Request<InjectFaultRequest>,
    ) -> Answer<InjectFaultResponse> {
        let requested = request.into_inner().fault.unwrap_or_default();
        let fault = fault(&requested, &self.sim)?;
        let injected = Injected::new(
            requested,
            fault,
            self.sim.clone(),
            Arc::clone(&self.ended_runs),
        );
        let mut faults = self.faults();
        faults.last += 1;
        let id = faults.last;
        faults.by_number.insert(id, Arc::new(injected));
        Ok(Response::new(InjectFaultResponse { id }))
    }

    async fn list_faults(
        &self,
        _request: Request<ListFaultsRequest>,
    ) -> Answer<ListFaultsResponse> {
        let listed = |(id, injected): (&u64, &Arc<Injected>)| InjectedFault {
            id: *id,
            fault: Some(injected.request.clone()),
            hits: injected.fault.hits(),
            last_hit: injected
                .fault
                .last_hit()
                .map(|call| format!("{} {}", call.primitive, call.object))
                .unwrap_or_default(),
        };
        Ok(Response::new(ListFaultsResponse {
            faults: self.faults().by_number.iter().map(listed).collect(),
        }))
    }

    async fn wait_for_fault(
        &self,
        request: Request<WaitForFaultRequest>,
    ) -> Answer<WaitForFaultResponse> {
        let WaitForFaultRequest { id, hits } = request.into_inner();
        loop {
            let injected = self
                .faults()
                .by_number
                .get(&id)
                .cloned()
                .ok_or_else(|| no_fault(id))?;
            let seen = injected.fault.hits();
            if seen >= hits.max(1) {
                return Ok(Response::new(WaitForFaultResponse { hits: seen }));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn clear_faults(
        &self,
        request: Request<ClearFaultsRequest>,
    ) -> Answer<ClearFaultsResponse> {
        let mut faults = self.faults();
        let cleared: Vec<_> = match request.into_inner().id {
            0 => std::mem::take(&mut faults.by_number)
                .into_values()
                .collect(),
            id => vec![faults.by_number.remove(&id).ok_or_else(|| no_fault(id))?],
        };
        for injected in &cleared {
            injected.clear();
        }
        Ok(Response::new(ClearFaultsResponse {
            cleared: cleared.len().try_into().unwrap_or(u32::MAX),
        }))
    }

    async fn list_primitives(
        &self,
        _request: Request<ListPrimitivesRequest>,
    ) -> Answer<ListPrimitivesResponse> {
        let counted = self.trace.counts().by_primitive.into_iter();
        let primitives = counted
            .map(|(name, calls)| Primitive {
                name: name.into_owned(),
                calls,
            })
            .collect();
        Ok(Response::new(ListPrimitivesResponse { primitives }))
    }

    async fn restart(&self, request: Request<RestartRequest>) -> Answer<RestartResponse> {
        let (done, is_done) = oneshot::channel();
        let RestartRequest {
            daemon_only,
            renumber_disks,
            seed,
            node_file,
        } = request.into_inner();
        let node = node_file.as_deref().map(Sim::from_toml).transpose();
        let node = node.map_err(|error| Status::invalid_argument(error.to_string()))?;
        if node.is_some() && (daemon_only || renumber_disks) {
            return Err(Status::invalid_argument(
                "another node takes the place of this one only at a restart of the node, with the \
                 disk numbers of the file",
            ));
        }
        if daemon_only && renumber_disks {
            return Err(Status::invalid_argument(
                "disks get other numbers only when the node restarts",
            ));
        }
        let restart = Restart {
            daemon_only,
            renumber: renumber_disks.then_some(seed),
            node,
            done,
        };
        let stopping = || Status::unavailable("csi-proxy-sim is stopping");
        self.restarts.send(restart).await.map_err(|_| stopping())?;
        is_done.await.map_err(|_| stopping())?;
        Ok(Response::new(RestartResponse {}))
    }

    async fn advance_clock(
        &self,
        request: Request<AdvanceClockRequest>,
    ) -> Answer<AdvanceClockResponse> {
        self.sim
            .advance(Duration::from_millis(request.into_inner().milliseconds));
        Ok(Response::new(AdvanceClockResponse {}))
    }

    async fn compare(&self, request: Request<CompareRequest>) -> Answer<CompareResponse> {
        let CompareRequest {
            node_file,
            with_data,
        } = request.into_inner();
        let differences = self.sim.differences(&node_file, with_data);
        let differences =
            differences.map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(Response::new(CompareResponse { differences }))
    }
}

fn no_fault(id: u64) -> Status {
    Status::not_found(format!("no fault has the id {id}"))
}

fn no_disk(number: u32) -> Status {
    Status::not_found(format!("no disk has the number {number}"))
}

fn described(disk: DiskView, detected: bool) -> Disk {
    let volumes = disk
        .partitions
        .into_iter()
        .filter_map(|partition| partition.volume)
        .map(|volume| Volume {
            id: volume.name(),
            file_system: volume.file_system.unwrap_or_default(),
            size: volume.total,
            paths: volume.paths,
        });
    Disk {
        number: disk.number,
        size: disk.size,
        size_seen: disk.cached_size,
        offline: disk.offline,
        read_only: disk.read_only,
        bus: disk.bus,
        location: disk.location,
        serial: disk.serial.unwrap_or_default(),
        partition_table: disk.layout.to_owned(),
        volumes: volumes.collect(),
        detected,
    }
}

/// Parses the address of a portal, with or without a port. The address of IPv6 is in brackets if a
/// port follows.
fn portal(text: &str) -> Result<(&str, u16), Status> {
    let (address, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (address, rest.strip_prefix(':')),
        None => match text.rsplit_once(':') {
            Some((address, port)) if !address.contains(':') => (address, Some(port)),
            _ => (text, None),
        },
    };
    let port = port.map_or(Ok(DEFAULT_PORT), str::parse);
    let port = port
        .map_err(|_| Status::invalid_argument(format!("{text:?} is not an address and a port")))?;
    Ok((address, port))
}

#[cfg(test)]
mod tests {
    use super::portal;

    #[test]
    fn a_portal_has_an_address_and_perhaps_a_port() {
        for (text, expected) in [
            ("10.0.0.10", ("10.0.0.10", 3260)),
            ("10.0.0.10:860", ("10.0.0.10", 860)),
            ("fd00::1", ("fd00::1", 3260)),
            ("[fd00::1]:860", ("fd00::1", 860)),
            ("[fd00::1]", ("fd00::1", 3260)),
        ] {
            assert_eq!(portal(text).expect("an address"), expected);
        }
        assert!(portal("10.0.0.10:x").is_err() && portal("10.0.0.10:66000").is_err());
    }
}
