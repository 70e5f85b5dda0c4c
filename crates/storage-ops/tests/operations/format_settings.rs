//! Formatting with other settings than the default ones: file system, allocation unit size, and who
//! may write to the root.

use std::sync::Arc;

use faults::{Fault, FaultAction, Probed, When};
use os::abi::{AccessEntry, EntryKind};
use os::{Access, NtPath, Open, Options, Os as _, OsError};
use os_sim::Sim;
use storage_ops::{Config, ErrorKind, FormatVolume, NewFileSystem, Node, VolumeId};

use crate::setup::{
    GIB, MOUNT, NoProbe, failing_once, mount, node_on, ntfs, provider, refused, traced, volume_on,
};

const FORMAT: &str = "wmi call MSFT_Volume.Format";

/// ContainerUser.
const WRITER: &str = "S-1-5-93-2-2";

fn refs(allocation_unit: u32) -> Config {
    Config::default().with(|c| {
        c.format_file_system = NewFileSystem::ReFs;
        c.format_allocation_unit = Some(allocation_unit);
    })
}

fn writers() -> Config {
    let format_writers = [WRITER, "S-1-5-32-545"]
        .map(|sid| sid.parse().unwrap())
        .into();
    Config::default().with(|c| c.format_writers = format_writers)
}

fn raw() -> (Sim, VolumeId) {
    let sim = os_sim::node().disk(GIB).partitioned().dir(MOUNT).build();
    let volume = volume_on(&node_on(&sim), 1);
    (sim, volume)
}

/// Returns the access control list of the root of the volume on disk 1.
fn root_list(sim: &Sim) -> Vec<AccessEntry> {
    let root = NtPath::volume_root(sim.volume_on(1).unwrap().id);
    let how = Open::existing(Access::READ_CONTROL, Options::DIRECTORY);
    sim.process()
        .open(&root, &how)
        .unwrap()
        .security_descriptor()
        .unwrap()
        .entries
        .unwrap()
}

/// Returns the list that Windows gives the root of a new volume, and after it the entries of the
/// accounts of [`writers`].
fn new_list() -> Vec<AccessEntry> {
    let (sim, volume) = raw();
    node_on(&sim).run(&FormatVolume::new(volume)).unwrap();
    let mut entries = root_list(&sim);
    assert!(entries.len() > 5);
    entries.extend([WRITER, "S-1-5-32-545"].map(|sid| AccessEntry {
        kind: EntryKind::Allow,
        flags: 3,
        rights: 0x13_01bf,
        sid: sid.parse().unwrap(),
    }));
    entries
}

/// Returns a node with [`writers`] on which a fault happens.
fn with_fault(sim: &Sim, fault: Fault) -> Node {
    Node::new(Arc::new(Probed::new(sim.process(), fault)), writers())
}

#[test]
fn a_raw_volume_gets_the_file_system_and_the_allocation_unit_of_the_settings() {
    for (config, file_system, cluster) in [
        (Config::default(), "NTFS", 4096),
        (
            Config::default().with(|c| c.format_allocation_unit = Some(65536)),
            "NTFS",
            65536,
        ),
        (refs(65536), "ReFS", 65536),
    ] {
        let (sim, volume) = raw();
        let node = Node::new(sim.process(), config);
        for _ in 0..2 {
            node.run(&FormatVolume::new(volume)).unwrap();
        }
        let found = sim.volume_on(1).unwrap();
        assert_eq!(
            (found.file_system.as_deref(), found.cluster, found.formats),
            (Some(file_system), cluster, 1)
        );
    }
}

#[test]
fn a_volume_that_has_ntfs_already_keeps_ntfs() {
    let sim = ntfs().build();
    let node = Node::new(sim.process(), refs(4096));
    let (volume, before) = (volume_on(&node, 1), sim.snapshot());
    node.run(&FormatVolume::new(volume)).unwrap();
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn an_allocation_unit_that_the_file_system_cannot_have_is_an_error_that_names_the_flag() {
    let (sim, volume) = raw();
    let node = Node::new(sim.process(), refs(8192));
    let error = refused(
        &node,
        &FormatVolume::new(volume),
        ErrorKind::FailedPrecondition,
    );
    assert!(
        error.code() == Some(OsError(43000))
            && error.to_string().contains("-format-allocation-unit"),
        "{error}"
    );
}

#[test]
fn a_volume_of_more_than_16_tib_gets_larger_clusters_or_an_error_that_names_the_flag() {
    let volume_of = |tib: u64, unit: Option<u32>| {
        let sim = os_sim::node().disk(tib * 1024 * GIB).partitioned().build();
        let config = Config::default().with(|c| c.format_allocation_unit = unit);
        let node = Node::new(sim.process(), config);
        let volume = volume_on(&node, 1);
        (sim, node, FormatVolume::new(volume))
    };
    for (tib, unit, cluster) in [
        (16, None, 4096),
        (17, None, 8192),
        (64, None, 16384),
        (17, Some(8192), 8192),
    ] {
        let (sim, node, format) = volume_of(tib, unit);
        node.run(&format).unwrap();
        assert_eq!(sim.volume_on(1).unwrap().cluster, cluster, "{tib} TiB");
    }
    let (_, node, format) = volume_of(17, Some(4096));
    let error = refused(&node, &format, ErrorKind::FailedPrecondition);
    assert!(
        error.code() == Some(OsError(43003))
            && error.to_string().contains("-format-allocation-unit"),
        "{error}"
    );
}

#[test]
fn the_accounts_of_the_settings_may_change_a_new_volume_if_need_be_after_a_retry() {
    let (sim, volume) = raw();
    let node = with_fault(
        &sim,
        failing_once("set_access_list", OsError::ACCESS_DENIED),
    );
    let error = refused(
        &node,
        &FormatVolume::new(volume),
        ErrorKind::PermissionDenied,
    );
    assert!(
        error
            .to_string()
            .contains("the access list of its root directory cannot be changed"),
        "{error}"
    );
    // An administrator denies one of the accounts what it is about to get.
    let mut expected = new_list();
    expected.insert(
        0,
        AccessEntry {
            kind: EntryKind::Deny,
            ..expected.last().unwrap().clone()
        },
    );
    let (os, how) = (
        sim.process(),
        Open::existing(Access::WRITE_DAC, Options::DIRECTORY),
    );
    let root = os
        .open(&NtPath::volume_root(sim.volume_on(1).unwrap().id), &how)
        .unwrap();
    root.set_access_list(&expected[..expected.len() - 2])
        .unwrap();
    for _ in 0..2 {
        node.run(&FormatVolume::new(volume)).unwrap();
        assert_eq!(root_list(&sim), expected);
    }
}

#[test]
fn the_access_list_is_set_after_a_restart_if_the_daemon_died_before() {
    for (primitive, when) in [
        (FORMAT, When::After),
        ("set_access_list", When::Before),
        ("set_access_list", When::After),
    ] {
        for mounts in [true, false] {
            let (sim, volume) = raw();
            let died = Fault::each(
                move |call| call.primitive == primitive,
                when,
                FaultAction::Die,
            );
            with_fault(&sim, died)
                .run(&FormatVolume::new(volume))
                .unwrap_err();
            let node = Node::new(sim.process(), writers());
            if mounts {
                // Drivers ask IsVolumeFormatted first, and then do not call FormatVolume again.
                node.run(&mount(volume, MOUNT)).unwrap();
            } else {
                node.run(&FormatVolume::new(volume)).unwrap();
            }
            assert_eq!(root_list(&sim), new_list(), "{primitive}");
            assert_eq!(sim.volume_on(1).unwrap().formats, 1);
        }
    }
}

#[test]
fn the_access_list_of_a_volume_that_csi_proxy_has_not_formatted_is_left_as_it_is() {
    let sim = ntfs().dir(MOUNT).build();
    let (volume, before) = (volume_on(&node_on(&sim), 1), root_list(&sim));
    // The device reports a raw volume, and the storage provider NTFS: the formatting does not
    // begin.
    let is_raw = FaultAction::Fail(OsError::UNRECOGNIZED_VOLUME);
    let raw = Fault::each(
        |call| call.primitive == "query_fs Attribute",
        When::Before,
        is_raw,
    );
    with_fault(&sim, raw)
        .run(&FormatVolume::new(volume))
        .unwrap_err();
    let node = Node::new(sim.process(), writers());
    node.run(&FormatVolume::new(volume)).unwrap();
    node.run(&mount(volume, MOUNT)).unwrap();
    assert_eq!(root_list(&sim), before);
}

#[test]
fn the_access_list_of_a_volume_whose_formatting_has_failed_is_left_as_the_administrator_makes_it() {
    let (sim, volume) = raw();
    let fails = Fault::each(
        |call| call.primitive == FORMAT,
        When::Before,
        FaultAction::Return(43005),
    );
    refused(
        &with_fault(&sim, fails),
        &FormatVolume::new(volume),
        ErrorKind::FailedPrecondition,
    );
    provider(
        &sim,
        "SELECT * FROM MSFT_Volume WHERE FileSystemType = 0",
        "Format",
        &[],
    );
    let before = root_list(&sim);
    Node::new(sim.process(), writers())
        .run(&mount(volume, MOUNT))
        .unwrap();
    assert_eq!(root_list(&sim), before);
}

#[test]
fn without_such_accounts_formatting_and_mounting_make_no_further_calls() {
    let (sim, volume) = raw();
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&FormatVolume::new(volume)).unwrap();
    node.run(&mount(volume, MOUNT)).unwrap();
    for primitive in [
        "set_volatile_text",
        "registry_text",
        "delete_registry_value",
        "security_descriptor",
        "set_access_list",
    ] {
        assert_eq!(trace.counts().of(primitive), 0, "{primitive}");
    }
}
