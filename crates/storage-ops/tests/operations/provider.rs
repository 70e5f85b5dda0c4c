//! Tests of what the storage provider does in its own time: it learns of disks late, locks volumes,
//! and a policy takes a disk offline again.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::refusals::Log;
use crate::setup::{
    GIB, NoProbe, ONE, PARTITION, has_code, layered, node_on, ntfs, partitioned_disk, probed,
    provider, raw_disk, refused, refused_saying, set_online, traced, volume_on,
};
use faults::{Fault, FaultAction, Layer, Layered, Probed, Race, Trace, When};
use os::{
    CallStatus, Instance, MethodCall, Namespace, Os, OsError, OsResult, Returned, Time, Value, Wmi,
};
use os_sim::{DiskDescription, Sim};
use storage_ops::{
    Config,
    ErrorKind::{FailedPrecondition, Internal, NotFound},
    FormatVolume, GetDiskState, IsVolumeFormatted, Node, ResizeTarget, ResizeVolume, VolumeId,
};

const VOLUMES: &str = "SELECT * FROM MSFT_Volume WHERE FileSystemType = 0";
const FORMAT: &str = "wmi call MSFT_Volume.Format";
const REFRESH: &str = "wmi call MSFT_Disk.Refresh";
const UPDATE: &str = "wmi call MSFT_StorageSetting.UpdateHostStorageCache";

/// Returns a node with a partitioned disk whose volume is raw, and the volume.
fn raw_volume() -> (Sim, VolumeId) {
    let sim = partitioned_disk().build();
    let volume = volume_on(&node_on(&sim), 1);
    (sim, volume)
}

/// Formats the raw volume as another program does.
fn format(sim: &Sim) {
    provider(sim, VOLUMES, "Format", &[("Force", Value::Bool(true))]);
}

/// Begins to format the raw volume as another program does.
fn begin_format(sim: &Sim) {
    let (os, now) = (sim.process(), sim.now());
    let found = os
        .wmi()
        .query(Namespace::Storage, VOLUMES, now)
        .unwrap()
        .remove(0);
    let force = [("Force", Value::Bool(true))];
    let call = MethodCall::new(Namespace::Storage, &found.path, "Format", &force);
    assert!(matches!(
        os.wmi().call(&call, now),
        Ok(CallStatus::StillRunning(_))
    ));
}

#[test]
fn a_disk_and_a_volume_that_the_provider_does_not_know_yet_are_found_by_updating_its_cache() {
    let sim = os_sim::node().build();
    sim.set_timing(|timing| timing.provider = Duration::from_hours(1));
    sim.attach_disk(&DiskDescription::new(GIB), true).unwrap();
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&PARTITION).unwrap();
    node.run(&FormatVolume::new(volume_on(&node, 1))).unwrap();
    assert!(trace.counts().of(UPDATE) >= 2);
    assert_eq!(
        sim.volume_on(1).unwrap().file_system.as_deref(),
        Some("NTFS")
    );
}

/// Answers the first calls of a method with a return value, instead of calling it.
struct Answer {
    method: &'static str,
    code: u32,
    left: AtomicU32,
}

impl Layer for Answer {
    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        if call.method == self.method
            && self
                .left
                .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
                .is_ok()
        {
            return Ok(CallStatus::Done(Returned {
                code: self.code,
                ..Returned::default()
            }));
        }
        wmi.call(call, deadline)
    }
}

/// Returns a node whose provider answers the first `times` calls of `method` with `code`.
fn answering(sim: &Sim, method: &'static str, code: u32, times: u32) -> Node {
    let answer = Answer {
        method,
        code,
        left: AtomicU32::new(times),
    };
    layered(sim, answer)
}

#[test]
fn a_method_that_returns_an_error_code_counts_as_a_failure() {
    let (sim, volume) = raw_volume();
    let node = answering(&sim, "Format", 4, 1);
    let format = FormatVolume::new(volume);
    refused(&node, &format, Internal);
    node.run(&format).unwrap();
    let counts = node.wmi_calls();
    let count = counts
        .iter()
        .find(|count| count.method == "Format")
        .unwrap();
    assert_eq!((count.calls, count.failures), (2, 1), "{count:?}");
}

#[test]
fn a_disk_that_the_provider_learns_of_by_itself_is_waited_for() {
    let sim = os_sim::node().build();
    sim.set_timing(|timing| timing.provider = Duration::from_secs(5));
    sim.attach_disk(&DiskDescription::new(GIB), true).unwrap();
    // Updating the cache has no effect.
    answering(&sim, "UpdateHostStorageCache", 0, u32::MAX)
        .run(&PARTITION)
        .unwrap();
    assert_eq!(sim.disk(1).unwrap().partitions.len(), 2);
}

fn grown() -> (Sim, ResizeVolume) {
    let sim = ntfs().build();
    let volume = volume_on(&node_on(&sim), 1);
    assert!(sim.grow_disk(1, 2 * GIB));
    (sim, ResizeVolume::new(ResizeTarget::Volume(volume), 0))
}

#[test]
fn a_disk_that_refresh_refuses_is_read_by_updating_the_cache() {
    for code in [1, 40003, 41000, 41003] {
        let (sim, resize) = grown();
        answering(&sim, "Refresh", code, u32::MAX)
            .run(&resize)
            .unwrap();
        assert!(sim.disk(1).unwrap().partitions[1].length > GIB, "{code}");
    }
    let (sim, resize) = grown();
    let error = refused(&answering(&sim, "Refresh", 4, 1), &resize, Internal);
    has_code(&error, OsError(4));
}

#[test]
fn the_cache_is_refreshed_if_it_differs_from_what_the_device_reports_and_only_then() {
    for (name, disk, refreshed) in [
        ("known", raw_disk(), 0),
        ("grown", raw_disk().grown_to(2 * GIB), 1),
        ("brought online by a control code", raw_disk().offline(), 1),
        ("made writable by a control code", raw_disk().read_only(), 1),
    ] {
        let sim = disk.build();
        let size = sim.disk(1).unwrap().size;
        let (node, trace) = traced(&sim, NoProbe);
        node.run(&PARTITION).unwrap();
        assert!(
            size - sim.disk(1).unwrap().partitions[1].length < GIB / 16,
            "{name}"
        );
        assert_eq!(
            (trace.counts().of(UPDATE), trace.counts().of(REFRESH)),
            (refreshed, 0),
            "{name}"
        );
        assert_eq!(trace.counts().wmi, 4 + 2 * refreshed, "{name}");
    }
}

#[test]
fn a_change_that_is_refused_because_the_cache_is_out_of_date_is_repeated_after_a_refresh() {
    for (method, code) in [
        ("Initialize", 40003),
        ("Initialize", 41002),
        ("Initialize", 41003),
        ("CreatePartition", 40000),
        ("CreatePartition", 40003),
        ("CreatePartition", 41000),
        ("CreatePartition", 41002),
        ("CreatePartition", 41003),
    ] {
        let sim = raw_disk().build();
        answering(&sim, method, code, 1).run(&PARTITION).unwrap();
        assert_eq!(sim.disk(1).unwrap().partitions.len(), 2, "{method} {code}");
        let sim = raw_disk().build();
        let error = answering(&sim, method, code, 2)
            .run(&PARTITION)
            .unwrap_err();
        has_code(&error, OsError(code));
    }
}

/// Answers queries for disks with old rows until the cache is updated.
struct Outdated {
    disks: Mutex<Option<Vec<Instance>>>,
}

impl Layer for Outdated {
    fn wmi_query(
        &self,
        wmi: &dyn Wmi,
        namespace: Namespace,
        wql: &str,
        deadline: Time,
    ) -> OsResult<Vec<Instance>> {
        match &*self.disks.lock().unwrap() {
            Some(disks) if wql.contains("FROM MSFT_Disk") => Ok(disks.clone()),
            _ => wmi.query(namespace, wql, deadline),
        }
    }

    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        if call.method == "UpdateHostStorageCache" {
            self.disks.lock().unwrap().take();
        }
        wmi.call(call, deadline)
    }
}

#[test]
fn an_instance_of_a_removed_disk_like_the_new_one_is_refreshed() {
    let sim = raw_disk().serial("").build();
    let disks = sim.process().wmi().query(
        Namespace::Storage,
        "SELECT * FROM MSFT_Disk WHERE Number = 1",
        Time(Duration::MAX),
    );
    sim.unplug_disk(1).unwrap();
    let same = DiskDescription {
        serial: Some(String::new()),
        ..DiskDescription::new(GIB)
    };
    assert_eq!(sim.attach_disk(&same, true), Ok(1));
    let outdated = Outdated {
        disks: Mutex::new(Some(disks.unwrap())),
    };
    let node = layered(&sim, outdated);
    node.run(&PARTITION).unwrap();
    assert_eq!(sim.disk(1).unwrap().partitions.len(), 2);
}

/// Changes a property of the rows of disks, also after a refresh.
struct Reporting {
    property: &'static str,
    change: Change,
}

/// Returns what is reported instead of a value.
type Change = fn(Option<&Value>) -> Option<Value>;

impl Layer for Reporting {
    fn change_instances(&self, wql: &str, rows: &mut Vec<Instance>) {
        if wql.contains("FROM MSFT_Disk") {
            for row in rows.iter_mut() {
                match (self.change)(row.properties.get(self.property)) {
                    Some(value) => row.properties.insert(self.property.into(), value),
                    None => row.properties.remove(self.property),
                };
            }
        }
    }
}

#[test]
fn a_property_that_the_provider_reports_otherwise_than_the_device_even_after_a_refresh_is_counted()
{
    fn size(value: Option<&Value>) -> u64 {
        let Some(Value::Text(size)) = value else {
            panic!("{value:?}")
        };
        size.parse().unwrap()
    }
    let differing: [(&'static str, Change, u32, Option<u32>); 6] = [
        (
            "Size",
            |value| Some(Value::Text((size(value) - (1 << 20) + 1).to_string())),
            0,
            None,
        ),
        (
            "Size",
            |value| Some(Value::Text((size(value) - (1 << 20)).to_string())),
            1,
            Some(1),
        ),
        ("IsOffline", |_| Some(Value::Bool(true)), 1, Some(2)),
        ("IsReadOnly", |_| Some(Value::Bool(true)), 1, Some(3)),
        ("PartitionStyle", |_| Some(Value::U32(1)), 1, Some(4)),
        ("IsReadOnly", |_| None, 1, Some(0)),
    ];
    for (property, change, refreshes, code) in differing {
        let sim = raw_disk().gpt().build();
        let trace = Arc::new(Trace::recording());
        let layered = Layered::around(sim.process(), Reporting { property, change });
        let node = Node::new(
            Arc::new(Probed::new(Arc::new(layered), Arc::clone(&trace))),
            Config::default(),
        );
        node.run(&PARTITION).unwrap();
        assert_eq!(sim.disk(1).unwrap().partitions.len(), 2, "{property}");
        assert_eq!(
            trace.counts().of(UPDATE) + trace.counts().of(REFRESH),
            u64::from(refreshes),
            "{property}"
        );
        assert_eq!(
            node.fallbacks(),
            code.map(|code| storage_ops::FallbackCount {
                call: "provider_cache",
                code: Some(code),
                count: 1,
            })
            .into_iter()
            .collect::<Vec<_>>(),
            "{property}"
        );
    }
}

#[test]
fn a_temporary_failure_of_format_is_repeated_until_the_volume_is_formatted() {
    for code in [5, 6, 4099, 40001, 40003, 43006] {
        let (sim, volume) = raw_volume();
        let (node, warnings) = (answering(&sim, "Format", code, 3), Arc::new(Log::default()));
        tracing::subscriber::with_default(Arc::clone(&warnings), || {
            node.run(&FormatVolume::new(volume)).unwrap();
        });
        assert_eq!(sim.volume_on(1).unwrap().formats, 1, "{code}");
        assert_eq!(warnings.with("repeating the format"), 1, "{code}");
        let (sim, volume) = raw_volume();
        let error = answering(&sim, "Format", code, u32::MAX)
            .run(&FormatVolume::new(volume))
            .unwrap_err();
        has_code(&error, OsError(code));
        assert!(sim.now() < Time(Duration::from_mins(1)), "{code}");
    }
    for code in [1, 4, 40018, 42010, 43001] {
        let (sim, volume) = raw_volume();
        let error = answering(&sim, "Format", code, 1)
            .run(&FormatVolume::new(volume))
            .unwrap_err();
        has_code(&error, OsError(code));
    }
}

#[test]
fn a_disk_that_is_removed_during_a_change_is_not_found() {
    // The disk is removed right before the change, and may return before the change fails.
    for returns in [false, true] {
        let lost = |sim: &Sim, method: &'static str, code| {
            let removed = sim.clone();
            let remove = move || {
                let disk = removed.unplug_disk(1).unwrap();
                if returns {
                    assert_eq!(removed.plug_disk(disk, true), Some(1));
                    removed.advance(Duration::from_secs(1));
                }
            };
            let race = Race::before(0, remove)
                .among(move |call| call.primitive.ends_with(&format!(".{method}")));
            let failing = Layered::around(
                sim.process(),
                Answer {
                    method,
                    code,
                    left: AtomicU32::new(1),
                },
            );
            Node::new(
                Arc::new(Probed::new(Arc::new(failing), race)),
                Config::default(),
            )
        };
        let (sim, volume) = raw_volume();
        refused_saying(
            &lost(&sim, "Format", 4),
            &FormatVolume::new(volume),
            NotFound,
            ": it was removed meanwhile: the storage provider's Format failed: ",
        );
        for method in ["Initialize", "CreatePartition"] {
            let sim = raw_disk().build();
            refused_saying(
                &lost(&sim, method, 4),
                &PARTITION,
                NotFound,
                "it was removed meanwhile",
            );
        }
    }
}

#[test]
fn a_volume_on_a_read_only_disk_is_not_waited_for() {
    let sim = partitioned_disk().read_only().build();
    let volume = volume_on(&node_on(&sim), 1);
    let (node, trace) = traced(&sim, NoProbe);
    let error = refused(&node, &FormatVolume::new(volume), FailedPrecondition);
    assert_eq!(
        (error.code(), trace.counts().of(FORMAT)),
        (Some(OsError(43006)), 1),
        "{error}"
    );
}

#[test]
fn waiting_becomes_less_frequent() {
    let sim = raw_disk().build();
    sim.set_timing(|timing| timing.new_volume = Duration::from_hours(1));
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&PARTITION).unwrap();
    let error = refused(
        &node,
        &FormatVolume::new(volume_on(&node, 1)),
        FailedPrecondition,
    );
    has_code(&error, OsError(43006));
    assert!(
        (10..30).contains(&trace.counts().of(FORMAT)),
        "{:?}",
        trace.counts()
    );
}

/// Does the work of the first call of `CreatePartition`, and answers that the cache is out of date.
struct CreatedButStale(AtomicU32);

impl Layer for CreatedButStale {
    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        let status = wmi.call(call, deadline)?;
        if call.method == "CreatePartition" && self.0.fetch_add(1, SeqCst) == 0 {
            return Ok(CallStatus::Done(Returned {
                code: 40003,
                ..Returned::default()
            }));
        }
        Ok(status)
    }
}

/// Removes everything from the rows of disks by which a disk can be told from another.
struct Anonymous;

impl Layer for Anonymous {
    fn change_instances(&self, _: &str, rows: &mut Vec<Instance>) {
        for row in rows.iter_mut() {
            row.properties
                .retain(|name, _| !["Path", "SerialNumber", "Size"].contains(&name.as_str()));
        }
    }
}

#[test]
fn a_disk_that_cannot_be_told_from_another_is_not_partitioned() {
    let sim = raw_disk().serial("").build();
    let before = sim.snapshot();
    let node = layered(&sim, Anonymous);
    refused(&node, &PARTITION, FailedPrecondition);
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn a_partition_that_was_created_although_the_cache_was_out_of_date_is_not_created_again() {
    let sim = raw_disk().build();
    let layer = Layered::around(sim.process(), CreatedButStale(AtomicU32::new(0)));
    Node::new(Arc::new(layer), Config::default())
        .run(&PARTITION)
        .unwrap();
    assert_eq!(sim.disk(1).unwrap().partitions.len(), 2);
}

#[test]
fn a_disk_that_a_policy_takes_offline_again_is_brought_online_again() {
    for times in 1..=3 {
        let sim = partitioned_disk().offline().offline_again(times).build();
        node_on(&sim).run(&set_online(1, true)).unwrap();
        assert!(
            !sim.disk(1).unwrap().offline && sim.volume_on(1).unwrap().arrived,
            "{times}"
        );

        let sim = raw_disk().offline().offline_again(times).build();
        let node = node_on(&sim);
        node.run(&PARTITION).unwrap();
        assert!(
            node.run(&GetDiskState { disk: ONE }).unwrap() && sim.volume_on(1).unwrap().arrived,
            "{times}"
        );
        assert_eq!(sim.disk(1).unwrap().partitions.len(), 2, "{times}");
    }
}

#[test]
fn a_disk_that_does_not_stay_online_is_not_waited_for_forever() {
    let sim = raw_disk().offline().offline_again(u32::MAX).build();
    let before = sim.now();
    let error = refused(&node_on(&sim), &PARTITION, FailedPrecondition);
    has_code(&error, OsError(41003));
    assert!(sim.now() - before < Duration::from_mins(2));
}

#[test]
fn a_new_volume_is_formatted_as_soon_as_it_can_be_written() {
    let sim = raw_disk().build();
    sim.set_timing(|timing| timing.new_volume = Duration::from_secs(5));
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&PARTITION).unwrap();
    let volume = volume_on(&node, 1);
    node.run(&FormatVolume::new(volume)).unwrap();
    assert_eq!(sim.volume_on(1).unwrap().formats, 1);
    assert!(trace.counts().of(FORMAT) > 1);
}

#[test]
fn a_volume_that_another_program_formats_is_not_formatted_again() {
    // The other program is formatting when our call comes, so the provider refuses it.
    let (sim, volume) = raw_volume();
    let other = sim.clone();
    let earlier =
        Race::before(0, move || begin_format(&other)).among(|call| call.primitive == FORMAT);
    probed(&sim, earlier)
        .run(&FormatVolume::new(volume))
        .unwrap();
    assert_eq!(sim.volume_on(1).unwrap().formats, 1);

    // The other program formats before our second attempt.
    let (sim, volume) = raw_volume();
    let other = sim.clone();
    let between =
        Race::before(1, move || format(&other)).among(|call| call.primitive == "wmi query");
    let refusing = Layered::around(
        sim.process(),
        Answer {
            method: "Format",
            code: 6,
            left: AtomicU32::new(1),
        },
    );
    let node = Node::new(
        Arc::new(Probed::new(Arc::new(refusing), between)),
        Config::default(),
    );
    node.run(&FormatVolume::new(volume)).unwrap();
    assert_eq!(sim.volume_on(1).unwrap().formats, 1);

    let (sim, volume) = raw_volume();
    begin_format(&sim);
    node_on(&sim).run(&FormatVolume::new(volume)).unwrap_err();
    sim.advance(Duration::from_secs(10));
    node_on(&sim).run(&FormatVolume::new(volume)).unwrap();
    assert_eq!(sim.volume_on(1).unwrap().formats, 1);
}

#[test]
fn a_volume_that_is_being_formatted_is_not_reported_as_unformatted() {
    let (sim, volume) = raw_volume();
    begin_format(&sim);
    let error = node_on(&sim)
        .run(&IsVolumeFormatted { volume })
        .unwrap_err();
    has_code(&error, OsError::ACCESS_DENIED);
    sim.advance(Duration::from_secs(10));
    assert!(node_on(&sim).run(&IsVolumeFormatted { volume }).unwrap());
}

#[test]
fn a_new_file_system_may_show_its_signature_before_it_is_mounted() {
    for code in [
        OsError::ACCESS_DENIED,
        OsError::NOT_READY,
        OsError::SHARING_VIOLATION,
        OsError(1006),
        OsError(1110),
    ] {
        let (sim, volume) = raw_volume();
        let formatted = sim.clone();
        let not_ready = Fault::at(0, When::Before, FaultAction::Fail(code)).among(move |call| {
            call.primitive.starts_with("query_fs")
                && formatted.volume_on(1).unwrap().file_system.is_some()
        });
        probed(&sim, not_ready)
            .run(&FormatVolume::new(volume))
            .unwrap();
        assert_eq!(sim.volume_on(1).unwrap().formats, 1, "{code}");
    }
}

#[test]
fn a_volume_whose_file_system_the_provider_cannot_resize_is_left_unchanged() {
    let sim = partitioned_disk().formatted("FAT32").build();
    let node = node_on(&sim);
    let volume = volume_on(&node, 1);
    sim.grow_disk(1, 2 * GIB);
    let before = sim.snapshot();
    let resize = ResizeVolume::new(ResizeTarget::Volume(volume), 0);
    let error = refused(&node, &resize, FailedPrecondition);
    has_code(&error, OsError(42009));
    assert_eq!(sim.snapshot(), before);
}
