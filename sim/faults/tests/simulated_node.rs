//! The wrapper around the simulated node.

use std::sync::Arc;

use faults::{Probed, Trace};
use os::{Access, NtPath, Open, Options, Os, OsError};

#[test]
fn killing_a_probed_process_closes_its_handles_on_the_node() {
    let node = os_sim::node().disk(1 << 30).build();
    let trace = Arc::new(Trace::counting());
    let probed = Probed::new(node.process(), Arc::clone(&trace));
    let disk = probed.open(&NtPath::disk(1), &Open::existing(Access::empty(), Options::empty())).expect("a disk");
    assert_eq!((trace.counts().primitives, node.open_handles()), (1, 1));
    probed.kill();
    assert_eq!(node.open_handles(), 0, "the system closes what the dead process had open");
    assert_eq!(disk.flush(), Err(OsError::OPERATION_ABORTED));
}
