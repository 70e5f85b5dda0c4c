//! The node service. Kubelet repeats its calls, so each does only what has not been done yet. A failed call of csi-proxy
//! is returned with its status code, by which kubelet decides whether the operation may still be running.

use csi_proxy_client::{Client, DiskState, Error, ErrorKind};
use tonic::{Code, Request, Response, Status};

use crate::proto::csi::v1::node_service_capability::{self, Rpc, rpc};
use crate::proto::csi::v1::volume_capability::AccessType;
use crate::proto::csi::v1::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetCapabilitiesRequest, NodeGetCapabilitiesResponse,
    NodeGetInfoRequest, NodeGetInfoResponse, NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse,
    NodePublishVolumeRequest, NodePublishVolumeResponse, NodeServiceCapability, NodeStageVolumeRequest,
    NodeStageVolumeResponse, NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse, NodeUnstageVolumeRequest,
    NodeUnstageVolumeResponse, VolumeCapability, VolumeUsage, node_server, volume_usage,
};

/// The key of the volume context under which the controller gives the serial number of the disk.
const SERIAL_NUMBER: &str = "serialNumber";

pub(crate) struct Node {
    pub(crate) client: Client,
    pub(crate) id: String,
}

#[tonic::async_trait]
impl node_server::Node for Node {
    async fn node_get_info(&self, _: Request<NodeGetInfoRequest>) -> Result<Response<NodeGetInfoResponse>, Status> {
        Ok(Response::new(NodeGetInfoResponse { node_id: self.id.clone(), ..Default::default() }))
    }

    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        let capability = |of: rpc::Type| {
            let rpc = Rpc { r#type: of.into() };
            NodeServiceCapability { r#type: Some(node_service_capability::Type::Rpc(rpc)) }
        };
        let supported = [rpc::Type::StageUnstageVolume, rpc::Type::GetVolumeStats, rpc::Type::ExpandVolume];
        Ok(Response::new(NodeGetCapabilitiesResponse { capabilities: supported.map(capability).into() }))
    }

    /// Formats the disk if it is new, and mounts its volume in the staging directory.
    async fn node_stage_volume(
        &self,
        request: Request<NodeStageVolumeRequest>,
    ) -> Result<Response<NodeStageVolumeResponse>, Status> {
        let request = request.into_inner();
        required("volume ID", &request.volume_id)?;
        let staging = path("staging target path", &request.staging_target_path)?;
        check_capability(request.volume_capability.as_ref())?;
        let serial_number = request.volume_context.get(SERIAL_NUMBER).map_or("", String::as_str);
        required("serial number in the volume context", serial_number)?;

        let (disks, volumes) = (self.client.disk(), self.client.volume());
        let disk = self.find_disk(serial_number).await?;
        // A disk that has a partition table is left as it is.
        disks.partition_disk(disk).await.map_err(status)?;
        disks.set_disk_state(disk, DiskState::Online).await.map_err(status)?;
        let on_disk = volumes.list_volumes_on_disk(disk, None).await.map_err(status)?;
        let [volume] = on_disk.as_slice() else {
            let found = on_disk.len();
            return Err(Status::failed_precondition(format!("disk {disk} has {found} volumes and not one")));
        };
        if !volumes.is_volume_formatted(volume).await.map_err(status)? {
            volumes.format_volume(volume).await.map_err(status)?;
        }
        self.mount(volume, &staging).await?;
        // The disk may be larger than the volume: it may have grown while it was detached, or be a copy of a smaller one.
        volumes.resize_volume(volume, 0).await.map_err(status)?;
        Ok(Response::new(NodeStageVolumeResponse {}))
    }

    /// Unmounts the volume and takes its disk offline, so that it can be detached. Kubelet removes the directory.
    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Result<Response<NodeUnstageVolumeResponse>, Status> {
        let request = request.into_inner();
        required("volume ID", &request.volume_id)?;
        let staging = path("staging target path", &request.staging_target_path)?;
        if let Some(volume) = self.mounted_at(&staging).await? {
            let disk = self.client.volume().get_disk_number_from_volume_id(&volume).await.map_err(status)?;
            // This writes the cache of the volume first.
            self.client.volume().unmount_volume(&volume, &staging).await.map_err(status)?;
            self.client.disk().set_disk_state(disk, DiskState::Offline).await.map_err(status)?;
        }
        Ok(Response::new(NodeUnstageVolumeResponse {}))
    }

    /// Creates a link to the staging directory, which the container runtime follows.
    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Result<Response<NodePublishVolumeResponse>, Status> {
        let request = request.into_inner();
        required("volume ID", &request.volume_id)?;
        let target = path("target path", &request.target_path)?;
        check_capability(request.volume_capability.as_ref())?;
        let staging = path("staging target path", &request.staging_target_path)?;
        if self.mounted_at(&staging).await?.is_none() {
            return Err(Status::failed_precondition(format!("no volume is staged at {staging}")));
        }
        // Kubelet has created the parent directory of the target. Mkdir succeeds if it exists.
        let (parent, _) = target.rsplit_once('\\').unwrap_or_default();
        self.client.filesystem().mkdir(parent).await.map_err(status)?;
        self.client.filesystem().create_symlink(&staging, &target).await.map_err(status)?;
        Ok(Response::new(NodePublishVolumeResponse {}))
    }

    /// Removes the link. Without `force`, csi-proxy refuses to remove a directory with files in it.
    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
        let request = request.into_inner();
        required("volume ID", &request.volume_id)?;
        let target = path("target path", &request.target_path)?;
        let files = self.client.filesystem();
        if files.path_exists(&target).await.map_err(status)? {
            files.rmdir(&target, false).await.map_err(status)?;
        }
        Ok(Response::new(NodeUnpublishVolumeResponse {}))
    }

    /// Reports the size of the file system.
    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> Result<Response<NodeGetVolumeStatsResponse>, Status> {
        let request = request.into_inner();
        let volume = self.volume_at(&request.volume_id, &request.volume_path).await?;
        let stats = self.client.volume().get_volume_stats(&volume).await.map_err(status)?;
        let usage = VolumeUsage {
            unit: volume_usage::Unit::Bytes.into(),
            total: stats.total_bytes.cast_signed(),
            used: stats.used_bytes.cast_signed(),
            available: stats.total_bytes.saturating_sub(stats.used_bytes).cast_signed(),
        };
        Ok(Response::new(NodeGetVolumeStatsResponse { usage: vec![usage] }))
    }

    /// Grows the volume to the size of its disk, which the controller has made larger.
    async fn node_expand_volume(
        &self,
        request: Request<NodeExpandVolumeRequest>,
    ) -> Result<Response<NodeExpandVolumeResponse>, Status> {
        let request = request.into_inner();
        let volume = self.volume_at(&request.volume_id, &request.volume_path).await?;
        let (disks, volumes) = (self.client.disk(), self.client.volume());
        disks.rescan().await.map_err(status)?;
        volumes.resize_volume(&volume, 0).await.map_err(status)?;
        let disk = volumes.get_disk_number_from_volume_id(&volume).await.map_err(status)?;
        // The file system is somewhat smaller than the disk; the capacity is that of the disk.
        let size = disks.get_disk_stats(disk).await.map_err(status)?.cast_signed();
        if size < request.capacity_range.map_or(0, |range| range.required_bytes) {
            return Err(Status::failed_precondition(format!("disk {disk} has only {size} bytes yet")));
        }
        Ok(Response::new(NodeExpandVolumeResponse { capacity_bytes: size }))
    }
}

impl Node {
    /// Returns the number of the disk with a serial number. Numbers change when Windows restarts.
    async fn find_disk(&self, serial_number: &str) -> Result<u32, Status> {
        let disks = self.client.disk();
        disks.rescan().await.map_err(status)?;
        let all = disks.list_disk_ids().await.map_err(status)?;
        let found: Vec<u32> = all
            .into_iter()
            .filter(|(_, ids)| ids.serial_number.trim() == serial_number)
            .map(|(disk, _)| disk)
            .collect();
        match found[..] {
            [disk] => Ok(disk),
            // If two disks have it, do not guess: one of them would be formatted.
            _ => Err(Status::not_found(format!("{} disks have the serial number {serial_number}", found.len()))),
        }
    }

    /// Mounts a volume in a directory, unless it is mounted there.
    async fn mount(&self, volume: &str, directory: &str) -> Result<(), Status> {
        // Kubelet has created the directory. Mkdir succeeds if it exists.
        self.client.filesystem().mkdir(directory).await.map_err(status)?;
        match self.mounted_at(directory).await? {
            Some(mounted) if mounted == volume => Ok(()),
            Some(other) => Err(Status::failed_precondition(format!("{directory} has the volume {other}"))),
            None => self.client.volume().mount_volume(volume, directory).await.map_err(status),
        }
    }

    /// Returns the volume that is mounted at a path or that a link at this path leads to.
    async fn mounted_at(&self, path: &str) -> Result<Option<String>, Status> {
        match self.client.volume().get_volume_id_from_target_path(path).await {
            Ok(volume) => Ok(Some(volume)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(status(error)),
        }
    }

    /// Checks the arguments of a request about a published volume, and returns the volume.
    async fn volume_at(&self, volume_id: &str, volume_path: &str) -> Result<String, Status> {
        required("volume ID", volume_id)?;
        let path = path("volume path", volume_path)?;
        match self.mounted_at(&path).await {
            Ok(Some(volume)) => Ok(volume),
            Err(error) if error.code() != Code::InvalidArgument => Err(error),
            Ok(None) | Err(_) => Err(Status::not_found(format!("no volume is mounted at {path}"))),
        }
    }
}

/// Refuses what the plugin does not support.
fn check_capability(capability: Option<&VolumeCapability>) -> Result<(), Status> {
    let Some(AccessType::Mount(mount)) = capability.and_then(|capability| capability.access_type.as_ref()) else {
        return Err(Status::invalid_argument("the volume capability is missing, or is not for a mounted volume"));
    };
    if !mount.fs_type.is_empty() && !mount.fs_type.eq_ignore_ascii_case("ntfs") {
        return Err(Status::invalid_argument(format!("the file system {} is not supported", mount.fs_type)));
    }
    Ok(())
}

fn required(name: &str, value: &str) -> Result<(), Status> {
    if value.is_empty() { Err(Status::invalid_argument(format!("the {name} is missing"))) } else { Ok(()) }
}

/// Returns a required path, with backslashes: kubelet may send slashes, which csi-proxy refuses in most paths.
fn path(name: &str, value: &str) -> Result<String, Status> {
    required(name, value)?;
    Ok(value.replace('/', r"\"))
}

/// Returns the status for a call of csi-proxy that failed.
fn status(error: Error) -> Status {
    Status::new(error.grpc_code().into(), error.to_string())
}
