//! gce-pd as it was before v1, with an NVMe disk: disks are decimal text, and a response has an `error` of its own.

use api::filesystem::v1beta1::PathContext;

use super::beta::{Disk, Filesystem, Volume, WithError};
use super::driver::{Difference, Driver, Outcome, wanted};

const STAGING: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\pd.csi.storage.gke.io\5e\globalmount";
const RAW_STAGING: &str = r"\var\lib\kubelet\plugins\kubernetes.io\csi\pd.csi.storage.gke.io\5e\globalmount";
const POD: &str = r"C:\var\lib\kubelet\pods\gce-beta\volumes\kubernetes.io~csi\pvc";
const TARGET: &str = r"C:\var\lib\kubelet\pods\gce-beta\volumes\kubernetes.io~csi\pvc\mount";
const RAW_TARGET: &str = r"\var\lib\kubelet\pods\gce-beta\volumes\kubernetes.io~csi\pvc\mount";

pub(super) async fn play(driver: &Driver<'_>) -> Outcome {
    let (disks, volumes, files) = (Disk(driver), Volume(driver), Filesystem(driver));
    driver.phase("NodeStageVolume");
    let disk = stage(driver).await?;
    let number = disk.parse().map_err(|_| Difference(format!("the disk '{disk}' is no number")))?;
    driver.must_be_staged(number, STAGING);

    driver.phase("NodePublishVolume");
    driver.kubelet().mkdir_all(POD)?;
    files.is_mount_point(RAW_TARGET).refused("").await?;
    if checked(files.path_exists(TARGET, PathContext::Pod).await?)? {
        checked(files.rmdir(TARGET, PathContext::Pod).await?)?;
    }
    driver.container().mkdir_all(POD)?;
    checked(files.link_path(STAGING, TARGET).await?)?;
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
    checked(files.rmdir(TARGET, PathContext::Pod).await?)?;

    driver.phase("NodeUnstageVolume");
    if checked(files.path_exists(STAGING, PathContext::Plugin).await?)? {
        let volume = volumes.get_volume_id_from_mount(STAGING).await?;
        volumes.dismount_volume(&volume, STAGING).await?;
        checked(files.rmdir(STAGING, PathContext::Plugin).await?)?;
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
    let (disks, volumes, files) = (Disk(driver), Volume(driver), Filesystem(driver));
    driver.kubelet().mkdir_all(STAGING)?;
    let disk = find_disk(driver).await?;
    if checked(files.is_mount_point(RAW_STAGING).await?)? {
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

/// The answer, if the response names no error.
fn checked<T>(response: WithError<T>) -> Outcome<T> {
    if response.error.is_empty() { Ok(response.answer) } else { Err(Difference(response.error)) }
}
