//! The checks detect violations: each test deliberately violates a rule.

use std::sync::Arc;

use faults::{Layer, Layered, Probed};
use os::{Handle, MethodCall, Namespace, Open, Os, OsResult, U16Str, Value};
use os_sim::Sim;
use simtest::interleaver::{Interleaver, Schedule};
use simtest::invariants::Baseline;
use simtest::outside_access::OutsideAccess;
use simtest::request::{Answer, Request};
use storage_ops::{Config, FormatVolume, HostPath, Node, PathExists, VolumeId};

const GIB: u64 = 1 << 30;

/// Formats a volume regardless of its content, which no operation of csi-proxy may do.
fn format_by_force(sim: &Sim, disk: u32) {
    let name = sim.volume_on(disk).expect("a volume").name().replace('\\', r"\\");
    let wql = format!("SELECT * FROM MSFT_Volume WHERE Path = '{name}'");
    let deadline = sim.now() + std::time::Duration::from_mins(1);
    let found = sim.wmi().query(Namespace::Storage, &wql, deadline).expect("a query");
    let arguments = [("FileSystem", Value::Text("NTFS".into())), ("Force", Value::Bool(true))];
    let done = sim.wmi().call(&MethodCall::new(Namespace::Storage, &found[0].path, "Format", &arguments), deadline);
    assert!(done.is_ok());
}

#[test]
fn formatting_a_formatted_volume_is_detected() {
    let sim = os_sim::node().disk(GIB).partitioned().formatted("NTFS").build();
    let baseline = Baseline::of(&sim);
    assert_eq!(baseline.check(&sim, &[], None), Vec::<String>::new());
    format_by_force(&sim, 1);
    let violations = baseline.check(&sim, &["disk 1 "], None);
    assert!(violations.iter().any(|violation| violation.contains("was formatted")), "{violations:?}");
}

#[test]
fn replacing_a_partitioned_disk_is_detected() {
    let sim = os_sim::node().disk(GIB).gpt().build();
    let baseline = Baseline::of(&sim);
    sim.detach_disk(1).expect("disk 1");
    sim.attach_disk(&os_sim::DiskDescription::new(GIB), true).expect("a plain disk");
    let violations = baseline.check(&sim, &["disk 1 "], None);
    assert!(violations.iter().any(|violation| violation.contains("partition table")), "{violations:?}");
}

#[test]
fn a_new_file_outside_the_working_directory_is_detected() {
    let sim = os_sim::node().build();
    let baseline = Baseline::of(&sim);
    sim.external().write(r"C:\Windows\new", b"1").expect("a directory");
    assert_eq!(baseline.check(&sim, &[r"disk 0 partition 2 \var\lib\kubelet"], None).len(), 1);
}

/// Refuses links until the daemon has started, and follows them from then on.
struct FollowsLinksLater;

impl Layer for FollowsLinksLater {
    fn open_below(&self, parent: &dyn Handle, path: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        let is_test = path.to_string_lossy().contains("All Users");
        if is_test { parent.open_below(path, how) } else { parent.open_child(path, how) }
    }
}

#[test]
fn a_path_that_is_opened_through_a_link_is_detected() {
    let sim = os_sim::node().dir(r"C:\outside\x").junction(r"C:\var\lib\kubelet\pods\p", r"C:\outside").build();
    let exists = |os: Arc<dyn Os>| {
        let outside = OutsideAccess::on(&sim, None);
        let node = Node::new(Arc::new(Layered::around(os, outside.clone())), Config::default());
        node.test_path_lookup();
        let path = HostPath::parse(r"C:\var\lib\kubelet\pods\p\x").expect("a path");
        let answer = node.run(&PathExists { path, context: None });
        (answer.ok(), outside.take())
    };
    assert_eq!(exists(sim.process()), (None, Vec::new()));
    let (answer, outside) = exists(Arc::new(Layered::around(sim.process(), FollowsLinksLater)));
    assert_eq!(answer, Some(true));
    assert!(outside.iter().any(|line| line.contains(r"\outside\x, which is outside")), "{outside:?}");
}

/// Runs the first thread for this many calls, then the second to its end.
struct SwitchAfter(usize);

impl Schedule for SwitchAfter {
    fn next(&mut self, ready: &[usize], begun: &[usize]) -> usize {
        let second = ready.contains(&1) && begun[0] >= self.0;
        usize::from(second || !ready.contains(&0))
    }
}

#[test]
fn without_a_common_lock_an_interleaving_that_formats_twice_is_found() {
    let formats_twice = |calls: &usize| {
        let sim = os_sim::node().disk(GIB).partitioned().build();
        let volume = VolumeId::parse(&sim.volume_on(1).expect("a volume").name()).expect("its name");
        let interleaver = Interleaver::new(2, SwitchAfter(*calls));
        // Two daemons do not share locks. On a real node the second cannot start: the pipes' names are taken.
        let nodes = [(), ()].map(|()| {
            let probed = Probed::new(interleaver.wrap(sim.process()), interleaver.clone());
            Node::new(Arc::new(probed), Config::default())
        });
        let format = |node: &Node| Request::run(&FormatVolume { volume }, node);
        let tasks: Vec<Box<dyn FnOnce() -> Answer + Send + '_>> =
            vec![Box::new(|| format(&nodes[0])), Box::new(|| format(&nodes[1]))];
        interleaver.run(tasks);
        sim.volume_on(1).expect("a volume").formats > 1
    };
    assert!((0..80).any(|calls| formats_twice(&calls)));
}
