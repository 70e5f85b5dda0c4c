//! The node service. Kubelet repeats its calls, so each does only what has not been done yet, also
//! after a failure or a crash of csi-proxy at any point. A failed call of csi-proxy is returned
//! with its status code, by which kubelet decides whether the operation may still be running.
//!
//! The ID of a volume is the serial number of its disk. NodeUnstageVolume gets only the ID, and
//! must find the disk when the volume is no longer mounted. A driver with other IDs keeps the
//! serial number in a file from NodeStageVolume on.

use csi_proxy_client::{Client, DiskNumber, DiskState, ErrorKind, Symlink, VolumeId};
use tonic::{Code, Request, Response, Status};

use crate::proto::csi::v1::node_service_capability::{self, Rpc, rpc};
use crate::proto::csi::v1::volume_capability::AccessType;
use crate::proto::csi::v1::volume_capability::access_mode::Mode;
use crate::proto::csi::v1::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetCapabilitiesRequest,
    NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse,
    NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, NodePublishVolumeRequest,
    NodePublishVolumeResponse, NodeServiceCapability, NodeStageVolumeRequest,
    NodeStageVolumeResponse, NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse,
    NodeUnstageVolumeRequest, NodeUnstageVolumeResponse, VolumeCapability, VolumeUsage,
    node_server, volume_usage,
};

pub(crate) struct Node {
    pub(crate) client: Client,
    pub(crate) id: String,
}

#[tonic::async_trait]
impl node_server::Node for Node {
    async fn node_get_info(
        &self,
        _: Request<NodeGetInfoRequest>,
    ) -> Result<Response<NodeGetInfoResponse>, Status> {
        Ok(Response::new(NodeGetInfoResponse {
            node_id: self.id.clone(),
            ..Default::default()
        }))
    }

    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        let capability = |of: rpc::Type| {
            let rpc = Rpc { r#type: of.into() };
            NodeServiceCapability {
                r#type: Some(node_service_capability::Type::Rpc(rpc)),
            }
        };
        let supported = [
            rpc::Type::StageUnstageVolume,
            rpc::Type::GetVolumeStats,
            rpc::Type::ExpandVolume,
        ];
        Ok(Response::new(NodeGetCapabilitiesResponse {
            capabilities: supported.map(capability).into(),
        }))
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

        let (disks, volumes) = (self.client.disk(), self.client.volume());
        let mut found = self.find_disk(&request.volume_id).await?;
        if found.is_none() {
            // Only now: a bus that does not answer holds up a rescan, and so would hold up all
            // volumes.
            disks.rescan().await?;
            found = self.find_disk(&request.volume_id).await?;
        }
        let Some(disk) = found else {
            return Err(Status::not_found(format!(
                "no disk has the serial number {}",
                request.volume_id
            )));
        };
        // First: the csi-proxy written in Go cannot partition an offline disk.
        disks.set_disk_state(disk, DiskState::Online).await?;
        // A disk that has a partition table is left as it is.
        disks.partition_disk(disk).await?;
        let on_disk = volumes.list_volumes_on_disk(disk, None).await?;
        let [volume] = on_disk.as_slice() else {
            let found = on_disk.len();
            return Err(Status::failed_precondition(format!(
                "disk {disk} has {found} volumes, expected 1"
            )));
        };
        if !volumes.is_volume_formatted(volume).await? {
            volumes.format_volume(volume).await?;
        }
        self.mount(volume, &staging).await?;
        // The disk may be larger than the volume: it may have grown while it was detached, or be a
        // copy of a smaller one.
        volumes.resize_volume(volume, None).await?;
        Ok(Response::new(NodeStageVolumeResponse {}))
    }

    /// Unmounts the volume and takes its disk offline, so that it can be detached. Kubelet removes
    /// the directory.
    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Result<Response<NodeUnstageVolumeResponse>, Status> {
        let request = request.into_inner();
        required("volume ID", &request.volume_id)?;
        let staging = path("staging target path", &request.staging_target_path)?;
        let disk = self.find_disk(&request.volume_id).await?;
        if let Some(volume) = self.mounted_at(&staging).await? {
            let on_disk = self
                .client
                .volume()
                .get_disk_number_from_volume_id(&volume)
                .await?;
            if disk != Some(on_disk) {
                return Err(Status::failed_precondition(format!(
                    "{staging} has the volume of disk {on_disk}"
                )));
            }
            // This writes the cache of the volume first.
            self.client
                .volume()
                .unmount_volume(&volume, &staging)
                .await?;
        }
        // Not only if a volume was mounted: an earlier attempt may have failed after it had
        // unmounted the volume.
        if let Some(disk) = disk {
            self.client
                .disk()
                .set_disk_state(disk, DiskState::Offline)
                .await?;
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
        if request.readonly {
            return Err(Status::invalid_argument(
                "read-only volumes are not supported",
            ));
        }
        let Some(staged) = self.mounted_at(&staging).await? else {
            return Err(Status::failed_precondition(format!(
                "no volume is staged at {staging}"
            )));
        };
        // The csi-proxy written in Go refuses to create a link that exists.
        if self.mounted_at(&target).await? == Some(staged) {
            return Ok(Response::new(NodePublishVolumeResponse {}));
        }
        self.remove_target(&target).await?;
        // Kubelet has created the parent directory of the target. Mkdir succeeds if it exists.
        let (parent, _) = target.rsplit_once('\\').unwrap_or_default();
        self.client.filesystem().mkdir(parent).await?;
        self.client
            .filesystem()
            .create_symlink(Symlink {
                path: &target,
                leads_to: &staging,
            })
            .await?;
        Ok(Response::new(NodePublishVolumeResponse {}))
    }

    /// Removes the link.
    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
        let request = request.into_inner();
        required("volume ID", &request.volume_id)?;
        let target = path("target path", &request.target_path)?;
        self.remove_target(&target).await?;
        Ok(Response::new(NodeUnpublishVolumeResponse {}))
    }

    /// Reports the size of the file system.
    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> Result<Response<NodeGetVolumeStatsResponse>, Status> {
        let request = request.into_inner();
        let volume = self
            .volume_at(&request.volume_id, &request.volume_path)
            .await?;
        let stats = self.client.volume().get_volume_stats(&volume).await?;
        let usage = VolumeUsage {
            unit: volume_usage::Unit::Bytes.into(),
            total: stats.total_bytes.cast_signed(),
            used: stats.used_bytes.cast_signed(),
            available: stats
                .total_bytes
                .saturating_sub(stats.used_bytes)
                .cast_signed(),
        };
        Ok(Response::new(NodeGetVolumeStatsResponse {
            usage: vec![usage],
        }))
    }

    /// Grows the volume to the size of its disk, which the controller has made larger.
    async fn node_expand_volume(
        &self,
        request: Request<NodeExpandVolumeRequest>,
    ) -> Result<Response<NodeExpandVolumeResponse>, Status> {
        let request = request.into_inner();
        let volume = self
            .volume_at(&request.volume_id, &request.volume_path)
            .await?;
        let (disks, volumes) = (self.client.disk(), self.client.volume());
        disks.rescan().await?;
        volumes.resize_volume(&volume, None).await?;
        let disk = volumes.get_disk_number_from_volume_id(&volume).await?;
        // The file system is somewhat smaller than the disk; the capacity is that of the disk.
        let size = disks.get_disk_stats(disk).await?.cast_signed();
        let requested = request
            .capacity_range
            .map_or(0, |range| range.required_bytes);
        if size < requested {
            let reason = format!(
                "disk {disk} has {size} of {requested} bytes: the controller has not grown it"
            );
            return Err(Status::failed_precondition(reason));
        }
        Ok(Response::new(NodeExpandVolumeResponse {
            capacity_bytes: size,
        }))
    }
}

impl Node {
    /// Returns the number of the disk with exactly this serial number, if there is one. Numbers
    /// change when Windows restarts.
    async fn find_disk(&self, serial_number: &str) -> Result<Option<DiskNumber>, Status> {
        let all = self.client.disk().list_disk_ids().await?;
        let found = all
            .iter()
            .filter(|(_, ids)| ids.serial_number.trim() == serial_number);
        match found.map(|(disk, _)| *disk).collect::<Vec<_>>()[..] {
            [] => Ok(None),
            [disk] => Ok(Some(disk)),
            // Do not guess: one of them would be formatted.
            _ => Err(Status::failed_precondition(format!(
                "several disks have the serial number {serial_number}"
            ))),
        }
    }

    /// Mounts a volume in a directory, unless it is mounted there.
    async fn mount(&self, volume: &VolumeId, directory: &str) -> Result<(), Status> {
        // Kubelet has created the directory. Mkdir succeeds if it exists.
        self.client.filesystem().mkdir(directory).await?;
        match self.mounted_at(directory).await? {
            Some(mounted) if mounted == *volume => Ok(()),
            Some(other) => Err(Status::failed_precondition(format!(
                "{directory} has the volume {other}"
            ))),
            None => Ok(self.client.volume().mount_volume(volume, directory).await?),
        }
    }

    /// Returns the volume that is mounted at a path or that a link at this path leads to.
    async fn mounted_at(&self, path: &str) -> Result<Option<VolumeId>, Status> {
        match self
            .client
            .volume()
            .get_volume_id_from_target_path(path)
            .await
        {
            Ok(volume) => Ok(Some(volume)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a link, or an empty directory. `rmdir` refuses a directory with files in it, which
    /// may be a pod's data.
    async fn remove_target(&self, target: &str) -> Result<(), Status> {
        if self.client.filesystem().path_exists(target).await? {
            self.client.filesystem().rmdir(target).await?;
        }
        Ok(())
    }

    /// Checks the arguments of a request about a published volume, and returns the volume.
    async fn volume_at(&self, volume_id: &str, volume_path: &str) -> Result<VolumeId, Status> {
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
    let Some(AccessType::Mount(mount)) =
        capability.and_then(|capability| capability.access_type.as_ref())
    else {
        return Err(Status::invalid_argument(
            "the volume capability is missing, or is not for a mounted volume",
        ));
    };
    if !mount.fs_type.is_empty() && !mount.fs_type.eq_ignore_ascii_case("ntfs") {
        return Err(Status::invalid_argument(format!(
            "the file system {} is not supported",
            mount.fs_type
        )));
    }
    match capability
        .and_then(|capability| capability.access_mode)
        .map(|access| access.mode())
    {
        Some(
            Mode::SingleNodeWriter | Mode::SingleNodeSingleWriter | Mode::SingleNodeMultiWriter,
        ) => Ok(()),
        _ => Err(Status::invalid_argument(
            "the access mode is not supported: NTFS cannot be shared between nodes",
        )),
    }
}

fn required(name: &str, value: &str) -> Result<(), Status> {
    if value.is_empty() {
        Err(Status::invalid_argument(format!("the {name} is missing")))
    } else {
        Ok(())
    }
}

/// Returns a required path as csi-proxy requires it: with backslashes and a drive. By default, the
/// root folder of kubelet is `\var\lib\kubelet`, without a drive.
fn path(name: &str, value: &str) -> Result<String, Status> {
    required(name, value)?;
    let path = value.replace('/', r"\");
    let has_no_drive = path.starts_with('\\') && !path.starts_with(r"\\");
    Ok(if has_no_drive {
        format!("C:{path}")
    } else {
        path
    })
}
