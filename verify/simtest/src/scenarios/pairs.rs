//! The pairs of operations that can run at the same time on one object.

use std::time::Duration;

use os_sim::{Builder, Sim, Timing};
use storage_ops::{
    CreateSymlink, DiskNumber, FormatVolume, Mkdir, MountVolume, PartitionDisk, RemoveSmbGlobalMapping, ResizeTarget,
    ResizeVolume, Rmdir, RmdirContents, ServiceName, SetDiskState, StartService, StopService, UncPath, UnmountVolume,
};

use super::smb::{PASSWORD, map, server};
use super::volume::TARGET;
use super::{GIB, MakeRequest, boxed, path, volume};
use crate::pair_sweep::Pair;
use crate::request::Request;

const ONE: DiskNumber = DiskNumber(1);
const OTHER_TARGET: &str = r"C:\var\lib\kubelet\plugins\w";

fn ntfs() -> Builder {
    os_sim::node().disk(GIB).partitioned().formatted("NTFS").dir(OTHER_TARGET)
}

fn two() -> Sim {
    ntfs().disk(GIB).partitioned().formatted("NTFS").dir(TARGET).build()
}

/// Longer than any operation waits: a job of the first is still running when the second starts.
const BEYOND_TIMEOUTS: Duration = Duration::from_mins(15);

fn slowly(node: Builder) -> Sim {
    let timing = Timing {
        initialize: BEYOND_TIMEOUTS,
        create_partition: BEYOND_TIMEOUTS,
        format: BEYOND_TIMEOUTS,
        resize: BEYOND_TIMEOUTS,
        ..Timing::default()
    };
    node.timing(timing).build()
}

fn partition(_: &Sim) -> Box<dyn Request> {
    boxed(PartitionDisk { disk: ONE })
}

fn offline(_: &Sim) -> Box<dyn Request> {
    boxed(SetDiskState { disk: ONE, online: false })
}

fn online(_: &Sim) -> Box<dyn Request> {
    boxed(SetDiskState { disk: ONE, online: true })
}

fn format(sim: &Sim) -> Box<dyn Request> {
    boxed(FormatVolume { volume: volume(sim, 1) })
}

fn mount(sim: &Sim) -> Box<dyn Request> {
    boxed(MountVolume { volume: volume(sim, 1), target: path(TARGET) })
}

fn mount_elsewhere(sim: &Sim) -> Box<dyn Request> {
    boxed(MountVolume { volume: volume(sim, 1), target: path(OTHER_TARGET) })
}

fn mount_another(sim: &Sim) -> Box<dyn Request> {
    boxed(MountVolume { volume: volume(sim, 2), target: path(TARGET) })
}

fn unmount(sim: &Sim) -> Box<dyn Request> {
    boxed(UnmountVolume { volume: volume(sim, 1), target: path(TARGET) })
}

fn rmdir(_: &Sim) -> Box<dyn Request> {
    boxed(Rmdir { path: path(TARGET), context: None, force: false })
}

fn rmdir_with_force(_: &Sim) -> Box<dyn Request> {
    boxed(Rmdir { path: path(TARGET), context: None, force: true })
}

fn empty(_: &Sim) -> Box<dyn Request> {
    boxed(RmdirContents { path: path(TARGET) })
}

fn mkdir(_: &Sim) -> Box<dyn Request> {
    boxed(Mkdir { path: path(TARGET), context: None })
}

fn mkdir_below(_: &Sim) -> Box<dyn Request> {
    boxed(Mkdir { path: path(&format!(r"{TARGET}\below")), context: None })
}

fn resize(sim: &Sim) -> Box<dyn Request> {
    boxed(ResizeVolume { target: ResizeTarget::Volume(volume(sim, 1)), size: 0 })
}

fn link(_: &Sim) -> Box<dyn Request> {
    boxed(CreateSymlink { source: path(OTHER_TARGET), target: path(TARGET) })
}

fn another_link(_: &Sim) -> Box<dyn Request> {
    boxed(CreateSymlink { source: path(r"C:\var\lib\kubelet\pods"), target: path(TARGET) })
}

fn map_for_one(_: &Sim) -> Box<dyn Request> {
    boxed(map(r"domain\user", PASSWORD, Some(TARGET)))
}

fn map_for_another(_: &Sim) -> Box<dyn Request> {
    boxed(map(r"domain\other", PASSWORD, Some(OTHER_TARGET)))
}

fn unmap(_: &Sim) -> Box<dyn Request> {
    boxed(RemoveSmbGlobalMapping { remote: UncPath::parse(r"\\files\one").expect("a remote path") })
}

fn start(_: &Sim) -> Box<dyn Request> {
    boxed(StartService { name: ServiceName::parse("base").expect("a name") })
}

fn stop(_: &Sim) -> Box<dyn Request> {
    boxed(StopService { name: ServiceName::parse("base").expect("a name"), force: true })
}

const fn pair(name: &'static str, operation: &'static str, build: fn() -> Sim, requests: [MakeRequest; 2]) -> Pair {
    Pair { name, operation, build, requests }
}

/// All pairs.
pub const PAIRS: &[Pair] = &[
    pair("PartitionDisk twice", "PartitionDisk", || os_sim::node().disk(GIB).build(), [partition, partition]),
    pair(
        "PartitionDisk and SetDiskState(offline)",
        "PartitionDisk",
        || os_sim::node().disk(GIB).build(),
        [partition, offline],
    ),
    pair("SetDiskState both ways", "SetDiskState", || ntfs().build(), [online, offline]),
    pair("FormatVolume twice", "FormatVolume", || os_sim::node().disk(GIB).partitioned().build(), [format, format]),
    pair(
        "FormatVolume and SetDiskState(offline)",
        "FormatVolume",
        || os_sim::node().disk(GIB).partitioned().build(),
        [format, offline],
    ),
    pair(
        "FormatVolume and MountVolume",
        "FormatVolume",
        || os_sim::node().disk(GIB).partitioned().dir(TARGET).build(),
        [format, mount],
    ),
    pair("PartitionDisk twice, slowly", "PartitionDisk", || slowly(os_sim::node().disk(GIB)), [partition, partition]),
    pair(
        "PartitionDisk and SetDiskState(offline), slowly",
        "PartitionDisk",
        || slowly(os_sim::node().disk(GIB)),
        [partition, offline],
    ),
    pair(
        "FormatVolume twice, slowly",
        "FormatVolume",
        || slowly(os_sim::node().disk(GIB).partitioned()),
        [format, format],
    ),
    pair(
        "FormatVolume and SetDiskState(offline), slowly",
        "FormatVolume",
        || slowly(os_sim::node().disk(GIB).partitioned()),
        [format, offline],
    ),
    pair(
        "FormatVolume and MountVolume, slowly",
        "FormatVolume",
        || slowly(os_sim::node().disk(GIB).partitioned().dir(TARGET)),
        [format, mount],
    ),
    pair(
        "ResizeVolume and SetDiskState(offline), slowly",
        "ResizeVolume",
        || slowly(ntfs().grown_to(2 * GIB)),
        [resize, offline],
    ),
    pair(
        "ResizeVolume and UnmountVolume, slowly",
        "ResizeVolume",
        || slowly(ntfs().mounted(TARGET).grown_to(2 * GIB)),
        [resize, unmount],
    ),
    pair(
        "ResizeVolume and SetDiskState(offline)",
        "ResizeVolume",
        || ntfs().grown_to(2 * GIB).build(),
        [resize, offline],
    ),
    pair("ResizeVolume twice", "ResizeVolume", || ntfs().grown_to(2 * GIB).build(), [resize, resize]),
    pair("MountVolume and UnmountVolume", "MountVolume", || ntfs().dir(TARGET).build(), [mount, unmount]),
    pair("UnmountVolume and MountVolume", "UnmountVolume", || ntfs().mounted(TARGET).build(), [unmount, mount]),
    pair("MountVolume and Rmdir", "MountVolume", || ntfs().dir(TARGET).build(), [mount, rmdir]),
    pair("MountVolume and Rmdir(with force)", "MountVolume", || ntfs().dir(TARGET).build(), [mount, rmdir_with_force]),
    pair(
        "UnmountVolume and Rmdir(with force)",
        "UnmountVolume",
        || ntfs().mounted(TARGET).build(),
        [unmount, rmdir_with_force],
    ),
    pair("UnmountVolume and RmdirContents", "UnmountVolume", || ntfs().mounted(TARGET).build(), [unmount, empty]),
    pair("MountVolume of two at one directory", "MountVolume", two, [mount, mount_another]),
    pair("MountVolume of one at two directories", "MountVolume", two, [mount, mount_elsewhere]),
    pair("MountVolume and SetDiskState(offline)", "MountVolume", two, [mount, offline]),
    pair("Mkdir twice", "Mkdir", || os_sim::node().build(), [mkdir, mkdir]),
    pair("Mkdir and Rmdir", "Mkdir", || os_sim::node().build(), [mkdir, rmdir]),
    pair("CreateSymlink of two at one path", "CreateSymlink", || ntfs().build(), [link, another_link]),
    pair("CreateSymlink and Rmdir", "CreateSymlink", || ntfs().build(), [link, rmdir]),
    pair("CreateSymlink and Mkdir", "CreateSymlink", || ntfs().build(), [link, mkdir]),
    pair("CreateSymlink and Mkdir below", "CreateSymlink", || ntfs().build(), [link, mkdir_below]),
    pair("MountVolume and Mkdir below", "MountVolume", || ntfs().dir(TARGET).build(), [mount, mkdir_below]),
    pair("UnmountVolume and Mkdir below", "UnmountVolume", || ntfs().mounted(TARGET).build(), [unmount, mkdir_below]),
    pair("Mkdir and Mkdir below", "Mkdir", || os_sim::node().build(), [mkdir, mkdir_below]),
    pair("Mkdir below and Rmdir", "Mkdir", || os_sim::node().dir(TARGET).build(), [mkdir_below, rmdir]),
    pair("NewSmbGlobalMapping for two users", "NewSmbGlobalMapping", || server(0), [map_for_one, map_for_another]),
    pair(
        "NewSmbGlobalMapping for two, slowly",
        "NewSmbGlobalMapping",
        || server(2_000),
        [map_for_one, map_for_another],
    ),
    pair("NewSmbGlobalMapping and RemoveSmbGlobalMapping", "NewSmbGlobalMapping", || server(0), [map_for_one, unmap]),
    pair(
        "StartService and StopService",
        "StartService",
        || os_sim::node().service("base", "Base").slow(Duration::from_secs(2)).build(),
        [start, stop],
    ),
];
