//! Whether the proof would notice: what must not happen is done on purpose.

use std::sync::Arc;

use faults::Probed;
use os::{Namespace, Os, Value};
use os_sim::Sim;
use simtest::promise::Before;
use simtest::scenario::{Answer, Request};
use simtest::stage::{Schedule, Stage};
use storage_ops::{Config, FormatVolume, Node, VolumeId};

const GIB: u64 = 1 << 30;

/// What no operation of ours may do: formats whatever is there.
fn format_by_force(sim: &Sim, disk: u32) {
    let name = sim.volume_on(disk).expect("a volume").name().replace('\\', r"\\");
    let wql = format!("SELECT * FROM MSFT_Volume WHERE Path = '{name}'");
    let deadline = sim.now() + std::time::Duration::from_mins(1);
    let found = sim.wmi().query(Namespace::Storage, &wql, deadline).expect("a query");
    let arguments = [("FileSystem", Value::Text("NTFS".into())), ("Force", Value::Bool(true))];
    let done = sim.wmi().call(Namespace::Storage, &found[0].path, "Format", &arguments, deadline);
    assert!(done.is_ok());
}

#[test]
fn a_second_formatting_is_noticed() {
    let sim = os_sim::node().disk(GIB).partitioned().formatted("NTFS").build();
    let before = Before::of(&sim);
    assert_eq!(before.check(&sim, &[], None), Vec::<String>::new());
    format_by_force(&sim, 1);
    let broken = before.check(&sim, &["disk 1 "], None);
    assert!(broken.iter().any(|what| what.contains("was formatted")), "{broken:?}");
}

#[test]
fn another_disk_in_the_place_of_one_with_a_table_is_noticed() {
    let sim = os_sim::node().disk(GIB).gpt().build();
    let before = Before::of(&sim);
    sim.detach_disk(1).expect("disk 1");
    sim.attach_disk(&os_sim::DiskDescription::new(GIB), true).expect("a plain disk");
    let broken = before.check(&sim, &["disk 1 "], None);
    assert!(broken.iter().any(|what| what.contains("partition table")), "{broken:?}");
}

#[test]
fn a_file_that_changes_outside_is_noticed() {
    let sim = os_sim::node().build();
    let before = Before::of(&sim);
    sim.external().write(r"C:\Windows\new", b"1").expect("a directory");
    assert_eq!(before.check(&sim, &[r"disk 0 partition 2 \var\lib\kubelet"], None).len(), 1);
}

/// The first thread for so many calls, then the second to its end.
struct First(usize);

impl Schedule for First {
    fn next(&mut self, ready: &[usize], begun: &[usize]) -> usize {
        let second = ready.contains(&1) && begun[0] >= self.0;
        usize::from(second || !ready.contains(&0))
    }
}

#[test]
fn without_a_common_lock_the_stage_finds_the_interleaving_that_formats_twice() {
    let formats_twice = |calls: &usize| {
        let sim = os_sim::node().disk(GIB).partitioned().build();
        let volume = VolumeId::parse(&sim.volume_on(1).expect("a volume").name()).expect("its name");
        let stage = Stage::new(2, First(*calls));
        // Two daemons, as there never are: the pipes' names are taken by the first.
        let nodes = [(), ()].map(|()| {
            let probed = Probed::new(stage.over(sim.process()), stage.clone());
            Node::new(Arc::new(probed), Config::default())
        });
        let part = |node: &Node| Request::run(&FormatVolume { volume }, node);
        let parts: Vec<Box<dyn FnOnce() -> Answer + Send + '_>> =
            vec![Box::new(|| part(&nodes[0])), Box::new(|| part(&nodes[1]))];
        stage.run(parts);
        sim.volume_on(1).expect("a volume").formats > 1
    };
    assert!((0..40).any(|calls| formats_twice(&calls)));
}
