//! The target for the file that describes a simulated node.

use os_sim::{Description, Sim};
use storage_ops::{Config, GetBiosSerialNumber, GetService, ListDiskIds, ListDiskLocations, ListTargetPortals, Node};

/// A description is refused with a sentence, or makes a consistent node that answers.
pub(crate) fn node(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let sim = match Sim::from_toml(&text) {
        Ok(sim) => sim,
        Err(refused) => return assert!(refused.to_string().starts_with("the description of the node is not valid: ")),
    };
    sim.invariants().expect("a described node is consistent");
    let description = Description::from_toml(&text).expect("it was parsed before");
    let node = Node::new(sim.process(), Config::default());
    if let (Some(described), Ok(serial)) = (&description.bios_serial, node.run(&GetBiosSerialNumber)) {
        assert_eq!(*described, serial, "the serial number differs from the described one");
    }
    let ids = node.run(&ListDiskIds).expect("the disks are listed");
    assert_eq!(ids.len(), description.disks.len() + 1, "not every disk has identifiers");
    let _ = node.run(&ListDiskLocations);
    let _ = node.run(&ListTargetPortals);
    for service in &description.services {
        if let Ok(name) = storage_ops::ServiceName::parse(&service.name) {
            node.run(&GetService { name }).expect("a described service exists");
        }
    }
    sim.reboot();
    sim.invariants().expect("a restarted node is consistent");
    let _ = sim.snapshot();
}
