//! Stages a volume on a simulated node, as a CSI driver does: partitions a disk, formats its volume and mounts it.
//!
//! Run it with `cargo run -p csi-proxy-storage-ops --example stage_volume`. On Windows, a driver that links
//! `storage_ops` does the same with `os_win32::Windows` instead of the simulated node.

use std::error::Error;

use os_sim::Sim;
use storage_ops::{
    Config, DiskNumber, FormatVolume, GetVolumeIdFromTargetPath, GetVolumeStats, HostPath, IsVolumeFormatted,
    ListDiskIds, ListVolumesOnDisk, Mkdir, MountVolume, Node, PartitionDisk, UnmountVolume, VolumeId,
};

/// The name by which the cloud provider knows the disk.
const DISK_NAME: &str = "pvc-example";

/// The directory at which kubelet expects the volume.
const STAGING_PATH: &str = r"C:\var\lib\kubelet\plugins\example.csi.io\globalmount";

fn main() -> Result<(), Box<dyn Error>> {
    let sim = os_sim::node().disk(10 << 30).page83_ascii(DISK_NAME).build();
    let node = Node::new(sim.process(), Config::default());
    let volume = stage(&node)?;
    write_data(&sim)?;
    unstage(&node, volume)
}

/// Makes the disk's volume available at the staging path. Succeeds if that has already been done.
fn stage(node: &Node) -> Result<VolumeId, Box<dyn Error>> {
    let disk = find_disk(node)?;
    println!("found {DISK_NAME} as {disk}");

    node.run(&PartitionDisk { disk })?;
    let volume = node.run(&ListVolumesOnDisk { disk, partition: 0 })?[0];
    println!("{disk} is partitioned and has volume {volume}");

    if node.run(&IsVolumeFormatted { volume })? {
        println!("the volume is formatted already");
    } else {
        node.run(&FormatVolume { volume })?;
        println!("formatted the volume with NTFS");
    }

    let target = HostPath::parse(STAGING_PATH)?;
    node.run(&Mkdir { path: target.clone(), context: None })?;
    node.run(&MountVolume { volume, target })?;
    let stats = node.run(&GetVolumeStats { volume })?;
    println!("mounted it at {STAGING_PATH}: {} of {} bytes are used", stats.used, stats.total);
    Ok(volume)
}

fn find_disk(node: &Node) -> Result<DiskNumber, Box<dyn Error>> {
    let disks = node.run(&ListDiskIds)?;
    let found = disks.iter().find(|(_, ids)| ids.page83 == DISK_NAME);
    found.map(|(disk, _)| *disk).ok_or_else(|| format!("no disk is named {DISK_NAME}").into())
}

/// Writes a file through the mount point, as a container does.
fn write_data(sim: &Sim) -> Result<(), Box<dyn Error>> {
    sim.external().write(&format!(r"{STAGING_PATH}\data.txt"), b"written by a container")?;
    println!("a container wrote a file to the volume");
    Ok(())
}

/// Removes the mount point. The data stays on the volume.
fn unstage(node: &Node, volume: VolumeId) -> Result<(), Box<dyn Error>> {
    let target = HostPath::parse(STAGING_PATH)?;
    node.run(&UnmountVolume { volume, target: target.clone() })?;
    println!("unmounted the volume");

    // The error states what was attempted, on which object, and why it failed.
    let error = node.run(&GetVolumeIdFromTargetPath { target }).expect_err("no volume is mounted there any more");
    println!("{error}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{STAGING_PATH, main, stage, unstage, write_data};
    use storage_ops::{Config, Node};

    #[test]
    fn the_example_runs() {
        main().unwrap();
    }

    #[test]
    fn staging_twice_keeps_the_data() {
        let sim = os_sim::node().disk(10 << 30).page83_ascii(super::DISK_NAME).build();
        let node = Node::new(sim.process(), Config::default());
        let volume = stage(&node).unwrap();
        write_data(&sim).unwrap();
        unstage(&node, volume).unwrap();
        assert_eq!(stage(&node).unwrap(), volume);
        let file = format!(r"{STAGING_PATH}\data.txt");
        assert_eq!(sim.external().read(&file).unwrap(), b"written by a container");
    }
}
