//! The storage work of a CSI driver in a HostProcess container. Such a driver has the rights of the
//! node, so it links the storage operations, and needs neither csi-proxy nor its pipes.
//!
//! On Windows it needs the rights of an administrator, and changes a real disk:
//!
//!     host_process_driver.exe <serial number of the disk> <staging path below C:\var\lib\kubelet>
//!
//! On other systems it works on a simulated node, whose disk has the serial number `vol-1`:
//!
//!     cargo run -p csi-proxy-storage-ops --example host_process_driver

use std::error::Error;
use std::sync::Arc;

use storage_ops::{
    Config, ErrorKind, Executor, FormatVolume, HostPath, IsVolumeFormatted, ListDiskIds,
    ListVolumesOnDisk, Mkdir, MountVolume, Node, PartitionDisk, Rescan, SetDiskState,
    UnmountVolume, VolumeId,
};

#[cfg(windows)]
mod imp {
    /// This machine, and the arguments of the command line.
    pub(crate) fn node() -> (std::sync::Arc<os_win32::Windows>, Vec<String>) {
        (
            std::sync::Arc::new(os_win32::Windows::new()),
            std::env::args().skip(1).collect(),
        )
    }
}

#[cfg(not(windows))]
mod imp {
    /// A simulated node, and arguments for it.
    pub(crate) fn node() -> (std::sync::Arc<impl os::Os>, Vec<String>) {
        let sim = os_sim::node()
            .disk(1 << 30)
            .serial("vol-1")
            .dir(r"C:\var\lib\kubelet\plugins")
            .build();
        (
            sim.process(),
            vec![
                "vol-1".into(),
                r"C:\var\lib\kubelet\plugins\mine\globalmount".into(),
            ],
        )
    }
}

/// Returns the gRPC code with which the driver answers kubelet.
fn grpc_code(error: &(dyn Error + 'static)) -> i32 {
    error
        .downcast_ref()
        .map_or(ErrorKind::Internal, storage_ops::Error::kind)
        .grpc_code()
}

/// NodeStageVolume: repeating it is harmless, as CSI requires.
async fn stage(
    executor: &Arc<Executor>,
    serial: &str,
    staging: &HostPath,
) -> Result<VolumeId, Box<dyn Error>> {
    executor.run(Rescan).await?;
    // Exactly one disk: any other would lose its data.
    let ids = executor.run(ListDiskIds).await?;
    let found: Vec<_> = ids
        .iter()
        .filter(|(_, ids)| ids.serial.trim() == serial)
        .collect();
    let [(&disk, _)] = found[..] else {
        return Err(format!("{} disks have that serial number", found.len()).into());
    };
    executor.run(SetDiskState { disk, online: true }).await?;
    executor.run(PartitionDisk { disk }).await?;
    let volumes = executor
        .run(ListVolumesOnDisk { disk, partition: 0 })
        .await?;
    let [volume] = volumes[..] else {
        return Err(format!("{disk} has {} volumes", volumes.len()).into());
    };
    if !executor.run(IsVolumeFormatted { volume }).await? {
        executor.run(FormatVolume::new(volume)).await?;
    }
    executor
        .run(Mkdir {
            path: staging.clone(),
            context: None,
        })
        .await?;
    executor
        .run(MountVolume {
            volume,
            target: staging.clone(),
        })
        .await?;
    Ok(volume)
}

/// NodeUnstageVolume.
async fn unstage(
    executor: &Arc<Executor>,
    volume: VolumeId,
    target: HostPath,
) -> Result<(), Box<dyn Error>> {
    match executor.run(UnmountVolume { volume, target }).await {
        // The disk is already detached.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        result => Ok(result?),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (os, arguments) = imp::node();
    let [serial, staging] = &arguments[..] else {
        return Err("give a serial number and a path".into());
    };
    let executor = Arc::new(Executor::new(Arc::new(Node::start(os, Config::default())?)));
    let staging = HostPath::parse(staging)?;
    let staged = stage(&executor, serial, &staging).await;
    let volume = staged.inspect_err(|error| {
        println!("the answer to kubelet has the code {}", grpc_code(&**error));
    })?;
    println!("{volume} is mounted at {staging}");
    unstage(&executor, volume, staging).await
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_example_stages_and_unstages_a_volume() {
        super::main().expect("the simulated node has the disk");
    }
}
