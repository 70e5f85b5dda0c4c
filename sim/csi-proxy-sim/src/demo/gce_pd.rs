//! gce-pd: finds its disk by the last word of page 83, leaves out the drive of paths, and unstages to an offline disk.

use super::driver::{Driver, Outcome, wanted};
use super::v1::{Disk, Filesystem, Volume};

const DEVICE: &str = "pvc-5f0e6c7a-0b8d-4d2e-9f3c-1a2b3c4d5e6f";
const STAGING: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\pd.csi.storage.gke.io\4d\globalmount";
const RAW_STAGING: &str = r"\var\lib\kubelet\plugins\kubernetes.io\csi\pd.csi.storage.gke.io\4d\globalmount";
const POD: &str = r"C:\var\lib\kubelet\pods\gce\volumes\kubernetes.io~csi\pvc";
const TARGET: &str = r"C:\var\lib\kubelet\pods\gce\volumes\kubernetes.io~csi\pvc\mount";
const RAW_TARGET: &str = r"\var\lib\kubelet\pods\gce\volumes\kubernetes.io~csi\pvc\mount";

pub(super) async fn play(driver: &Driver<'_>) -> Outcome {
    let (disks, volumes, files) = (Disk(driver), Volume(driver), Filesystem(driver));
    driver.phase("NodeStageVolume");
    let disk = stage(driver).await?;
    driver.must_be_staged(disk, STAGING);

    driver.phase("NodePublishVolume");
    driver.kubelet().mkdir_all(POD)?;
    // An error counts as "not mounted".
    files.is_symlink(RAW_TARGET).refused("").await?;
    if files.path_exists(TARGET).await? {
        files.rmdir(TARGET, true).await?;
    }
    driver.container().mkdir_all(POD)?;
    files.create_symlink(STAGING, TARGET).await?;
    driver.must_link(TARGET, STAGING);
    driver.pod().write_file(&format!(r"{TARGET}\data.txt"), "kept")?;

    driver.phase("NodeGetVolumeStats");
    let (there, _) = driver.container().lstat(TARGET)?;
    driver.must("the container sees the volume's path", there);
    let id = volumes.get_volume_id_from_target_path(RAW_TARGET).await?;
    volumes.get_volume_stats(&id).await?;

    driver.phase("NodeExpandVolume");
    let size = driver.grow_disk(disk)?;
    find_disk(driver).await?;
    let id = volumes.get_volume_id_from_target_path(RAW_TARGET).await?;
    volumes.resize_volume(&id).await?;
    let total = disks.get_disk_stats(disk).await?;
    driver.must("the disk has the size asked for", total.0 >= size);
    driver.must_fill(disk);

    driver.phase("NodeUnpublishVolume");
    files.rmdir(TARGET, true).await?;
    driver.phase("NodeUnstageVolume");
    unstage(driver).await?;
    driver.must_be_unstaged(disk, STAGING);
    driver.must_be_online(disk, false);

    driver.phase("NodeStageVolume, of the disk that is offline now");
    stage(driver).await?;
    driver.must_be_staged(disk, STAGING);
    let kept = driver.pod().read_file(&format!(r"{STAGING}\data.txt"))?;
    driver.must("the pod's file is still there", kept == "kept");
    driver.phase("NodeUnstageVolume");
    unstage(driver).await?;
    driver.must_be_unstaged(disk, STAGING);
    driver.must_be_online(disk, false);
    Ok(())
}

async fn find_disk(driver: &Driver<'_>) -> Outcome<u32> {
    let ids = Disk(driver).list_disk_ids().await?;
    let has_name = |page83: &str| page83.split_whitespace().next_back() == Some(DEVICE);
    // The driver takes the last word of what is not empty, and panics where there is none.
    let blank = ids.values().any(|ids| !ids.page83.is_empty() && ids.page83.trim().is_empty());
    driver.must("no page 83 is all blanks", !blank);
    wanted(ids.iter().find(|(_, ids)| has_name(&ids.page83)).map(|(number, _)| *number), "disk with the name")
}

async fn stage(driver: &Driver<'_>) -> Outcome<u32> {
    let (disks, volumes, files) = (Disk(driver), Volume(driver), Filesystem(driver));
    driver.kubelet().mkdir_all(STAGING)?;
    let disk = find_disk(driver).await?;
    if files.is_symlink(RAW_STAGING).await? {
        return Ok(disk);
    }
    disks.get_disk_stats(disk).await?;
    // Partitioned first, although the last unstage left the disk offline.
    disks.partition_disk(disk).await?;
    disks.set_disk_state(disk, true).await?;
    let volume = wanted(volumes.list_volumes_on_disk(disk).await?.into_iter().next(), "volume on the disk")?;
    if !volumes.is_volume_formatted(&volume).await? {
        volumes.format_volume(&volume).await?;
    }
    volumes.mount_volume(&volume, RAW_STAGING).await?;
    let id = volumes.get_volume_id_from_target_path(RAW_STAGING).await?;
    volumes.resize_volume(&id).await?;
    Ok(disk)
}

async fn unstage(driver: &Driver<'_>) -> Outcome {
    let (disks, volumes, files) = (Disk(driver), Volume(driver), Filesystem(driver));
    if !files.path_exists(STAGING).await? {
        return Ok(());
    }
    let volume = volumes.get_volume_id_from_target_path(STAGING).await?;
    volumes.unmount_volume(&volume, STAGING).await?;
    files.rmdir(STAGING, true).await?;
    // The volume has no path any more.
    let disk = volumes.get_disk_number_from_volume_id(&volume).await?;
    disks.set_disk_state(disk, false).await
}
