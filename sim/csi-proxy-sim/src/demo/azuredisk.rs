//! azuredisk: finds its disk by LUN alone, resizes it by its number, and removes the mount point itself.

use super::driver::{Driver, Outcome, wanted};
use super::v1::{Disk, Filesystem, Volume};

const LUN: &str = "1";
const STAGING: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk.csi.azure.com\1f\globalmount";
const POD: &str = r"C:\var\lib\kubelet\pods\azuredisk\volumes\kubernetes.io~csi";
const TARGET: &str = r"C:\var\lib\kubelet\pods\azuredisk\volumes\kubernetes.io~csi\pvc\mount";
const FILE: &str = r"C:\var\lib\kubelet\pods\azuredisk\volumes\kubernetes.io~csi\pvc\mount\data.txt";

pub(super) async fn play(driver: &Driver<'_>) -> Outcome {
    let files = Filesystem(driver);
    driver.phase("NodeStageVolume");
    let (disk, volume) = stage(driver).await?;
    driver.must_be_staged(disk, STAGING);

    driver.phase("NodePublishVolume");
    driver.kubelet().mkdir_all(&format!(r"{POD}\pvc"))?;
    if files.path_exists(TARGET).await? {
        files.rmdir(TARGET, true).await?;
    }
    files.path_exists(TARGET).await?;
    files.create_symlink(STAGING, TARGET).await?;
    driver.must_link(TARGET, STAGING);
    driver.pod().write_file(FILE, "kept")?;

    driver.phase("NodeGetVolumeStats");
    let id = Volume(driver).get_volume_id_from_target_path(&TARGET["C:".len()..]).await?;
    driver.must("the path without a drive leads to the same volume", id == volume);
    Volume(driver).get_volume_stats(&id).await?;

    driver.phase("NodeExpandVolume");
    let size = driver.grow_disk(disk)?;
    let id = Volume(driver).get_volume_id_from_target_path(TARGET).await?;
    Volume(driver).resize_volume(&id).await?;
    let stats = Volume(driver).get_volume_stats(&id).await?;
    driver.must("rounded up to GiB it is what was asked for", stats.total.div_ceil(1 << 30) == size >> 30);
    driver.must_fill(disk);

    driver.phase("NodeUnpublishVolume");
    files.rmdir(TARGET, true).await?;

    driver.phase("NodeUnstageVolume");
    unstage(driver).await?;
    driver.must_be_unstaged(disk, STAGING);

    driver.phase("NodeStageVolume, a second time");
    stage(driver).await?;
    driver.must_be_staged(disk, STAGING);
    let kept = driver.pod().read_file(&format!(r"{STAGING}\data.txt"))?;
    driver.must("the pod's file is still there", kept == "kept");
    driver.phase("NodeUnstageVolume");
    unstage(driver).await?;
    driver.must_be_unstaged(disk, STAGING);
    Ok(())
}

async fn stage(driver: &Driver<'_>) -> Outcome<(u32, String)> {
    let (disks, volumes, files) = (Disk(driver), Volume(driver), Filesystem(driver));
    driver.kubelet().mkdir_all(STAGING)?;
    disks.rescan().await?;
    let locations = disks.list_disk_locations().await?;
    let mut at_lun = locations.iter().filter(|(_, location)| location.lunid.eq_ignore_ascii_case(LUN));
    let (&disk, _) = wanted(at_lun.next(), "disk with the LUN")?;
    driver.must("one disk has the LUN, as the driver takes any", at_lun.next().is_none());

    if files.path_exists(STAGING).await? && files.is_symlink(STAGING).await? {
        driver.container().read_dir(STAGING)?;
        return Ok((disk, String::new()));
    }
    disks.partition_disk(disk).await?;
    let volume = wanted(volumes.list_volumes_on_disk(disk).await?.into_iter().next(), "volume on the disk")?;
    if !volumes.is_volume_formatted(&volume).await? {
        volumes.format_volume(&volume).await?;
    }
    volumes.mount_volume(&volume, &STAGING.replacen('C', "c", 1)).await?;
    // The driver names the disk where the RPC wants a volume.
    volumes.resize_volume(&disk.to_string()).await?;
    Ok((disk, volume))
}

async fn unstage(driver: &Driver<'_>) -> Outcome {
    let volume = Volume(driver).get_volume_id_from_target_path(&STAGING["C:".len()..]).await?;
    Volume(driver).write_volume_cache(&volume).await?;
    // It never unmounts: the mount point goes with the directory.
    Filesystem(driver).rmdir(STAGING, true).await
}
