//! How the calls of an operation grow with what is left on a node: disks, and mappings from before
//! a restart. docs/call-costs.md has the same numbers.

use std::sync::Arc;

use faults::{Probe, Probed, Trace};
use os_sim::Sim;
use storage_ops::{Config, ErrorKind, FormatVolume, HostPath, Node, Operation};

use crate::setup::{
    GIB, NoProbe, PARTITION, map, node_on, ntfs, refused, set_online, traced, volume_on,
};

const USER: &str = r"domain\user";

/// Returns how many primitive calls an operation makes.
fn calls(sim: &Sim, operate: impl FnOnce(&Node)) -> usize {
    let (node, trace) = traced(sim, NoProbe);
    operate(&node);
    trace.take().len()
}

/// Returns how many calls each of 32 further objects adds.
fn added(calls_with: impl Fn(u32) -> usize) -> usize {
    let added = calls_with(40) - calls_with(8);
    assert_eq!(added % 32, 0);
    added / 32
}

fn with_offline_disk(further: u32) -> Sim {
    let mut builder = ntfs().offline();
    for _ in 0..further {
        builder = builder.disk(GIB);
    }
    builder.build()
}

fn run<O: Operation>(operation: O) -> impl Fn(&Node) {
    move |node| {
        node.run(&operation).expect("it succeeds");
    }
}

#[test]
fn bringing_a_disk_online_reads_the_identifiers_of_each_disk_of_the_node() {
    assert_eq!(
        (
            added(|further| calls(&with_offline_disk(further), run(PARTITION))),
            added(|further| calls(&with_offline_disk(further), run(set_online(1, true))))
        ),
        (8, 4)
    );
}

/// Returns a node with mappings from before a restart, and a share that is not mapped.
fn with_mappings(count: u32) -> Sim {
    let mut builder = os_sim::node().smb_server("files").user(USER, "pw");
    for number in 0..=count {
        builder = builder.share(&format!("pvc-{number:03}"));
    }
    let sim = builder.build();
    let node = node_on(&sim);
    for number in 1..=count {
        let share = format!(r"\\files\pvc-{number:03}");
        node.run(&map(&share, USER, "pw")).unwrap();
    }
    sim.reboot();
    drop(Node::start(sim.process(), Config::default()).unwrap());
    sim
}

fn readable(count: u32) -> usize {
    calls(&with_mappings(count), |node| {
        refused(
            node,
            &map(r"\\files\pvc-000", USER, "pw"),
            ErrorKind::FailedPrecondition,
        );
    })
}

#[test]
fn a_conflict_with_mappings_from_before_a_restart_reads_one_share_or_replaces_each() {
    assert_eq!(
        (
            added(readable),
            added(|count| {
                let sim = with_mappings(count);
                sim.rotate_smb_password("files", USER, "new");
                calls(&sim, run(map(r"\\files\pvc-000", USER, "new")))
            })
        ),
        (2, 7)
    );
}

fn format(links: u32) -> usize {
    let sim = ntfs()
        .mounted(r"C:\mnt\disks\ssd0")
        .dir(r"C:\var\lib\kubelet\pods\u\volumes\kubernetes.io~csi")
        .dir(r"C:\var\lib\kubelet\plugins\p")
        .build();
    for number in 0..links {
        let link = format!(r"C:\var\lib\kubelet\pods\u\volumes\kubernetes.io~csi\{number}");
        let plugin = r"C:\var\lib\kubelet\plugins\p";
        sim.external().symlink(&link, plugin).unwrap();
    }
    let trace = Arc::new(Trace::recording());
    let probes = vec![Arc::clone(&trace) as Arc<dyn Probe>];
    let directory = HostPath::parse(r"C:\mnt\disks").unwrap();
    let config = Config::default().with(|config| config.format_again.push(directory));
    let node = Node::new(Arc::new(Probed::new(sim.process(), probes)), config);
    let volume = volume_on(&node_on(&sim), 1);
    node.run(&FormatVolume::new(volume)).unwrap();
    trace.take().len()
}

#[test]
fn formatting_again_examines_each_link_of_kubelet_twice() {
    assert_eq!(added(format), 98);
}
