//! Set-up of nodes and short names for frequent requests.

use std::sync::Arc;
use std::time::Duration;

use faults::{Fault, FaultAction, Layer, Layered, Probe, Probed, Trace, When};
use os::{CallStatus, MethodCall, Namespace, Os, OsError, Value};
use os_sim::{Builder, Sim};
use storage_ops::{
    Config, CreateSymlink, DiskNumber, Error, ErrorKind, GetClosestVolumeIdFromTargetPath,
    GetVolumeIdFromTargetPath, HostPath, IsSymlink, ListVolumesOnDisk, Mkdir, MountVolume,
    NewSmbGlobalMapping, Node, Operation, PartitionDisk, PathExists, ResizeTarget, ResizeVolume,
    Rmdir, RmdirContents, SecretText, SetDiskState, SmbUser, UncPath, UnmountVolume, VolumeId,
};

/// Kubelet's directory.
pub(crate) const KUBELET: &str = r"C:\var\lib\kubelet";

/// A directory at which tests mount a volume.
pub(crate) const MOUNT: &str = r"C:\var\lib\kubelet\plugins\v";

/// A directory that tests remove.
pub(crate) const TREE: &str = r"C:\var\lib\kubelet\pods\p";

/// A gibibyte.
pub(crate) const GIB: u64 = 1 << 30;

/// The first disk beside that of the node.
pub(crate) const ONE: DiskNumber = DiskNumber(1);

/// Partitions disk 1.
pub(crate) const PARTITION: PartitionDisk = PartitionDisk { disk: ONE };

/// Returns a node with a disk without a partition table.
pub(crate) fn raw_disk() -> Builder {
    os_sim::node().disk(GIB)
}

/// Returns a node with a raw volume on disk 1.
pub(crate) fn partitioned_disk() -> Builder {
    raw_disk().partitioned()
}

/// Returns a node with an NTFS volume on disk 1.
pub(crate) fn ntfs() -> Builder {
    partitioned_disk().formatted("NTFS")
}

/// Returns a node on `sim` with the default settings.
pub(crate) fn node_on(sim: &Sim) -> Node {
    Node::new(sim.process(), Config::default())
}

/// Parses a path; one that begins with a backslash is in kubelet's directory.
pub(crate) fn path(text: &str) -> HostPath {
    let text = if text.starts_with('\\') {
        format!("{KUBELET}{text}")
    } else {
        text.to_owned()
    };
    HostPath::parse(&text).expect("a valid path")
}

/// Returns the id of the only volume on `disk`.
pub(crate) fn volume_on(node: &Node, disk: u32) -> VolumeId {
    let volumes = node.run(&volumes_of(disk)).expect("a volume");
    assert_eq!(volumes.len(), 1);
    volumes[0]
}

pub(crate) fn exists(text: &str) -> PathExists {
    PathExists {
        path: path(text),
        context: None,
    }
}

pub(crate) fn mkdir(text: &str) -> Mkdir {
    Mkdir {
        path: path(text),
        context: None,
    }
}

pub(crate) fn rmdir(text: &str, force: bool) -> Rmdir {
    Rmdir {
        path: path(text),
        context: None,
        force,
    }
}

/// Removes the contents of a directory.
pub(crate) fn contents(text: &str) -> RmdirContents {
    RmdirContents { path: path(text) }
}

pub(crate) fn link(source: &str, target: &str) -> CreateSymlink {
    CreateSymlink {
        source: path(source),
        target: path(target),
    }
}

pub(crate) fn is_link(text: &str) -> IsSymlink {
    IsSymlink { path: path(text) }
}

pub(crate) fn mount(volume: VolumeId, target: &str) -> MountVolume {
    MountVolume {
        volume,
        target: path(target),
    }
}

pub(crate) fn unmount(volume: VolumeId, target: &str) -> UnmountVolume {
    UnmountVolume {
        volume,
        target: path(target),
    }
}

/// Finds the volume that is mounted at a path.
pub(crate) fn mounted_at(text: &str) -> GetVolumeIdFromTargetPath {
    GetVolumeIdFromTargetPath { target: path(text) }
}

/// Finds the volume that a path is on.
pub(crate) fn closest(text: &str) -> GetClosestVolumeIdFromTargetPath {
    GetClosestVolumeIdFromTargetPath { target: path(text) }
}

pub(crate) fn volumes_of(disk: u32) -> ListVolumesOnDisk {
    ListVolumesOnDisk {
        disk: DiskNumber(disk),
        partition: 0,
    }
}

pub(crate) fn set_online(disk: u32, online: bool) -> SetDiskState {
    SetDiskState {
        disk: DiskNumber(disk),
        online,
    }
}

pub(crate) fn secret_text(text: &str) -> SecretText {
    SecretText::parse(text.to_owned(), "the secret").unwrap()
}

/// Maps a share without a link.
pub(crate) fn map(remote: &str, user: &str, password: &str) -> NewSmbGlobalMapping {
    NewSmbGlobalMapping {
        remote: UncPath::parse(remote).unwrap(),
        local: None,
        user: SmbUser::parse(user).unwrap(),
        password: secret_text(password),
    }
}

/// Maps a share and creates a link to it.
pub(crate) fn map_at(remote: &str, user: &str, password: &str, local: &str) -> NewSmbGlobalMapping {
    NewSmbGlobalMapping {
        local: Some(path(local)),
        ..map(remote, user, password)
    }
}

/// Grows `volume` to `size` bytes.
pub(crate) fn resize(volume: VolumeId, size: u64) -> ResizeVolume {
    ResizeVolume::new(ResizeTarget::Volume(volume), size)
}

/// Returns the shares that are mapped.
pub(crate) fn mapped(sim: &Sim) -> Vec<String> {
    sim.smb_mappings()
        .into_iter()
        .map(|mapping| mapping.remote)
        .collect()
}

/// Returns the error of `operation`, which must be of `kind`.
pub(crate) fn refused<O: Operation>(node: &Node, operation: &O, kind: ErrorKind) -> Error {
    let error = node
        .run(operation)
        .expect_err("the operation must be refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.operation(), O::NAME);
    let text = error.to_string();
    assert!(
        text.starts_with("cannot ") && !text.contains('\n') && text.len() < 400,
        "{text}"
    );
    texts::seen!(text);
    error
}

/// Checks that `operation` is refused as [`refused`] checks, and that the error contains `words`.
pub(crate) fn refused_saying<O: Operation>(
    node: &Node,
    operation: &O,
    kind: ErrorKind,
    words: &str,
) {
    says(&refused(node, operation, kind), words);
}

/// Checks that the text of `error` contains `words`.
pub(crate) fn says(error: &Error, words: &str) {
    assert!(error.to_string().contains(words), "{error}");
}

/// Checks that Windows returned `error` with this code.
pub(crate) fn has_code(error: &Error, code: OsError) {
    assert_eq!(error.code(), Some(code), "{error}");
}

/// Returns a node on `sim` with `probe` at each primitive call.
pub(crate) fn probed(sim: &Sim, probe: impl Probe + 'static) -> Node {
    Node::new(
        Arc::new(Probed::new(sim.process(), probe)),
        Config::default(),
    )
}

/// Returns two probes as one.
pub(crate) fn both(
    first: impl Probe + 'static,
    second: impl Probe + 'static,
) -> Vec<Arc<dyn Probe>> {
    vec![Arc::new(first), Arc::new(second)]
}

/// Returns a node on `sim` with `probe` at each primitive call, and a trace of the calls.
pub(crate) fn traced(sim: &Sim, probe: impl Probe + 'static) -> (Node, Arc<Trace>) {
    let trace = Arc::new(Trace::recording());
    let probes: Vec<Arc<dyn Probe>> = vec![Arc::clone(&trace) as Arc<dyn Probe>, Arc::new(probe)];
    (
        Node::new(
            Arc::new(Probed::new(sim.process(), probes)),
            Config::default(),
        ),
        trace,
    )
}

/// Returns a node on `sim` that leaves partitioned disks as they are, and a trace of its calls.
pub(crate) fn leaving_partitioned_disks(sim: &Sim) -> (Node, Arc<Trace>) {
    let trace = Arc::new(Trace::recording());
    let probes = vec![Arc::clone(&trace) as Arc<dyn Probe>];
    let config = Config::default().with(|config| config.leave_partitioned_disks = true);
    (
        Node::new(Arc::new(Probed::new(sim.process(), probes)), config),
        trace,
    )
}

/// Returns a fault that fails each call of `primitive` with `code`.
pub(crate) fn failing(primitive: &'static str, code: OsError) -> Fault {
    Fault::each(
        move |call| call.primitive == primitive,
        When::Before,
        FaultAction::Fail(code),
    )
}

/// Returns a fault that fails each call of `primitive` on an object that `is_it` accepts with
/// `code`.
pub(crate) fn failing_on(
    primitive: &'static str,
    is_it: impl Fn(&str) -> bool + Send + Sync + 'static,
    code: OsError,
) -> Fault {
    Fault::each(
        move |call| call.primitive == primitive && is_it(&call.object),
        When::Before,
        FaultAction::Fail(code),
    )
}

/// Returns a fault that fails the first call of `primitive` with `code`.
pub(crate) fn failing_once(primitive: &'static str, code: OsError) -> Fault {
    Fault::at(0, When::Before, FaultAction::Fail(code))
        .among(move |call| call.primitive == primitive)
}

/// Returns a node on `sim` whose calls go through `layer`.
pub(crate) fn layered(sim: &Sim, layer: impl Layer + 'static) -> Node {
    Node::new(
        Arc::new(Layered::around(sim.process(), layer)),
        Config::default(),
    )
}

/// A probe that leaves each call unchanged.
pub(crate) struct NoProbe;

impl Probe for NoProbe {}

/// Creates a partition of `size` bytes on disk 1, as an administrator does.
pub(crate) fn add_partition(sim: &Sim, offset: Option<u64>, size: u64) {
    let mut arguments = vec![("Size", Value::Text(size.to_string()))];
    arguments.extend(offset.map(|offset| ("Offset", Value::Text(offset.to_string()))));
    provider(
        sim,
        "SELECT * FROM MSFT_Disk WHERE Number = 1",
        "CreatePartition",
        &arguments,
    );
}

/// Calls a method of the storage provider on the one object that `wql` finds, as an administrator
/// does.
pub(crate) fn provider(sim: &Sim, wql: &str, method: &str, arguments: &[(&str, Value)]) {
    let (os, deadline) = (sim.process(), os::Time(Duration::MAX));
    let found = os
        .wmi()
        .query(Namespace::Storage, wql, deadline)
        .expect("an answer")
        .remove(0);
    let created = os
        .wmi()
        .call(
            &MethodCall::new(Namespace::Storage, &found.path, method, arguments),
            deadline,
        )
        .expect("a status");
    assert!(matches!(&created, CallStatus::Done(returned) if returned.code == 0));
}
