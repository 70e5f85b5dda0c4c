//! A node over a simulated one, and short names for what the tests write most.

use std::sync::Arc;

use node::{Config, Error, HostPath, Kind, Node, Operation, VolumeId};
use os_sim::Sim;

/// Kubelet's directory.
pub(crate) const KUBELET: &str = r"C:\var\lib\kubelet";

/// A gibibyte.
pub(crate) const GIB: u64 = 1 << 30;

/// The operations over `sim`, with the settings as they come.
pub(crate) fn over(sim: &Sim) -> Node {
    Node::new(sim.process(), Config::default())
}

/// A path; one that begins with a backslash lies in kubelet's directory.
pub(crate) fn path(text: &str) -> HostPath {
    let text = if text.starts_with('\\') { format!("{KUBELET}{text}") } else { text.to_owned() };
    HostPath::parse(&text).expect("a good path")
}

/// The id of the only volume on `disk`.
pub(crate) fn volume_on(node: &Node, disk: u32) -> VolumeId {
    let volumes = node.run(&node::ListVolumesOnDisk { disk: node::DiskNumber(disk), partition: 0 }).expect("a volume");
    assert_eq!(volumes.len(), 1);
    volumes[0]
}

/// The shares that are mapped.
pub(crate) fn mapped(sim: &Sim) -> Vec<String> {
    sim.smb_mappings().into_iter().map(|mapping| mapping.remote).collect()
}

/// The failure of `operation`, which must be of `kind`.
pub(crate) fn refused<O: Operation>(node: &Node, operation: &O, kind: Kind) -> Error {
    let error = node.run(operation).expect_err("it must be refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert_eq!(error.operation(), O::NAME);
    let text = error.to_string();
    assert!(text.starts_with("cannot ") && !text.contains('\n') && text.len() < 400, "{text}");
    error
}

/// The operations over `sim`, with `probe` between them and the node.
pub(crate) fn probed(sim: &Sim, probe: impl os_sim::probe::Probe + 'static) -> Node {
    Node::new(Arc::new(os_sim::probe::Probed::new(sim.process(), probe)), Config::default())
}
