//! Formatting with other settings than the default ones: file system, allocation unit size, and who
//! may write to the root.

use std::sync::Arc;

use faults::{Fault, FaultAction, Probed, When};
use os::abi::{AccessEntry, EntryKind};
use os::{Access, NtPath, Open, Options, Os as _, OsError};
use os_sim::Sim;
use storage_ops::{
    Config,
    ErrorKind::{FailedPrecondition, PermissionDenied},
    FormatVolume, NewFileSystem, Node, VolumeId,
};

use crate::setup::{
    MOUNT, failing_once, mount, node_on, ntfs, partitioned_disk, provider, refused, refused_saying,
    volume_on,
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
    let sim = partitioned_disk().dir(MOUNT).build();
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
    let error = refused(&node, &FormatVolume::new(volume), FailedPrecondition);
    assert!(
        error.code() == Some(OsError(43000))
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
    refused_saying(
        &node,
        &FormatVolume::new(volume),
        PermissionDenied,
        "the access list of its root directory cannot be changed",
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
        FailedPrecondition,
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
