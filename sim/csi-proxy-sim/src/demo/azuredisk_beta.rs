//! azuredisk as it was before v1.

use api::filesystem::v1beta1::PathContext;

use super::beta::{Disk, Filesystem, Volume};
use super::driver::{Difference, Driver, Outcome, wanted};

const LUN: &str = "2";
const STAGING: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\pv\pvc-beta\globalmount";
const RAW_STAGING: &str = r"\var\lib\kubelet\plugins\kubernetes.io\csi\pv\pvc-beta\globalmount";
const POD: &str = r"C:\var\lib\kubelet\pods\azuredisk-beta\volumes\kubernetes.io~csi\pvc";
const TARGET: &str = r"C:\var\lib\kubelet\pods\azuredisk-beta\volumes\kubernetes.io~csi\pvc\mount";
const RAW_TARGET: &str = r"\var\lib\kubelet\pods\azuredisk-beta\volumes\kubernetes.io~csi\pvc\mount";

pub(super) async fn play(driver: &Driver<'_>) -> Outcome {
    let (volumes, files) = (Volume::v1beta2(driver), Filesystem(driver));
    driver.phase("NodeStageVolume");
    let disk = stage(driver).await?;
    driver.must_be_staged(disk, STAGING);

    driver.phase("NodePublishVolume");
    driver.kubelet().mkdir_all(POD)?;
    if files.path_exists(TARGET, PathContext::Pod).await?.checked()? {
        files.rmdir(TARGET, PathContext::Pod).await?.checked()?;
    }
    files.path_exists(TARGET, PathContext::Pod).await?.checked()?;
    files.link_path(STAGING, TARGET).await?.checked()?;
    driver.must_link(TARGET, STAGING);

    driver.phase("NodeGetVolumeStats");
    let id = volumes.get_volume_id_from_mount(RAW_TARGET).await?;
    volumes.volume_stats(&id).await?;

    driver.phase("NodeExpandVolume");
    let size = driver.grow_disk(disk)?;
    let id = volumes.get_volume_id_from_mount(TARGET).await?;
    volumes.resize_volume(&id).await?;
    let stats = volumes.volume_stats(&id).await?;
    driver.must("rounded up to GiB it is what was asked for", stats.total.div_ceil(1 << 30) == size >> 30);
    driver.must_fill(disk);

    driver.phase("NodeUnpublishVolume");
    files.rmdir(TARGET, PathContext::Pod).await?.checked()?;

    driver.phase("NodeUnstageVolume");
    let volume = volumes.get_volume_id_from_mount(RAW_STAGING).await?;
    volumes.write_volume_cache(&volume).await?;
    files.rmdir(STAGING, PathContext::Plugin).await?.checked()?;
    driver.must_be_unstaged(disk, STAGING);
    driver.must_be_formatted_once(disk);
    Ok(())
}

async fn stage(driver: &Driver<'_>) -> Outcome<u32> {
    let (disks, volumes, files) = (Disk(driver), Volume::v1beta2(driver), Filesystem(driver));
    driver.kubelet().mkdir_all(STAGING)?;
    disks.rescan().await?;
    let locations = disks.list_disk_locations().await?;
    let at_lun = locations.iter().find(|(_, location)| location.lunid.eq_ignore_ascii_case(LUN));
    let (disk, _) = wanted(at_lun, "disk with the LUN")?;
    let number = disk.parse().map_err(|_| Difference(format!("the disk '{disk}' is no number")))?;

    let there = files.path_exists(STAGING, PathContext::Plugin).await?.checked()?;
    if there && files.is_mount_point(STAGING).await?.checked()? {
        driver.container().read_dir(STAGING)?;
        return Ok(number);
    }
    disks.partition_disk(disk).await?;
    let volume = wanted(volumes.list_volumes_on_disk(disk).await?.into_iter().next(), "volume on the disk")?;
    if !volumes.is_volume_formatted(&volume).await? {
        volumes.format_volume(&volume).await?;
    }
    volumes.mount_volume(&volume, &STAGING.replacen('C', "c", 1)).await?;
    Ok(number)
}
