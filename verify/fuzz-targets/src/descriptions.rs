//! The file that describes a simulated node.

use os_sim::{Description, Sim};
use storage_ops::{Config, GetBiosSerialNumber, GetService, ListDiskIds, ListDiskLocations, ListTargetPortals, Node};

/// A description makes a node that makes sense and answers, or is refused with a sentence.
pub(crate) fn node(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let sim = match Sim::from_toml(&text) {
        Ok(sim) => sim,
        Err(refused) => return assert!(refused.to_string().starts_with("the description of the node is not valid: ")),
    };
    sim.invariants().expect("a node that was described makes sense");
    let description = Description::from_toml(&text).expect("it was read before");
    let node = Node::new(sim.process(), Config::default());
    if let (Some(told), Ok(serial)) = (&description.bios_serial, node.run(&GetBiosSerialNumber)) {
        assert_eq!(*told, serial, "the serial number is the one described");
    }
    let ids = node.run(&ListDiskIds).expect("disks can be listed");
    assert_eq!(ids.len(), description.disks.len() + 1, "each disk has its identifiers");
    let _ = node.run(&ListDiskLocations);
    let _ = node.run(&ListTargetPortals);
    for service in &description.services {
        if let Ok(name) = storage_ops::ServiceName::parse(&service.name) {
            node.run(&GetService { name }).expect("a described service is there");
        }
    }
    sim.reboot();
    sim.invariants().expect("a node that was restarted makes sense");
    let _ = sim.snapshot();
}
