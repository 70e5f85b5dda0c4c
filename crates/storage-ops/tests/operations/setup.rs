//! Set-up of nodes and short names for frequent requests.

use std::sync::Arc;
use std::time::Duration;

use faults::{Fault, FaultAction, Probe, Probed, Trace, When};
use os::{CallStatus, MethodCall, Namespace, Os, OsError, Value};
use os_sim::Sim;
use storage_ops::{Config, Error, HostPath, Kind, Node, Operation, ResizeTarget, ResizeVolume, VolumeId};

/// Kubelet's directory.
pub(crate) const KUBELET: &str = r"C:\var\lib\kubelet";

/// A gibibyte.
pub(crate) const GIB: u64 = 1 << 30;

/// Returns a node on `sim` with the default settings.
pub(crate) fn node_on(sim: &Sim) -> Node {
    Node::new(sim.process(), Config::default())
}

/// Parses a path; one that begins with a backslash is in kubelet's directory.
pub(crate) fn path(text: &str) -> HostPath {
    let text = if text.starts_with('\\') { format!("{KUBELET}{text}") } else { text.to_owned() };
    HostPath::parse(&text).expect("a valid path")
}

/// Returns the id of the only volume on `disk`.
pub(crate) fn volume_on(node: &Node, disk: u32) -> VolumeId {
    let volumes = node
        .run(&storage_ops::ListVolumesOnDisk { disk: storage_ops::DiskNumber(disk), partition: 0 })
        .expect("a volume");
    assert_eq!(volumes.len(), 1);
    volumes[0]
}

/// Grows `volume` to `size` bytes.
pub(crate) fn resize(volume: VolumeId, size: u64) -> ResizeVolume {
    ResizeVolume { target: ResizeTarget::Volume(volume), size }
}

/// Returns the shares that are mapped.
pub(crate) fn mapped(sim: &Sim) -> Vec<String> {
    sim.smb_mappings().into_iter().map(|mapping| mapping.remote).collect()
}

/// Returns the error of `operation`, which must be of `kind`.
pub(crate) fn refused<O: Operation>(node: &Node, operation: &O, kind: Kind) -> Error {
    let error = node.run(operation).expect_err("the operation must be refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.operation(), O::NAME);
    let text = error.to_string();
    assert!(text.starts_with("cannot ") && !text.contains('\n') && text.len() < 400, "{text}");
    error
}

/// Returns a node on `sim` with `probe` at each primitive call.
pub(crate) fn probed(sim: &Sim, probe: impl Probe + 'static) -> Node {
    Node::new(Arc::new(Probed::new(sim.process(), probe)), Config::default())
}

/// Returns a node on `sim` with `probe` at each primitive call, and a trace of the calls.
pub(crate) fn traced(sim: &Sim, probe: impl Probe + 'static) -> (Node, Arc<Trace>) {
    let trace = Arc::new(Trace::recording());
    let probes: Vec<Arc<dyn Probe>> = vec![Arc::clone(&trace) as Arc<dyn Probe>, Arc::new(probe)];
    (Node::new(Arc::new(Probed::new(sim.process(), probes)), Config::default()), trace)
}

/// Returns a fault that fails each call of `primitive` with `code`.
pub(crate) fn failing(primitive: &'static str, code: OsError) -> Fault {
    Fault::each(move |call| call.primitive == primitive, When::Before, FaultAction::Fail(code))
}

/// A probe that leaves each call unchanged.
pub(crate) struct NoProbe;

impl Probe for NoProbe {}

/// Creates a partition of `size` bytes on disk 1, as an administrator does.
pub(crate) fn add_partition(sim: &Sim, offset: Option<u64>, size: u64) {
    let mut arguments = vec![("Size", Value::Text(size.to_string()))];
    arguments.extend(offset.map(|offset| ("Offset", Value::Text(offset.to_string()))));
    provider(sim, "SELECT * FROM MSFT_Disk WHERE Number = 1", "CreatePartition", &arguments);
}

/// Calls a method of the storage provider on the one object that `wql` finds, as an administrator does.
pub(crate) fn provider(sim: &Sim, wql: &str, method: &str, arguments: &[(&str, Value)]) {
    let (os, deadline) = (sim.process(), os::Time(Duration::MAX));
    let found = os.wmi().query(Namespace::Storage, wql, deadline).expect("an answer").remove(0);
    let created = os
        .wmi()
        .call(&MethodCall::new(Namespace::Storage, &found.path, method, arguments), deadline)
        .expect("a status");
    assert!(matches!(&created, CallStatus::Done(returned) if returned.code == 0));
}
