//! Facts about Windows, each with its source and a check.
//!
//! A fact is one sentence about what a primitive of [`os`] does. Its check is a function over [`os::Os`] and the objects
//! that it needs: an empty directory, a raw disk, a volume, a share, a target, a service. The same check runs on the
//! simulated node ([`SimulatedNode`]) and on the machine itself ([`local_node`]): Windows, or Wine as far as Wine goes.
//! So a difference between the simulated node and Windows shows as a fact that holds on one and fails on the other.
//!
//! `cargo xtask facts` checks all of them and writes docs/facts.md.

mod fact;
mod facts;
mod local;
mod network;
mod node;
mod outcome;
mod preparation;
mod simulated;

pub use fact::{Check, Fact, Origin, SOURCES, Verdict};
pub use facts::{SUBJECTS, Subject, all};
pub use local::local_node;
pub use network::{ServiceKind, TargetKind, TestPortal, TestServer, TestTarget, TestUser};
pub use node::{Directory, DiskKind, RemovedDisk, System, TestDisk, TestNode, TestVolume, Unavailable, VolumeKind};
pub use outcome::{Outcome, check, difference, run};
pub use preparation::diskpart_script;
pub use simulated::SimulatedNode;
