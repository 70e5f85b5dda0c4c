//! Facts about Windows, each with its source and a check.
//!
//! A fact is one sentence about what a primitive of [`os`] does. Its check is a function over [`os::Os`] and the objects
//! that it needs: an empty directory, a raw disk, a volume, a share, a target, a service. The same check runs on the
//! simulated node ([`SimulatedNode`]) and on this machine ([`local_node`]), which runs Windows or Wine. A fact
//! that holds on one of them and fails on the other is a difference between the simulated node and Windows.
//!
//! `cargo xtask facts` checks all of them and writes docs/facts.md. Facts that no check covers are in notes.md.

mod fact;
mod facts;
mod local;
mod network;
mod node;
mod outcome;
mod preparation;
mod simulated;

pub use fact::{Fact, Origin, SOURCES};
pub use facts::{SUBJECTS, Subject, all};
pub use local::local_node;
pub use network::{ServiceKind, TargetKind, TestPortal, TestServer, TestTarget, TestUser};
pub use node::{Directory, DiskKind, RemovedDisk, System, TestDisk, TestNode, TestVolume, VolumeKind, missing};
pub use outcome::{Outcome, check};
pub use preparation::diskpart_script;
pub use simulated::SimulatedNode;
