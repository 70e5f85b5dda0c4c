//! aws-ebs: finds its disk by serial number, and knows by the text of an error that nothing is staged yet.

use super::driver::{Driver, Outcome, wanted};
use super::v1::{Disk, Filesystem, Volume};

/// The volume's id without its dash, as the disk's serial number has it.
const VOLUME: &str = "vol0123456789abcdef0";
/// What the driver looks for in an error to conclude that nothing is mounted. Any other error fails its stage.
const NOTHING_MOUNTED: &str = "because it does not exist";
const STAGING: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\ebs.csi.aws.com\6f\globalmount";
const POD: &str = r"C:\var\lib\kubelet\pods\ebs\volumes\kubernetes.io~csi\pvc";
const TARGET: &str = r"C:\var\lib\kubelet\pods\ebs\volumes\kubernetes.io~csi\pvc\mount";

pub(super) async fn play(driver: &Driver<'_>) -> Outcome {
    let (disks, volumes, files) = (Disk(driver), Volume(driver), Filesystem(driver));
    driver.phase("NodeStageVolume");
    driver.kubelet().mkdir_all(STAGING)?;
    let disk = stage(driver).await?;
    driver.must_be_staged(disk, STAGING);

    driver.phase("NodeStageVolume, asked again by kubelet");
    let found = find_disk(driver).await?;
    files.path_exists(STAGING).await?;
    let staged = volumes.get_volume_id_from_target_path(STAGING).await?;
    let number = volumes.get_disk_number_from_volume_id(&staged).await?;
    driver.must("the disk found is the one that is staged", number == found);

    driver.phase("NodePublishVolume");
    driver.kubelet().mkdir_all(POD)?;
    if files.path_exists(TARGET).await? {
        files.rmdir(TARGET, true).await?;
    }
    files.path_exists(TARGET).await?;
    files.create_symlink(STAGING, TARGET).await?;
    driver.must_link(TARGET, STAGING);
    driver.pod().write_file(&format!(r"{TARGET}\data.txt"), "kept")?;

    driver.phase("NodeGetVolumeStats");
    files.path_exists(TARGET).await?;
    driver.container().stat_fs(TARGET)?;

    driver.phase("NodeExpandVolume");
    let size = driver.grow_disk(disk)?;
    let id = volumes.get_volume_id_from_target_path(TARGET).await?;
    volumes.get_disk_number_from_volume_id(&id).await?;
    find_disk(driver).await?;
    disks.rescan().await?;
    let id = volumes.get_volume_id_from_target_path(TARGET).await?;
    volumes.resize_volume(&id).await?;
    let total = disks.get_disk_stats(disk).await?;
    driver.must("the disk has the size asked for", total.0 >= size);
    driver.must_fill(disk);

    driver.phase("NodeUnpublishVolume");
    files.rmdir(TARGET, true).await?;

    driver.phase("NodeUnstageVolume");
    let volume = volumes.get_volume_id_from_target_path(STAGING).await?;
    volumes.get_disk_number_from_volume_id(&volume).await?;
    let volume = volumes.get_volume_id_from_target_path(STAGING).await?;
    volumes.unmount_volume(&volume, STAGING).await?;
    files.rmdir(STAGING, true).await?;
    let number = volumes.get_disk_number_from_volume_id(&volume).await?;
    disks.set_disk_state(number, false).await?;
    driver.must_be_unstaged(disk, STAGING);
    driver.must_be_online(disk, false);

    driver.phase("NodeUnstageVolume, asked again by kubelet");
    volumes.get_volume_id_from_target_path(STAGING).refused(NOTHING_MOUNTED).await?;
    driver.must_be_formatted_once(disk);
    Ok(())
}

async fn find_disk(driver: &Driver<'_>) -> Outcome<u32> {
    let ids = Disk(driver).list_disk_ids().await?;
    let mut found = ids.iter().filter(|(_, ids)| ids.serial_number.contains(VOLUME));
    wanted(found.next().map(|(number, _)| *number), "disk with the volume's serial number")
}

async fn stage(driver: &Driver<'_>) -> Outcome<u32> {
    let (disks, volumes, files) = (Disk(driver), Volume(driver), Filesystem(driver));
    let disk = find_disk(driver).await?;
    if !files.path_exists(STAGING).await? {
        files.mkdir(STAGING).await?;
    }
    // The directory is there and plain.
    volumes.get_volume_id_from_target_path(STAGING).refused(NOTHING_MOUNTED).await?;
    disks.partition_disk(disk).await?;
    disks.set_disk_state(disk, true).await?;
    let volume = wanted(volumes.list_volumes_on_disk(disk).await?.into_iter().next(), "volume on the disk")?;
    if !volumes.is_volume_formatted(&volume).await? {
        volumes.format_volume(&volume).await?;
    }
    volumes.mount_volume(&volume, STAGING).await?;
    disks.rescan().await?;
    let of_disk = disks.get_disk_stats(disk).await?;
    let id = volumes.get_volume_id_from_target_path(STAGING).await?;
    let of_volume = volumes.get_volume_stats(&id).await?;
    // The rule reads the wrong way round, and so is normally false.
    if of_disk.0 <= of_volume.total + 4096 {
        volumes.resize_volume(&id).await?;
    }
    Ok(disk)
}
