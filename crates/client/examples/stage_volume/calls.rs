//! What a CSI node plugin for disks calls. Kubelet repeats each function until it succeeds, also
//! after a failure or a crash of csi-proxy at any point.

use csi_proxy_client::{Client, DiskNumber, DiskState, ErrorKind, Symlink, VolumeId, VolumeStats};

/// Why kubelet must repeat a call. A server of gRPC needs futures that another thread can continue.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// Stages, publishes, unpublishes and unstages a disk of csi-proxy-sim's built-in node.
pub(crate) async fn run(client: &Client) -> Result<(), Error> {
    let serial = "vol0123456789abcdef0_00000001.";
    let staging = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\example\globalmount";
    let target = r"C:\var\lib\kubelet\pods\1f0c2a\volumes\kubernetes.io~csi\example\mount";
    let stats = stage(client, serial, staging).await?;
    println!(
        "Staged a volume of {} bytes, {} of them used.",
        stats.total_bytes, stats.used_bytes
    );
    publish(client, staging, target).await?;
    println!("Published it at {target}.");
    unpublish(client, target).await?;
    unstage(client, serial, staging).await?;
    println!("Unpublished and unstaged it.");
    Ok(())
}

/// NodeStageVolume: formats the disk with this serial number if it is new, and mounts its volume at
/// `staging`.
pub(crate) async fn stage(
    client: &Client,
    serial: &str,
    staging: &str,
) -> Result<VolumeStats, Error> {
    let (disks, volumes) = (client.disk(), client.volume());
    disks.rescan().await?;
    let disk = find_disk(client, serial)
        .await?
        .ok_or_else(|| format!("no disk has the serial number {serial}"))?;

    // First: the csi-proxy written in Go cannot partition an offline disk.
    disks.set_disk_state(disk, DiskState::Online).await?;
    // A disk that has a partition table is left as it is.
    disks.partition_disk(disk).await?;
    let on_disk = volumes.list_volumes_on_disk(disk, None).await?;
    let [volume] = on_disk.as_slice() else {
        return Err(format!("disk {disk} has {} volumes, expected 1", on_disk.len()).into());
    };
    if !volumes.is_volume_formatted(volume).await? {
        volumes.format_volume(volume).await?;
    }

    // Kubelet has created the directory. This succeeds if it exists.
    client.filesystem().mkdir(staging).await?;
    match mounted_at(client, staging).await? {
        Some(mounted) if mounted == *volume => {}
        Some(other) => return Err(format!("{staging} has another volume, {other}").into()),
        None => volumes.mount_volume(volume, staging).await?,
    }
    // The disk may have grown while it was detached.
    volumes.resize_volume(volume, None).await?;
    Ok(volumes.get_volume_stats(volume).await?)
}

/// NodePublishVolume: creates a link to the staged volume at `target`.
pub(crate) async fn publish(client: &Client, staging: &str, target: &str) -> Result<(), Error> {
    let files = client.filesystem();
    let staged = mounted_at(client, staging)
        .await?
        .ok_or_else(|| format!("no volume is staged at {staging}"))?;
    if files.path_exists(target).await? {
        if mounted_at(client, target).await? == Some(staged) {
            return Ok(());
        }
        // A link to something else, or a directory that kubelet has created. This fails if the
        // directory has contents.
        files.rmdir(target).await?;
    }
    let (parent, _) = target
        .rsplit_once('\\')
        .ok_or_else(|| format!("{target} has no parent"))?;
    files.mkdir(parent).await?;
    files
        .create_symlink(Symlink {
            path: target,
            leads_to: staging,
        })
        .await?;
    Ok(())
}

/// NodeUnpublishVolume: removes the link at `target`, and nothing that it leads to.
pub(crate) async fn unpublish(client: &Client, target: &str) -> Result<(), Error> {
    if client.filesystem().path_exists(target).await? {
        client.filesystem().rmdir(target).await?;
    }
    Ok(())
}

/// NodeUnstageVolume: unmounts the volume and takes its disk offline, so that it can be detached.
/// Kubelet removes the directory.
pub(crate) async fn unstage(client: &Client, serial: &str, staging: &str) -> Result<(), Error> {
    let volumes = client.volume();
    let disk = find_disk(client, serial).await?;
    if let Some(volume) = mounted_at(client, staging).await? {
        if disk != Some(volumes.get_disk_number_from_volume_id(&volume).await?) {
            return Err(format!("{staging} has the volume of another disk, {volume}").into());
        }
        volumes.unmount_volume(&volume, staging).await?;
    }
    // Not only if a volume was mounted: an earlier attempt may have failed after it had unmounted
    // the volume.
    if let Some(disk) = disk {
        client
            .disk()
            .set_disk_state(disk, DiskState::Offline)
            .await?;
    }
    Ok(())
}

/// Returns the one disk with exactly this serial number.
async fn find_disk(client: &Client, serial: &str) -> Result<Option<DiskNumber>, Error> {
    let ids = client.disk().list_disk_ids().await?;
    let found = ids
        .iter()
        .filter(|(_, ids)| ids.serial_number.trim() == serial);
    match found.map(|(disk, _)| *disk).collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [disk] => Ok(Some(disk)),
        // Do not guess: one of them would be formatted.
        _ => Err(format!("several disks have the serial number {serial}").into()),
    }
}

/// Returns the volume that is mounted at a path or that a link at this path leads to.
async fn mounted_at(client: &Client, path: &str) -> Result<Option<VolumeId>, Error> {
    match client.volume().get_volume_id_from_target_path(path).await {
        Ok(volume) => Ok(Some(volume)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
