//! The checks of the facts about Windows.
//!
//! A fact is one sentence about what a primitive of [`os`] does. docs/facts.md has the sentence and
//! its sources. The check with the same id is here: a function over [`os::Os`] and the objects that
//! it needs, such as an empty directory, a raw disk, a volume, a share, a target or a service. The
//! same check runs on the simulated node ([`SimulatedNode`]) and on this machine ([`local_node`]),
//! which runs Windows or Wine. A fact that holds on one of them and fails on the other is a
//! difference between the simulated node and Windows.
//!
//! `cargo xtask facts` runs all checks and writes their results to docs/facts.md.

mod fact;
mod facts;
mod isolated;
mod local;
mod network;
mod node;
mod outcome;
mod preparation;
mod simulated;

pub use fact::Fact;
pub use facts::{DiskIdentity, ENOUGH, all, free_space, property};
pub use isolated::{AFTER, Ended, NO_TIME, Results, check_each, check_one, code_of, run};
pub use local::{
    DISKS, FOLDER, create_folder, create_virtual_disk, end_children_with_this_process, local_node,
    remove_folder, system_program,
};
pub use network::{ServiceKind, TargetKind, TestPortal, TestServer, TestTarget, TestUser};
pub use node::{Directory, DiskKind, System, TestDisk, TestNode, TestVolume, VolumeKind, missing};
pub use outcome::{Outcome, check};
pub use preparation::{GROWN_SIZE, SCRIPT, diskpart, diskpart_script, named_disk, while_held};
pub use simulated::SimulatedNode;
