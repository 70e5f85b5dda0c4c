//! Longhorn's plugin, over iSCSI: its disk comes with the session and goes with it.

use super::driver::{Difference, Driver, Outcome, wanted};
use super::v1::{Disk, Filesystem, Iscsi, Volume};

const PORTAL: &str = "10.0.0.10";
const IQN: &str = "iqn.2026-01.io.k8s.csi:open";
const STAGING: &str = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\driver.longhorn.io\8b\globalmount";
const POD: &str = r"C:\var\lib\kubelet\pods\longhorn\volumes\kubernetes.io~csi\pvc";
const TARGET: &str = r"C:\var\lib\kubelet\pods\longhorn\volumes\kubernetes.io~csi\pvc\mount";

pub(super) async fn play(driver: &Driver<'_>) -> Outcome {
    let (volumes, files) = (Volume(driver), Filesystem(driver));
    driver.phase("NodeStageVolume");
    let (disk, volume) = stage(driver).await?;
    driver.must_be_staged(disk, STAGING);

    driver.phase("NodePublishVolume");
    driver.kubelet().mkdir_all(TARGET)?;
    driver.container().mkdir_all(POD)?;
    if files.path_exists(TARGET).await? && !files.is_symlink(TARGET).await? {
        files.rmdir(TARGET, false).await?;
    }
    files.create_symlink(STAGING, TARGET).await?;
    driver.must_link(TARGET, STAGING);
    driver.pod().write_file(&format!(r"{TARGET}\data.txt"), "kept")?;

    driver.phase("NodePublishVolume, into a directory that is in use");
    let used = format!(r"{POD}\used");
    driver.pod().write_file(&used, "")?;
    files.rmdir(POD, false).refused("not empty").await?;

    driver.phase("NodeGetVolumeStats");
    let id = volumes.get_volume_id_from_target_path(TARGET).await?;
    driver.must("the link leads to the volume", id == volume);
    volumes.get_volume_stats(&id).await?;

    driver.phase("NodeExpandVolume");
    driver.grow_disk(disk)?;
    volumes.resize_volume(&id).await?;
    driver.must_fill(disk);

    driver.phase("NodeUnpublishVolume");
    files.rmdir(TARGET, true).await?;
    driver.phase("NodeUnstageVolume");
    unstage(driver, disk, &volume).await?;
    driver.must("the disk went with its session", driver.sim().disk(disk).is_none());

    driver.phase("NodeStageVolume, in a new session");
    let (disk, volume) = stage(driver).await?;
    driver.must_be_staged(disk, STAGING);
    let kept = driver.pod().read_file(&format!(r"{STAGING}\data.txt"))?;
    driver.must("the pod's file is still there", kept == "kept");
    driver.phase("NodeUnstageVolume");
    unstage(driver, disk, &volume).await?;
    driver.must("the disk went with its session", driver.sim().disk(disk).is_none());
    Ok(())
}

async fn stage(driver: &Driver<'_>) -> Outcome<(u32, String)> {
    let (disks, volumes) = (Disk(driver), Volume(driver));
    let iscsi = Iscsi { driver, portal: PORTAL };
    driver.kubelet().mkdir_all(STAGING)?;
    if iscsi.discover_target_portal().or_refused().await?.is_none_or(|iqns| !iqns.iter().any(|iqn| iqn == IQN)) {
        iscsi.add_target_portal().await?;
        let iqns = iscsi.discover_target_portal().await?;
        driver.must("the portal names the target", iqns.iter().any(|iqn| iqn == IQN));
    }
    iscsi.connect_target(IQN).await?;
    let ids = iscsi.get_target_disks(IQN).await?;
    let [id] = ids.as_slice() else { return Err(Difference(format!("the target has {} disks, not one", ids.len()))) };
    let disk = wanted(id.parse().ok(), "disk with a decimal number")?;
    disks.set_disk_state(disk, true).await?;
    disks.partition_disk(disk).await?;
    let found = volumes.list_volumes_on_disk(disk).await?;
    let [volume] = found.as_slice() else { return Err(Difference(format!("{} volumes, not one", found.len()))) };
    if !volumes.is_volume_formatted(volume).await? {
        volumes.format_volume(volume).await?;
    }
    volumes.mount_volume(volume, STAGING).await?;
    Ok((disk, volume.clone()))
}

async fn unstage(driver: &Driver<'_>, disk: u32, volume: &str) -> Outcome {
    Volume(driver).unmount_volume(volume, STAGING).await?;
    driver.must_be_online(disk, true);
    Disk(driver).set_disk_state(disk, false).await?;
    driver.must_be_online(disk, false);
    Iscsi { driver, portal: PORTAL }.disconnect_target(IQN).await
}
