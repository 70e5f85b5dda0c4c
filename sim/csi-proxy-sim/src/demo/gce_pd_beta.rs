//! gce-pd as it was before v1, with an NVMe disk: disks are decimal text, and a response has an `error` of its own.

use api::filesystem::v1beta1::PathContext;

use super::beta::{Disk, Filesystem, Volume};
use super::driver::{Difference, Driver, Outcome, wanted};

const STAGING: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\pd.csi.storage.gke.io\5e\globalmount";
const RAW_STAGING: &str = r"\var\lib\kubelet\plugins\kubernetes.io\csi\pd.csi.storage.gke.io\5e\globalmount";
const POD: &str = r"C:\var\lib\kubelet\pods\gce-beta\volumes\kubernetes.io~csi\pvc";
const TARGET: &str = r"C:\var\lib\kubelet\pods\gce-beta\volumes\kubernetes.io~csi\pvc\mount";
const RAW_TARGET: &str = r"\var\lib\kubelet\pods\gce-beta\volumes\kubernetes.io~csi\pvc\mount";

pub(super) async fn play(driver: &Driver<'_>) -> Outcome {
    let (disks, volumes, files) = (Disk(driver), Volume::v1beta1(driver), Filesystem(driver));
    driver.phase("NodeStageVolume");
    let disk = stage(driver).await?;
    let number = disk.parse().map_err(|_| Difference(format!("the disk '{disk}' is no number")))?;
    driver.must_be_staged(number, STAGING);

    driver.phase("NodePublishVolume");
    driver.kubelet().mkdir_all(POD)?;
    files.is_mount_point(RAW_TARGET).refused("").await?;
    if files.path_exists(TARGET, PathContext::Pod).await?.checked()? {
        files.rmdir(TARGET, PathContext::Pod).await?.checked()?;
    }
    driver.container().mkdir_all(POD)?;
    files.link_path(STAGING, TARGET).await?.checked()?;
    driver.must_link(TARGET, STAGING);

    driver.phase("NodeGetVolumeStats");
    let id = volumes.get_volume_id_from_mount(RAW_TARGET).await?;
    volumes.volume_stats(&id).await?;

    driver.phase("NodeExpandVolume");
    let size = driver.grow_disk(number)?;
    find_disk(driver).await?;
    let id = volumes.get_volume_id_from_mount(RAW_TARGET).await?;
    volumes.resize_volume(&id).await?;
    let total = disks.disk_stats(&disk).await?;
    driver.must("the disk has the size asked for", total.0 >= size);
    driver.must_fill(number);

    driver.phase("NodeUnpublishVolume");
    files.rmdir(TARGET, PathContext::Pod).await?.checked()?;

    driver.phase("NodeUnstageVolume");
    if files.path_exists(STAGING, PathContext::Plugin).await?.checked()? {
        let volume = volumes.get_volume_id_from_mount(STAGING).await?;
        volumes.dismount_volume(&volume, STAGING).await?;
        files.rmdir(STAGING, PathContext::Plugin).await?.checked()?;
        let number = volumes.get_volume_disk_number(&volume).await?;
        disks.set_attach_state(&number.to_string(), false).await?;
    }
    driver.must_be_unstaged(number, STAGING);
    driver.must_be_online(number, false);
    driver.must_be_formatted_once(number);
    Ok(())
}

/// An identifier that has to do with EUI-64, by its key or its value, wins over all others.
async fn find_disk(driver: &Driver<'_>) -> Outcome<String> {
    let ids = Disk(driver).list_disk_ids().await?;
    let keys = ids.values().flat_map(|ids| ids.identifiers.keys());
    driver.must(
        "the keys are page83 and serialNumber",
        keys.into_iter().all(|key| key == "page83" || key == "serialNumber"),
    );
    let eui = |key: &str, value: &str| key.to_lowercase().contains("eui") || value.starts_with("eui.");
    let mut found = ids.iter().filter(|(_, ids)| ids.identifiers.iter().any(|(key, value)| eui(key, value)));
    wanted(found.next().map(|(id, _)| id.clone()), "disk with an EUI-64")
}

async fn stage(driver: &Driver<'_>) -> Outcome<String> {
    let (disks, volumes, files) = (Disk(driver), Volume::v1beta1(driver), Filesystem(driver));
    driver.kubelet().mkdir_all(STAGING)?;
    let disk = find_disk(driver).await?;
    if files.is_mount_point(RAW_STAGING).await?.checked()? {
        return Ok(disk);
    }
    disks.disk_stats(&disk).await?;
    disks.partition_disk(&disk).await?;
    disks.set_attach_state(&disk, true).await?;
    let volume = wanted(volumes.list_volumes_on_disk(&disk).await?.into_iter().next(), "volume on the disk")?;
    if !volumes.is_volume_formatted(&volume).await? {
        volumes.format_volume(&volume).await?;
    }
    volumes.mount_volume(&volume, RAW_STAGING).await?;
    let id = volumes.get_volume_id_from_mount(RAW_STAGING).await?;
    volumes.resize_volume(&id).await?;
    Ok(disk)
}
