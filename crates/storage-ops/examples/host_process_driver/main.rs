//! The storage work of a CSI driver in a HostProcess container. Such a driver has the rights of the node, so it links the
//! storage operations, and needs neither csi-proxy nor its pipes.
//!
//! On Windows it needs the rights of an administrator, and changes a real disk:
//!
//!     host_process_driver.exe <serial number of the disk> <staging path below C:\var\lib\kubelet>
//!
//! On other systems it works on a simulated node, whose disk has the serial number `vol-1`:
//!
//!     cargo run -p csi-proxy-storage-ops --example host_process_driver

use std::error::Error;

use storage_ops::{
    Config, FormatVolume, HostPath, IsVolumeFormatted, Kind, ListDiskIds, ListVolumesOnDisk, Mkdir, MountVolume, Node,
    PartitionDisk, Rescan, SetDiskState, UnmountVolume, VolumeId,
};

#[cfg(windows)]
mod imp {
    /// This machine, and the arguments of the command line.
    pub(crate) fn node() -> (std::sync::Arc<os_win32::Windows>, Vec<String>) {
        (std::sync::Arc::new(os_win32::Windows::new()), std::env::args().skip(1).collect())
    }
}

#[cfg(not(windows))]
mod imp {
    /// A simulated node, and arguments for it.
    pub(crate) fn node() -> (std::sync::Arc<impl os::Os>, Vec<String>) {
        let sim = os_sim::node().disk(1 << 30).serial("vol-1").dir(r"C:\var\lib\kubelet\plugins").build();
        (sim.process(), vec!["vol-1".into(), r"C:\var\lib\kubelet\plugins\mine\globalmount".into()])
    }
}

/// NodeStageVolume: repeating it is harmless, as CSI requires.
fn stage(node: &Node, serial: &str, staging: &HostPath) -> Result<VolumeId, Box<dyn Error>> {
    node.run(&Rescan)?;
    let disks = node.run(&ListDiskIds)?;
    let (&disk, _) = disks.iter().find(|(_, ids)| ids.serial.trim() == serial).ok_or("the disk is not attached")?;
    node.run(&SetDiskState { disk, online: true })?;
    node.run(&PartitionDisk { disk })?;
    let volumes = node.run(&ListVolumesOnDisk { disk, partition: 0 })?;
    let &volume = volumes.first().ok_or("the disk has no volume")?;
    if !node.run(&IsVolumeFormatted { volume })? {
        node.run(&FormatVolume { volume })?;
    }
    node.run(&Mkdir { path: staging.clone(), context: None })?;
    node.run(&MountVolume { volume, target: staging.clone() })?;
    Ok(volume)
}

/// NodeUnstageVolume.
fn unstage(node: &Node, volume: VolumeId, staging: &HostPath) -> Result<(), Box<dyn Error>> {
    match node.run(&UnmountVolume { volume, target: staging.clone() }) {
        // The disk is already detached.
        Err(error) if error.kind() == Kind::NotFound => Ok(()),
        result => Ok(result?),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (os, arguments) = imp::node();
    let [serial, staging] = &arguments[..] else { return Err("give a serial number and a path".into()) };
    let node = Node::new(os, Config::default());
    let staging = HostPath::parse(staging)?;
    let volume = stage(&node, serial, &staging)?;
    println!("{volume} is mounted at {staging}");
    unstage(&node, volume, &staging)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_example_stages_and_unstages_a_volume() {
        super::main().expect("the simulated node has the disk");
    }
}
