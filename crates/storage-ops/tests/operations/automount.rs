//! Tests on a node with automatic mounting disabled, whose mount manager leaves new volumes
//! offline.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use faults::{Fault, FaultAction, Layer, When};
use os::{
    Access, CallStatus, Handle, Instance, MethodCall, NtPath, Open, Os, OsError, OsResult,
    Returned, Time, Value, Wmi,
};
use os_sim::{Builder, Sim};
use storage_ops::{ErrorKind, FormatVolume, IsVolumeFormatted, Node};

use crate::setup::{
    GIB, NoProbe, PARTITION, has_code, layered, mount, node_on, ntfs, probed, raw_disk, refused,
    set_online, traced, volume_on,
};

const ONLINE_CALL: &str = "wmi call MSFT_Partition.Online";

/// Returns the node in both readings of what a volume that is offline answers to the query of its
/// extents.
fn both(node: &Builder) -> [Sim; 2] {
    [false, true].map(|have_extents| {
        let sim = node.build();
        sim.set_offline_volumes_have_extents(have_extents);
        sim
    })
}

fn is_online(sim: &Sim) -> bool {
    sim.volume_on(1)
        .is_some_and(|volume| volume.arrived && !volume.offline)
}

#[test]
fn contract_18_the_volume_of_a_new_partition_is_brought_online() {
    for disk in [
        raw_disk(),
        raw_disk().offline().read_only(),
        raw_disk().gpt(),
    ] {
        for sim in both(&disk.no_automount().dir(r"C:\var\lib\kubelet\v")) {
            let node = node_on(&sim);
            node.run(&PARTITION).unwrap();
            let volume = volume_on(&node, 1);
            assert_eq!(node.run(&IsVolumeFormatted { volume }), Ok(false));
            node.run(&FormatVolume::new(volume)).unwrap();
            node.run(&mount(volume, r"\v")).unwrap();
            assert!(is_online(&sim) && sim.volume_on(1).unwrap().formats == 1);
        }
    }
}

#[test]
fn contract_18_an_offline_volume_of_a_partitioned_disk_is_brought_online() {
    for file_system in [None, Some("NTFS")] {
        let disk = os_sim::node().no_automount().disk(GIB).partitioned();
        let disk = file_system.map_or(disk.clone(), |name| disk.formatted(name));
        for sim in both(&disk) {
            assert!(!is_online(&sim));
            let (node, trace) = traced(&sim, NoProbe);
            node.run(&PARTITION).unwrap();
            assert!(is_online(&sim));
            let volume = volume_on(&node, 1);
            assert_eq!(
                node.run(&IsVolumeFormatted { volume }),
                Ok(file_system.is_some())
            );
            trace.take();
            let before = trace.counts();
            node.run(&PARTITION).unwrap();
            assert_eq!((trace.counts() - &before).wmi, 0, "it is online");
        }
    }
}

#[test]
fn contract_18_the_volume_of_a_disk_that_comes_online_is_brought_online() {
    for sim in both(
        &os_sim::node()
            .no_automount()
            .disk(GIB)
            .partitioned()
            .formatted("NTFS")
            .offline()
            .read_only(),
    ) {
        let node = node_on(&sim);
        node.run(&PARTITION).unwrap();
        node.run(&set_online(1, true)).unwrap();
        assert!(is_online(&sim));
        assert_eq!(
            node.run(&IsVolumeFormatted {
                volume: volume_on(&node, 1)
            }),
            Ok(true)
        );
        node.run(&set_online(1, false)).unwrap();
        node.run(&set_online(1, true)).unwrap();
        assert!(is_online(&sim), "again");
    }
}

#[test]
fn an_offline_volume_is_brought_online_although_it_answers_otherwise() {
    for code in [5, 31, 1117, 4711].map(OsError) {
        for sim in both(
            &os_sim::node()
                .no_automount()
                .disk(GIB)
                .partitioned()
                .formatted("NTFS"),
        ) {
            probed(
                &sim,
                Fault::each(
                    |call| call.primitive == "read",
                    When::Before,
                    FaultAction::Fail(code),
                ),
            )
            .run(&PARTITION)
            .unwrap();
            assert!(is_online(&sim), "{code:?}");
        }
    }
    // A volume that is online and cannot be read is left as it is.
    let sim = ntfs().unreadable().build();
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&PARTITION).unwrap();
    assert_eq!(trace.counts().of(ONLINE_CALL), 0);
}

#[test]
fn an_offline_volume_is_not_formatted() {
    for sim in both(
        &os_sim::node()
            .no_automount()
            .disk(GIB)
            .partitioned()
            .formatted("NTFS"),
    ) {
        let node = node_on(&sim);
        let volume = volume_on(&node, 1);
        let error = refused(
            &node,
            &IsVolumeFormatted { volume },
            ErrorKind::FailedPrecondition,
        );
        has_code(&error, OsError::NOT_READY);
        node.run(&FormatVolume::new(volume)).unwrap_err();
        assert_eq!(sim.volume_on(1).unwrap().formats, 0);
    }
}

/// Returns a code from a method of the provider instead of calling it.
struct Returns(&'static str, u32);

impl Layer for Returns {
    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        if call.method == self.0 {
            return Ok(CallStatus::Done(Returned {
                code: self.1,
                ..Returned::default()
            }));
        }
        wmi.call(call, deadline)
    }
}

/// Returns a node whose provider does not run a method but returns a code.
pub(crate) fn returning(sim: &Sim, method: &'static str, code: u32) -> Node {
    layered(sim, Returns(method, code))
}

#[test]
fn a_volume_that_is_not_brought_online_fails_the_request_only_if_it_is_offline() {
    for code in [1, 4, 6, 40001, 42011] {
        let sim = raw_disk().build();
        returning(&sim, "Online", code).run(&PARTITION).unwrap();
        assert!(is_online(&sim), "{code}");
        let sim = os_sim::node().no_automount().disk(GIB).build();
        let error = returning(&sim, "Online", code).run(&PARTITION).unwrap_err();
        has_code(&error, OsError(code));
        assert!(!is_online(&sim), "{code}");
        node_on(&sim).run(&PARTITION).unwrap();
        assert!(is_online(&sim), "{code}");
        let sim = os_sim::node()
            .no_automount()
            .disk(GIB)
            .partitioned()
            .formatted("NTFS")
            .offline()
            .build();
        let error = returning(&sim, "Online", code)
            .run(&set_online(1, true))
            .unwrap_err();
        has_code(&error, OsError(code));
        node_on(&sim).run(&set_online(1, true)).unwrap();
        assert!(is_online(&sim), "{code}");
    }
}

#[test]
fn a_new_volume_is_brought_online_once_also_where_windows_does_so() {
    let sim = raw_disk().build();
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&PARTITION).unwrap();
    assert_eq!(trace.counts().of(ONLINE_CALL), 1);
    node.run(&PARTITION).unwrap();
    node.run(&set_online(1, true)).unwrap();
    assert_eq!(trace.counts().of(ONLINE_CALL), 1);
}

/// Methods that were called, each with the rights of the handles that were open on disks.
type AtCalls = Vec<(String, Vec<Access>)>;

/// Records the rights of the handles that are open on disks, and those at each call of a method.
#[derive(Default)]
struct DiskHandles {
    open: Mutex<HashMap<usize, Access>>,
    at_calls: Arc<Mutex<AtCalls>>,
}

fn address(handle: &dyn Handle) -> usize {
    std::ptr::from_ref(handle).cast::<()>().addr()
}

impl Layer for DiskHandles {
    fn open(&self, node: &dyn Os, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        let handle = node.open(path, how)?;
        if path.to_string().contains("PhysicalDrive") {
            self.open
                .lock()
                .unwrap()
                .insert(address(&*handle), how.access);
        }
        Ok(handle)
    }

    fn close(&self, handle: Box<dyn Handle>) {
        self.open.lock().unwrap().remove(&address(&*handle));
    }

    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        let open: Vec<_> = self.open.lock().unwrap().values().copied().collect();
        self.at_calls
            .lock()
            .unwrap()
            .push((call.method.to_owned(), open));
        wmi.call(call, deadline)
    }

    fn control(
        &self,
        handle: &dyn Handle,
        code: os::abi::ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        // So that the provider brings the disk online.
        if code == os::abi::ControlCode::DISK_SET_DISK_ATTRIBUTES {
            return Err(OsError::INVALID_FUNCTION);
        }
        handle.control(code, input, output)
    }
}

#[test]
fn no_handle_with_rights_to_a_disk_is_open_while_the_provider_changes_it() {
    let sim = os_sim::node()
        .no_automount()
        .disk(GIB)
        .offline()
        .read_only()
        .build();
    let layer = DiskHandles::default();
    let at_calls = Arc::clone(&layer.at_calls);
    let node = layered(&sim, layer);
    node.run(&PARTITION).unwrap();
    let at_calls = at_calls.lock().unwrap();
    for method in ["SetAttributes", "Online", "Initialize", "CreatePartition"] {
        let open: Vec<_> = at_calls
            .iter()
            .filter(|(called, _)| called == method)
            .map(|(_, open)| open)
            .collect();
        assert!(!open.is_empty(), "{method}");
        assert!(
            open.iter().all(|open| **open == [Access::empty()]),
            "{method}: {open:?}"
        );
    }
}

/// Changes the partition that CreatePartition returns.
struct ChangesCreated(fn(&mut Instance));

impl Layer for ChangesCreated {
    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        let mut status = wmi.call(call, deadline)?;
        if let CallStatus::Done(returned) = &mut status
            && let Some(Value::Object(partition)) =
                returned.out.properties.get_mut("CreatedPartition")
        {
            (self.0)(partition);
        }
        Ok(status)
    }
}

#[test]
fn a_new_partition_is_looked_up_unless_the_provider_has_returned_it() {
    fn set(partition: &mut Instance, property: &str, text: &str) {
        partition
            .properties
            .insert(property.to_owned(), Value::Text(text.to_owned()));
    }
    let changes: [fn(&mut Instance); 4] = [
        |_| {},
        |partition| partition.properties.clear(),
        |partition| set(partition, "Offset", "1"),
        |partition| set(partition, "ObjectId", "unknown"),
    ];
    for (change, queries) in changes.into_iter().zip([0, 1, 1, 1]) {
        let sim = os_sim::node().no_automount().disk(GIB).build();
        let node = layered(&sim, ChangesCreated(change));
        node.run(&PARTITION).unwrap();
        let calls = node.wmi_calls();
        let found = calls
            .iter()
            .find(|count| (&*count.class, &*count.method) == ("MSFT_Partition", "query"));
        assert_eq!(
            (is_online(&sim), found.map_or(0, |count| count.calls)),
            (true, queries)
        );
    }
}
