//! The tables of scenarios: each operation in each state that matters to it.

use os_sim::Sim;
use storage_ops::{HostPath, Operation, VolumeId};

use crate::request::{Asked, Request, Scenario};

pub mod disk;
pub mod filesystem;
pub mod iscsi;
pub mod pairs;
pub mod races;
pub mod siblings;
pub mod smb;
pub mod system;
pub mod volume;

/// A gibibyte.
pub(crate) const GIB: u64 = 1 << 30;

/// Kubelet's directory.
pub(crate) const KUBELET: &str = r"C:\var\lib\kubelet";

/// Every scenario there is.
pub fn all() -> Vec<Scenario> {
    [
        disk::scenarios(),
        volume::scenarios(),
        filesystem::scenarios(),
        siblings::scenarios(),
        smb::scenarios(),
        iscsi::scenarios(),
        system::scenarios(),
    ]
    .concat()
}

pub(crate) fn ask(operation: impl Operation) -> Box<dyn Request> {
    Box::new(operation)
}

pub(crate) fn path(text: &str) -> HostPath {
    HostPath::parse(text).expect("the tables hold good paths")
}

/// The first volume of a disk; where there is none, one that no node has.
pub(crate) fn volume(sim: &Sim, disk: u32) -> VolumeId {
    let name = sim.volume_on(disk).map(|volume| volume.name());
    let name = name.unwrap_or_else(|| r"\\?\Volume{00000000-0000-0000-0000-00000000dead}\".to_owned());
    VolumeId::parse(&name).expect("the name of a volume")
}

/// The names of the operations in a table, without their arguments.
pub fn operations(scenarios: &[Scenario]) -> Vec<&'static str> {
    let mut names: Vec<_> = scenarios.iter().map(|scenario| operation_of(&scenario.asked)).collect();
    names.dedup();
    names
}

/// An operation's name without the arguments that may follow it.
pub fn operation_of(asked: &Asked) -> &'static str {
    asked.name.split('(').next().unwrap_or(asked.name)
}
