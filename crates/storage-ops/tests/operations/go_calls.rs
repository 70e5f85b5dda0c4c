//! The calls of each operation beside those of the Go program, which `verify/go-program/calls.txt`
//! lists.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use faults::{Call, FaultAction, Layer, Layered, Outcome, Probe, Probed};
use os::{CallStatus, Instance, MethodCall, Namespace, OsError, OsResult, Time, Value, Wmi};
use os_sim::Sim;
use storage_ops::{
    AddTargetPortal, Authentication, Config, DisconnectTarget, DiscoverTargetPortal, FormatVolume,
    GetBiosSerialNumber, GetDiskNumberByName, GetDiskNumberFromVolumeId, GetDiskState,
    GetDiskStats, GetService, GetTargetDisks, GetVolumeStats, IsVolumeFormatted, ListDiskIds,
    ListDiskLocations, ListTargetPortals, ListVolumesOnDisk, Node, Operation, RemoveTargetPortal,
    Rescan, ServiceName, SetMutualChapSecret, StartService, StopService, VolumeId,
    WriteVolumeCache,
};

use crate::iscsi::{self, connect, plain, portal};
use crate::setup::{
    GIB, KUBELET, MOUNT, NoProbe, ONE, PARTITION, both, closest, failing_on, failing_once, map,
    map_at, mkdir, mount, mounted_at, node_on, ntfs, resize, secret_text, set_online, unmount,
    volume_on, volumes_of,
};
use crate::{promises, smb_states};

const TABLE: &str = include_str!("../../../../verify/go-program/calls.txt");

/// Records the calls of WMI and the native calls that can change the node, in their order. A native
/// call that is repeated at once is recorded once.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn record(&self, call: String) {
        let mut calls = os::lock(&self.0);
        if !(call.starts_with("native ") && calls.last() == Some(&call)) {
            calls.push(call);
        }
    }
}

impl Probe for Recorder {
    fn after(&self, call: &Call, _outcome: Outcome) -> FaultAction {
        if call.mutates && !call.is_wmi() {
            let native = format!("native {}", call.primitive);
            self.record(match &*call.primitive {
                "service start" | "service stop" => format!("{native} {}", call.object),
                _ => native,
            });
        }
        FaultAction::Go
    }
}

impl Layer for Recorder {
    fn wmi_query(
        &self,
        wmi: &dyn Wmi,
        namespace: Namespace,
        wql: &str,
        deadline: Time,
    ) -> OsResult<Vec<Instance>> {
        self.record(match wql.split_once(['{', '}']) {
            Some(("ASSOCIATORS OF ", object)) => {
                let (_, condition) = object.rsplit_once('}').expect("the end of the object");
                format!("ASSOCIATORS OF {}{condition}", os::class_of(object))
            }
            _ => without_guid(wql),
        });
        wmi.query(namespace, wql, deadline)
    }

    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        let mut arguments: Vec<String> = call
            .arguments
            .iter()
            .map(|(name, value)| match value {
                Value::Bool(value) => format!("{name} = {value}"),
                Value::U32(number) => format!("{name} = {number}"),
                Value::Text(text) => format!("{name} = '{text}'"),
                Value::Secret(_) => format!("{name} = SECRET"),
                other => panic!("{other:?} as an argument"),
            })
            .collect();
        arguments.sort();
        let (class, arguments) = (os::class_of(call.path), arguments.join(", "));
        self.record(format!("{class}.{}({arguments})", call.method));
        wmi.call(call, deadline)
    }
}

/// Returns the text with `{GUID}` for the GUID of a volume.
fn without_guid(wql: &str) -> String {
    match wql
        .split_once("Volume{")
        .map(|(start, rest)| (start, rest.split_once('}')))
    {
        Some((start, Some((_, end)))) => format!("{start}Volume{{GUID}}{end}"),
        _ => wql.to_owned(),
    }
}

/// The recorded calls of operations, each under the name of the operation and the state of the
/// node.
#[derive(Default)]
struct Recorded(Vec<(String, Vec<String>)>);

impl Recorded {
    fn run<O: Operation>(&mut self, state: &str, sim: &Sim, operation: &O) {
        self.probed(state, sim, NoProbe, operation);
    }

    /// Runs the operation with a probe between it and the node.
    fn probed<O: Operation>(
        &mut self,
        state: &str,
        sim: &Sim,
        probe: impl Probe + 'static,
        operation: &O,
    ) {
        let recorder = Recorder::default();
        let probed = Probed::new(sim.process(), both(recorder.clone(), probe));
        let layered = Layered::around(Arc::new(probed), recorder.clone());
        let node = Node::new(Arc::new(layered), Config::default());
        // What a node does when it starts is no call of the operation.
        os::lock(&recorder.0).clear();
        let title = format!("{}{state}", O::NAME);
        if let Err(error) = node.run(operation) {
            panic!("{title}: {error}");
        }
        let calls = std::mem::take(&mut *os::lock(&recorder.0));
        self.0.push((title, calls));
    }

    fn disks(&mut self) {
        let sim = ntfs().build();
        self.run("", &sim, &ListDiskLocations);
        self.run("", &sim, &ListDiskIds);
        self.run("", &sim, &GetDiskStats { disk: ONE });
        self.run("", &sim, &GetDiskState { disk: ONE });
        self.run("", &sim, &Rescan);
        self.run(" (offline)", &sim, &set_online(1, false));
        self.run(" (online)", &sim, &set_online(1, true));
        let sim = os_sim::node().disk(GIB).page83_ascii("pvc-x").build();
        let name = "pvc-x".into();
        self.run("", &sim, &GetDiskNumberByName { name });
        self.run(" of a new disk", &sim, &PARTITION);
        self.run(" of a partitioned disk", &sim, &PARTITION);
        let sim = os_sim::node().disk(GIB).mbr().partitioned().build();
        self.run(" of a partitioned disk with an MBR", &sim, &PARTITION);
    }

    fn volumes(&mut self) {
        let sim = os_sim::node().disk(GIB).partitioned().build();
        let node = node_on(&sim);
        node.run(&mkdir(r"\plugins\v")).expect("a directory");
        let volume: VolumeId = volume_on(&node, 1);
        self.run("", &sim, &volumes_of(1));
        let (disk, partition) = (ONE, 2);
        let of_partition = ListVolumesOnDisk { disk, partition };
        self.run(" of a partition", &sim, &of_partition);
        self.run("", &sim, &IsVolumeFormatted { volume });
        self.run(" of a raw volume", &sim, &FormatVolume::new(volume));
        self.run(" of an empty volume", &sim, &FormatVolume::new(volume));
        self.run("", &sim, &mount(volume, MOUNT));
        self.run("", &sim, &mounted_at(MOUNT));
        self.run("", &sim, &closest(KUBELET));
        self.run("", &sim, &GetVolumeStats { volume });
        self.run("", &sim, &GetDiskNumberFromVolumeId { volume });
        self.run("", &sim, &WriteVolumeCache { volume });
        self.run("", &sim, &unmount(volume, MOUNT));
        for (state, size) in [(" to the maximum", 0), (" to a size", 3 * GIB / 2)] {
            let sim = ntfs().grown_to(2 * GIB).build();
            let volume = volume_on(&node_on(&sim), 1);
            self.run(state, &sim, &resize(volume, size));
        }
    }

    fn shares(&mut self) {
        let create = "wmi call MSFT_SmbGlobalMapping.Create";
        let (share, user) = (r"\\files\one", r"domain\user");
        let (sim, request) = (smb_states::sim(), map(share, user, "pw"));
        let linked = map_at(share, user, "pw", r"\plugins\l");
        self.run(" of a new share, with local_path", &sim, &linked);
        self.run(" of a mapped share", &sim, &request);
        let is_share = |path: &str| path.contains("UNC");
        let refused = failing_on("open", is_share, OsError::LOGON_FAILURE);
        let state = " of a mapped share whose server refuses the credentials";
        self.probed(state, &sim, refused, &request);
        self.run("", &sim, &smb_states::unmap(share));
        let no_store = failing_once(create, OsError::NO_SUCH_LOGON_SESSION);
        let state = " where credentials cannot be stored";
        self.probed(state, &sim, no_store, &request);
        let sim = smb_states::restarted_sim();
        sim.rotate_smb_password("files", user, "new");
        let state = " of a share, another share of whose server has an old mapping";
        self.run(state, &sim, &map(r"\\files\two", user, "new"));
    }

    fn targets(&mut self) {
        let (sim, portal, iqn) = (iscsi::sim(), portal(), plain());
        let add = AddTargetPortal {
            portal: portal.clone(),
        };
        self.run(" of a new portal", &sim, &add);
        self.run(" of a known portal", &sim, &add);
        self.run("", &sim, &ListTargetPortals);
        let discover = DiscoverTargetPortal {
            portal: portal.clone(),
        };
        self.run("", &sim, &discover);
        let secret = "secret-secret";
        let with_chap = connect(iscsi::CHAP, Authentication::OneWayChap, secret);
        self.run(" with CHAP", &sim, &with_chap);
        let without = connect(iscsi::PLAIN, Authentication::None, "");
        self.run(" without CHAP", &sim, &without);
        self.run(" of a connected target", &sim, &without);
        let disks = GetTargetDisks {
            portal: portal.clone(),
            iqn: iqn.clone(),
        };
        self.run("", &sim, &disks);
        let disconnect = DisconnectTarget {
            portal: portal.clone(),
            iqn,
        };
        self.run(" of a connected target", &sim, &disconnect);
        self.run(" of an unconnected target", &sim, &disconnect);
        let secret = secret_text("mutual-secret");
        self.run("", &sim, &SetMutualChapSecret { secret });
        let remove = RemoveTargetPortal { portal };
        self.run(" of a known portal", &sim, &remove);
        self.run(" of an unknown portal", &sim, &remove);
    }

    fn services(&mut self) {
        let sim = os_sim::node()
            .bios_serial("serial")
            .service("a", "A")
            .service("b", "B")
            .depends_on("a")
            .build();
        let name = |text| ServiceName::parse(text).expect("a name");
        self.run("", &sim, &GetBiosSerialNumber);
        self.run("", &sim, &GetService { name: name("a") });
        self.run("", &sim, &StartService { name: name("b") });
        let mut stop = StopService {
            name: name("a"),
            force: true,
        };
        self.run(" with force, and a dependent service", &sim, &stop);
        let start = StartService { name: name("a") };
        node_on(&sim).run(&start).expect("a running service");
        stop.force = false;
        self.run(" without force", &sim, &stop);
    }
}

/// A part of the table: a title, and the lines below it.
fn sections() -> Vec<(&'static str, Vec<&'static str>)> {
    TABLE
        .split("\n== ")
        .skip(1)
        .map(|section| {
            let (title, lines) = section.split_once('\n').unwrap_or((section, ""));
            (
                title,
                lines.lines().filter(|line| !line.is_empty()).collect(),
            )
        })
        .collect()
}

/// Returns the call of a line of the table, and the keys of the differences that declare it.
fn parts(line: &'static str) -> (&'static str, &'static str) {
    let (call, key) = line.split_once("  ; ").unwrap_or((line, ""));
    (&call[2..], key)
}

#[test]
fn the_calls_of_each_operation_are_those_of_the_go_program_or_a_declared_difference() {
    let mut recorded = Recorded::default();
    recorded.disks();
    recorded.volumes();
    recorded.shares();
    recorded.targets();
    recorded.services();
    let sections = sections();
    let titles: Vec<&str> = sections.iter().map(|(title, _)| *title).collect();
    let ours: Vec<&str> = recorded.0.iter().map(|(title, _)| title.as_str()).collect();
    let mut wrong = String::new();
    for (title, calls) in &recorded.0 {
        let expected: Option<Vec<&str>> =
            sections
                .iter()
                .find(|(other, _)| other == title)
                .map(|(_, lines)| {
                    let of_ours = lines.iter().filter(|line| !line.starts_with("- "));
                    of_ours.map(|line| parts(line).0).collect()
                });
        if expected.as_ref().is_none_or(|expected| expected != calls) {
            wrong.extend(["== ", title, "\n+ ", &calls.join("\n+ "), "\n"]);
        }
    }
    assert!(
        wrong.is_empty(),
        "calls that calls.txt does not have:\n{wrong}"
    );
    assert_eq!(titles, ours, "the table has these parts in this order");
}

#[test]
fn each_difference_of_calls_is_declared() {
    let page = include_str!("../../../../docs/design.md");
    let (head, _) = TABLE.split_once("\n== ").expect("parts");
    let declared: Vec<(&str, &str)> = head
        .lines()
        .filter_map(|line| line.strip_prefix("; ")?.split_once(": "))
        .collect();
    let mut used = BTreeSet::new();
    for (title, lines) in sections() {
        for line in lines {
            let (_, key) = parts(line);
            let is_declared = declared.iter().any(|(known, _)| *known == key);
            let is_difference = line.starts_with("- ") || line.starts_with("+ ");
            assert_eq!(is_declared, is_difference, "{title}: {line:?}");
            used.insert(key);
        }
    }
    for (key, what) in declared {
        assert!(used.contains(key), "no call needs {key:?}");
        // A row of the list of differences, by its first words.
        if let Some((_, row)) = what.split_once("design.md, ") {
            assert!(
                page.contains(&format!("| {row}")),
                "design.md has no row {row:?}"
            );
        }
    }
}

#[test]
fn each_operation_that_is_not_one_on_files_has_a_part() {
    const ON_FILES: [&str; 6] = [
        "CreateSymlink",
        "IsSymlink",
        "Mkdir",
        "PathExists",
        "Rmdir",
        "RmdirContents",
    ];
    let sections = sections();
    for (name, _) in promises::TESTS {
        let has_part = sections
            .iter()
            .any(|(title, _)| title.split(' ').next() == Some(name));
        assert_eq!(has_part, !ON_FILES.contains(&name), "{name}");
    }
}
