//! vsphere: finds its disk by the whole of page 83, and makes a directory that is always there.

use super::driver::{Driver, Outcome, wanted};
use super::v1::{Disk, Filesystem, System, Volume};

const DISK: &str = "6000c29a98d05e384a43f0ef189aaf5a";
const STAGING: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\csi.vsphere.vmware.com\7a\globalmount";
const RAW_STAGING: &str = r"\var\lib\kubelet\plugins\kubernetes.io\csi\csi.vsphere.vmware.com\7a\globalmount";
const POD: &str = r"C:\var\lib\kubelet\pods\vsphere\volumes\kubernetes.io~csi\pvc";
const TARGET: &str = r"C:\var\lib\kubelet\pods\vsphere\volumes\kubernetes.io~csi\pvc\mount";

pub(super) async fn play(driver: &Driver<'_>) -> Outcome {
    let (disks, volumes, files) = (Disk(driver), Volume(driver), Filesystem(driver));
    driver.phase("NodeGetInfo");
    let serial = System(driver).get_bios_serial_number().await?;
    let digits: String = serial.trim().trim_start_matches("VMware-").replace([' ', '-'], "");
    let is_uuid = digits.len() == 32 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    driver.must("the serial number holds the machine's UUID", serial.starts_with("VMware-") && is_uuid);

    driver.phase("NodeStageVolume");
    driver.kubelet().mkdir_all(STAGING)?;
    let disk = stage(driver).await?;
    driver.must_be_staged(disk, STAGING);

    driver.phase("NodePublishVolume");
    driver.kubelet().mkdir_all(POD)?;
    if files.path_exists(TARGET).await? {
        files.rmdir(TARGET, true).await?;
    }
    files.mkdir(POD).await?;
    files.create_symlink(STAGING, TARGET).await?;
    driver.must_link(TARGET, STAGING);
    driver.pod().write_file(&format!(r"{TARGET}\data.txt"), "kept")?;

    driver.phase("NodeGetVolumeStats");
    let id = volumes.get_volume_id_from_target_path(RAW_STAGING).await?;
    volumes.get_volume_stats(&id).await?;

    driver.phase("NodeExpandVolume");
    let size = driver.grow_disk(disk)?;
    let id = volumes.get_volume_id_from_target_path(STAGING).await?;
    disks.rescan().await?;
    let number = volumes.get_disk_number_from_volume_id(&id).await?;
    let total = disks.get_disk_stats(number).await?;
    driver.must("the disk has the size asked for", total.0 >= size);
    let number = volumes.get_disk_number_from_volume_id(&id).await?;
    disks.set_disk_state(number, true).await?;
    volumes.resize_volume(&id).await?;
    volumes.get_volume_stats(&id).await?;
    driver.must_fill(disk);

    driver.phase("NodeUnpublishVolume");
    files.rmdir(TARGET, true).await?;
    // Asked again by kubelet, nothing is there, and the driver counts on that being no error.
    files.rmdir(TARGET, true).await?;

    driver.phase("NodeUnstageVolume");
    if files.path_exists(STAGING).await? {
        let volume = volumes.get_volume_id_from_target_path(STAGING).await?;
        volumes.unmount_volume(&volume, STAGING).await?;
        files.rmdir(STAGING, true).await?;
        let number = volumes.get_disk_number_from_volume_id(&volume).await?;
        disks.set_disk_state(number, false).await?;
    }
    driver.must_be_unstaged(disk, STAGING);
    driver.must_be_online(disk, false);
    driver.must_be_formatted_once(disk);
    Ok(())
}

async fn stage(driver: &Driver<'_>) -> Outcome<u32> {
    let (disks, volumes, files) = (Disk(driver), Volume(driver), Filesystem(driver));
    let there = files.path_exists(STAGING).await?;
    driver.must("the staging directory is there", there);
    let ids = disks.list_disk_ids().await?;
    let found = ids.iter().find(|(_, ids)| ids.page83 == DISK).map(|(number, _)| *number);
    let disk = wanted(found, "disk with that page 83, letter by letter")?;
    let (_, linked) = driver.container().lstat(STAGING)?;
    driver.must("the container sees no mount point yet", !linked);
    disks.partition_disk(disk).await?;
    disks.set_disk_state(disk, true).await?;
    let volume = wanted(volumes.list_volumes_on_disk(disk).await?.into_iter().next(), "volume on the disk")?;
    if !volumes.is_volume_formatted(&volume).await? {
        volumes.format_volume(&volume).await?;
    }
    volumes.mount_volume(&volume, STAGING).await?;
    Ok(disk)
}
