//! What a CSI node plugin for disks calls. Each function may be repeated, as kubelet repeats its calls.

use std::error::Error;

use csi_proxy_client::{Client, DiskState, ErrorKind, VolumeStats};

/// Stages, publishes, unpublishes and unstages a disk of csi-proxy-sim's built-in node.
pub(crate) async fn run(client: &Client) -> Result<(), Box<dyn Error>> {
    let staging = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\example\globalmount";
    let target = r"C:\var\lib\kubelet\pods\1f0c2a\volumes\kubernetes.io~csi\example\mount";
    let stats = stage(client, "vol0123456789abcdef0", staging).await?;
    println!("Staged a volume of {} bytes, {} of them used.", stats.total_bytes, stats.used_bytes);
    publish(client, staging, target).await?;
    println!("Published it at {target}.");
    unpublish(client, target).await?;
    unstage(client, staging).await?;
    println!("Unpublished and unstaged it.");
    Ok(())
}

/// NodeStageVolume: formats the disk with this serial number if it is new, and mounts its volume at `staging`.
pub(crate) async fn stage(client: &Client, serial: &str, staging: &str) -> Result<VolumeStats, Box<dyn Error>> {
    let (disks, volumes) = (client.disk(), client.volume());

    let ids = disks.list_disk_ids().await?;
    let found = ids.iter().find(|(_, ids)| ids.serial_number.starts_with(serial));
    let (&disk, _) = found.ok_or_else(|| format!("no disk has the serial number {serial}"))?;

    disks.partition_disk(disk).await?;
    disks.set_disk_state(disk, DiskState::Online).await?;
    let on_disk = volumes.list_volumes_on_disk(disk, None).await?;
    let volume = on_disk.first().ok_or_else(|| format!("disk {disk} has no volume"))?;
    if !volumes.is_volume_formatted(volume).await? {
        volumes.format_volume(volume).await?;
    }

    // Mounted already, if this is a repetition; the directory must otherwise exist and be empty.
    match volumes.get_volume_id_from_target_path(staging).await {
        Ok(mounted) if mounted == *volume => {}
        Ok(other) => return Err(format!("{staging} has another volume, {other}").into()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            client.filesystem().mkdir(staging).await?;
            volumes.mount_volume(volume, staging).await?;
        }
        Err(error) => return Err(error.into()),
    }
    // The disk may have grown while it was detached.
    volumes.resize_volume(volume, 0).await?;
    Ok(volumes.get_volume_stats(volume).await?)
}

/// NodePublishVolume: creates a link to the staged volume at `target`.
pub(crate) async fn publish(client: &Client, staging: &str, target: &str) -> Result<(), Box<dyn Error>> {
    let files = client.filesystem();
    if files.path_exists(target).await? {
        // Kubelet may have created a directory there.
        files.rmdir(target, true).await?;
    }
    let (parent, _) = target.rsplit_once('\\').ok_or_else(|| format!("{target} has no parent"))?;
    files.mkdir(parent).await?;
    files.create_symlink(staging, target).await?;
    Ok(())
}

/// NodeUnpublishVolume: removes the link at `target`, and nothing that it leads to.
pub(crate) async fn unpublish(client: &Client, target: &str) -> Result<(), Box<dyn Error>> {
    client.filesystem().rmdir(target, true).await?;
    Ok(())
}

/// NodeUnstageVolume: unmounts the volume and takes its disk offline, so that it can be detached.
pub(crate) async fn unstage(client: &Client, staging: &str) -> Result<(), Box<dyn Error>> {
    let volumes = client.volume();
    match volumes.get_volume_id_from_target_path(staging).await {
        Ok(volume) => {
            let disk = volumes.get_disk_number_from_volume_id(&volume).await?;
            volumes.unmount_volume(&volume, staging).await?;
            client.disk().set_disk_state(disk, DiskState::Offline).await?;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    client.filesystem().rmdir(staging, true).await?;
    Ok(())
}
