//! What the OK of each operation promises: the tests that hold the promises, and those of promises
//! that no other test holds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use faults::{Layer, Race};
use os::abi::{ControlCode, STORAGE_PORT_INTERFACE};
use os::{
    Access, CallStatus, MethodCall, NtPath, Open, Options, Os, OsError, OsResult, Returned, Time,
    U16String, Uuid, Wmi,
};
use os_sim::DiskDescription;
use storage_ops::{
    AddTargetPortal, Config, DiscoverTargetPortal, ErrorKind, ListDiskIds, ListDiskLocations,
    ListTargetPortals, Node, Operation, RemoveTargetPortal, Rescan, ServiceName, StartService,
    StopService, TargetPortal,
};

use crate::refusals::Log;
use crate::setup::{
    GIB, ONE, failing, layered, link, map, map_at, mapped, node_on, ntfs, path, probed, refused,
    set_online,
};
use crate::{links, smb_states};

/// The tests that fail if an operation answers OK without its promise, the paragraph of its comment
/// that begins with `OK:`. Each test is named with its file.
pub(crate) const TESTS: [(&str, &[&str]); 39] = [
    (
        "AddTargetPortal",
        &[
            "iscsi::contract_30_port_0_is_3260_and_adding_twice_succeeds",
            "iscsi::a_portal_that_does_not_answer_is_not_left_behind",
            "promises::a_portal_is_the_same_in_each_spelling_of_its_address",
        ],
    ),
    (
        "ConnectTarget",
        &[
            "iscsi::contract_30_connecting_and_disconnecting_twice_succeeds_and_an_unconnected_target_has_no_disks",
            "iscsi::a_session_that_was_made_with_another_authentication_is_not_that_of_the_request",
            "iscsi::connecting_a_target_returns_as_soon_as_its_disks_have_arrived",
        ],
    ),
    (
        "CreateSymlink",
        &[
            "filesystem::contract_14_a_link_to_a_directory_or_a_missing_path_is_a_directory_link",
            "filesystem::contract_14_a_link_to_a_file_is_a_file_link",
            "filesystem::contract_14_an_existing_target_or_a_missing_parent_is_an_error",
            "promises::a_link_of_the_other_kind_than_its_source_is_not_identical",
        ],
    ),
    (
        "DisconnectTarget",
        &[
            "iscsi::contract_30_connecting_and_disconnecting_twice_succeeds_and_an_unconnected_target_has_no_disks",
            "iscsi::a_persistent_session_is_not_restored_after_it_was_disconnected",
            "iscsi::a_session_whose_disk_stays_open_is_reported_and_kept",
            "iscsi_lost::only_the_dead_one_of_two_sessions_is_ended_through_another_portal",
        ],
    ),
    (
        "DiscoverTargetPortal",
        &["iscsi::contract_30_port_0_is_3260_and_adding_twice_succeeds"],
    ),
    (
        "FormatVolume",
        &[
            "volume::contract_22_a_raw_volume_is_formatted_once",
            "volume::contract_22_a_formatted_volume_is_never_formatted_again",
            "format_again::a_local_volume_is_formatted_again_whatever_its_root_directory_holds",
            "format_again::a_second_format_with_an_unknown_outcome_succeeds_only_if_the_old_file_system_is_gone",
        ],
    ),
    (
        "GetBIOSSerialNumber",
        &[
            "system::contract_30_the_bios_serial_number_is_verbatim",
            "fallbacks::the_serial_number_of_the_machine_has_a_second_way",
        ],
    ),
    (
        "GetClosestVolumeIDFromTargetPath",
        &["volume::contract_25_the_closest_volume_is_that_of_the_nearest_mount_above"],
    ),
    (
        "GetDiskNumberByName",
        &[
            "disk::contract_20b_a_disk_is_found_by_its_name_or_the_last_word_of_it",
            "disk::a_name_leads_to_no_disk_while_another_disk_that_may_have_it_cannot_be_read",
        ],
    ),
    (
        "GetDiskNumberFromVolumeID",
        &[
            "volume::contract_24_unmounting_removes_the_mount_point_and_fails_if_another_volume_or_data_is_there",
            "mounts::a_volume_that_spans_disks_is_refused_and_left_unchanged",
        ],
    ),
    (
        "GetDiskState",
        &["disk::contract_20_set_disk_state_is_idempotent_and_stats_never_fail_for_a_present_disk"],
    ),
    (
        "GetDiskStats",
        &[
            "disk::contract_20_the_size_is_returned_although_one_query_fails",
            "device_answers::the_size_of_a_disk_that_grew_is_returned_without_a_rescan",
        ],
    ),
    (
        "GetService",
        &["system::contract_30_service_numbers_are_those_of_windows"],
    ),
    (
        "GetTargetDisks",
        &[
            "iscsi::contract_30_connecting_and_disconnecting_twice_succeeds_and_an_unconnected_target_has_no_disks",
            "iscsi::the_disks_of_a_session_are_listed_after_its_portal_was_removed",
        ],
    ),
    (
        "GetVolumeIDFromTargetPath",
        &[
            "volume::mounted_not_mounted_and_stale_are_distinguished",
            "mounts::contract_25_the_volume_of_a_link_is_that_of_its_target",
        ],
    ),
    (
        "GetVolumeStats",
        &[
            "volume::contract_27_used_is_total_minus_free",
            "volume::contract_26_a_grown_disk_needs_no_rescan_and_stats_show_the_new_size_at_once",
        ],
    ),
    (
        "IsSymlink",
        &[
            "filesystem::contract_15_a_link_or_mounted_folder_is_a_link_while_its_target_exists",
            "filesystem::contract_15_a_target_that_cannot_be_opened_is_not_reported_missing",
        ],
    ),
    (
        "IsVolumeFormatted",
        &[
            "volume::contract_22_any_file_system_counts_as_formatted_and_an_unknown_state_is_an_error",
            "volume::contract_22_a_volume_with_a_foreign_signature_is_not_reported_as_unformatted",
        ],
    ),
    (
        "ListDiskIDs",
        &[
            "disk::contract_17_identifiers_are_returned_as_the_device_reports_them",
            "device_answers::a_disk_is_listed_with_the_identifier_that_can_be_read",
            "promises::the_log_names_the_disks_whose_identifiers_are_not_listed",
        ],
    ),
    (
        "ListDiskLocations",
        &["promises::contract_16_each_disk_with_a_location_is_listed"],
    ),
    (
        "ListTargetPortals",
        &["iscsi::contract_30_port_0_is_3260_and_adding_twice_succeeds"],
    ),
    (
        "ListVolumesOnDisk",
        &[
            "volume::contract_19_volumes_are_in_partition_order_and_only_a_disk_without_partitions_has_none",
            "volume::contract_19_no_other_volume_is_returned_as_the_first",
            "partitioned_disks::contract_19_a_disk_without_partitions_has_an_empty_list_in_each_state",
        ],
    ),
    (
        "Mkdir",
        &[
            "filesystem::contract_12_mkdir_is_recursive_and_accepts_a_directory_or_a_link_to_one",
            "filesystem::contract_12_mkdir_of_a_link_that_leads_to_no_directory_is_an_error",
        ],
    ),
    (
        "MountVolume",
        &[
            "volume::contract_23_mounting_twice_succeeds_and_an_occupied_target_is_an_error",
            "mounts::a_mount_that_another_program_replaces_is_not_reported_as_success",
        ],
    ),
    (
        "NewSmbGlobalMapping",
        &[
            "smb::contract_28_a_share_is_mapped_once_and_go_reads_the_link_to_it",
            "smb_states::a_mapping_that_cannot_be_read_is_kept",
            "smb_states::another_user_of_a_readable_mapping_is_refused_until_windows_restarts",
            "smb_states::another_password_for_a_readable_mapping_is_counted_and_refused_only_with_a_flag",
            "promises::a_link_for_a_file_at_the_local_path_is_refused_before_the_share_is_mapped",
            "promises::the_log_says_that_an_existing_mapping_does_not_require_encryption",
        ],
    ),
    (
        "PartitionDisk",
        &[
            "disk::contract_18_a_raw_disk_gets_a_gpt_and_one_volume_that_has_arrived",
            "partitioned_disks::contract_18_each_state_and_reason_of_a_partitioned_disk_has_its_outcome",
            "automount::a_volume_that_is_not_brought_online_fails_the_request_only_if_it_is_offline",
        ],
    ),
    (
        "PathExists",
        &[
            "filesystem::contract_11_a_dangling_link_exists_and_a_missing_parent_is_not_an_error",
            "removed_volumes::a_path_on_a_disk_that_has_gone_away_is_not_reported_missing_or_removed",
        ],
    ),
    (
        "RemoveSmbGlobalMapping",
        &[
            "smb::contract_29_a_sub_path_removes_the_mapping_of_its_share_and_an_unmapped_share_is_an_error",
        ],
    ),
    (
        "RemoveTargetPortal",
        &[
            "iscsi::contract_30_port_0_is_3260_and_adding_twice_succeeds",
            "iscsi::the_disks_of_a_session_are_listed_after_its_portal_was_removed",
            "promises::a_portal_is_the_same_in_each_spelling_of_its_address",
        ],
    ),
    (
        "Rescan",
        &[
            "promises::the_log_names_a_port_that_a_rescan_did_not_scan_and_the_cache_is_refreshed",
            "fallbacks::a_rescan_that_has_scanned_no_port_is_an_error",
        ],
    ),
    (
        "ResizeVolume",
        &[
            "volume::contract_26_a_grown_disk_needs_no_rescan_and_stats_show_the_new_size_at_once",
            "volume::contract_26_a_volume_that_is_large_enough_is_left_unchanged",
            "growth::growth_that_was_undone_is_not_reported_as_success",
            "growth::a_size_less_than_a_mebibyte_above_the_maximum_is_accepted",
            "growth::contract_26_a_size_beyond_the_maximum_is_accepted_if_the_growth_is_below_100_mib",
            "growth::contract_26_an_ntfs_volume_grows_up_to_the_limit_of_its_clusters",
            "growth::a_partition_of_an_mbr_grows_up_to_two_tebibytes",
        ],
    ),
    (
        "Rmdir",
        &[
            "filesystem::contract_13_rmdir_with_force_removes_trees_but_never_follows_a_link",
            "remove_tree::contract_13_rmdir_does_not_report_success_while_the_tree_exists",
        ],
    ),
    (
        "RmdirContents",
        &[
            "remove_tree::rmdir_contents_removes_entries_that_are_added_while_it_runs_or_fails",
            "removed_volumes::rmdir_contents_does_not_succeed_on_a_volume_that_is_removed",
            "filesystem::rmdir_contents_keeps_the_system_volume_information_of_a_volume",
        ],
    ),
    (
        "SetDiskState",
        &[
            "disk::contract_20_set_disk_state_is_idempotent_and_stats_never_fail_for_a_present_disk",
            "devices::contract_20a_the_device_sets_only_the_attributes_that_differ_and_online_means_writable",
            "disk::contract_18_set_disk_state_waits_for_the_volumes_of_the_disk",
            "promises::the_log_says_why_the_volumes_of_an_online_disk_are_missing",
            "promises::the_log_says_that_a_disk_went_offline_with_data_in_the_cache",
        ],
    ),
    (
        "SetMutualChapSecret",
        &["iscsi::a_target_checks_the_chap_secret_and_the_initiator_the_mutual_one"],
    ),
    (
        "StartService",
        &[
            "system::contract_30_start_and_stop_wait_for_the_state",
            "promises::a_service_that_stops_while_it_starts_does_not_count_as_started",
        ],
    ),
    (
        "StopService",
        &[
            "system::contract_30_start_and_stop_wait_for_the_state",
            "system::a_service_with_running_dependents_stops_only_with_force_and_after_them",
        ],
    ),
    (
        "UnmountVolume",
        &[
            "volume::contract_24_unmounting_removes_the_mount_point_and_fails_if_another_volume_or_data_is_there",
            "volume::contract_24_a_link_or_a_file_is_not_an_unmounted_directory",
            "mounts::a_failed_flush_and_a_missing_volume_have_their_own_errors",
        ],
    ),
    (
        "WriteVolumeCache",
        &[
            "fallbacks::a_cache_that_the_device_does_not_write_is_written_by_the_storage_provider",
            "mounts::a_failed_flush_and_a_missing_volume_have_their_own_errors",
        ],
    ),
];

/// Returns the newest name of each RPC of a `.proto` file, and what its OK promises.
fn promises(proto: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut comment = String::new();
    for line in proto.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("//") {
            comment.push_str(text.strip_prefix(' ').unwrap_or("\n"));
            comment.push(' ');
            continue;
        }
        if let Some(rpc) = line.strip_prefix("rpc ") {
            // "Named GetDiskStats since v1beta3." An earlier name is named with "in earlier versions".
            let newer = comment
                .split_once("Named ")
                .and_then(|(_, rest)| rest.split_once(" since "))
                .map(|(name, _)| name);
            let name = newer.or_else(|| rpc.split('(').next()).unwrap_or_default();
            let promised: Vec<_> = comment
                .split('\n')
                .filter_map(|paragraph| paragraph.trim().strip_prefix("OK: "))
                .collect();
            assert_eq!(
                promised.len(),
                1,
                "{name} must have one paragraph with \"OK:\""
            );
            found.push((name.to_owned(), promised[0].to_owned()));
        }
        comment.clear();
    }
    found
}

#[test]
fn each_rpc_has_a_promise_in_each_version_and_tests_that_hold_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = |path: &Path| -> Vec<_> {
        let entries = fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let mut promised = BTreeMap::new();
    for version in folders(&root.join("../api/proto"))
        .iter()
        .flat_map(|group| folders(group))
    {
        let proto = fs::read_to_string(version.join("api.proto")).unwrap();
        for (name, promise) in promises(&proto) {
            let first = promised.entry(name).or_insert_with(|| promise.clone());
            assert_eq!(*first, promise, "{}", version.display());
        }
    }
    let names: Vec<_> = TESTS.iter().map(|(name, _)| *name).collect();
    assert!(
        promised.keys().eq(&names),
        "{:?}\n{names:?}",
        promised.keys()
    );
    for test in TESTS.iter().flat_map(|(_, tests)| *tests) {
        let (file, function) = test.split_once("::").expect("a file and a function");
        let source = root.join(format!("tests/operations/{file}.rs"));
        let text = fs::read_to_string(source).unwrap();
        let has = |end| text.contains(&format!("#[test]\nfn {function}(){end}"));
        assert!(has(" {") || has("\n{"), "no test {test}");
    }
}

#[test]
fn a_link_of_the_other_kind_than_its_source_is_not_identical() {
    let sim = os_sim::node()
        .file(r"C:\var\lib\kubelet\plugins\x", b"content")
        .build();
    let (external, node) = (sim.external(), node_on(&sim));
    let source = path(r"\plugins\x").to_string();
    // The links were made when the source was of the other kind.
    node.run(&link(r"\plugins\x", r"\pods\file")).unwrap();
    external.remove(&source).unwrap();
    node.run(&link(r"\plugins\x", r"\pods\directory")).unwrap();
    // As long as the source is missing, either may be right.
    for target in [r"\pods\file", r"\pods\directory"] {
        node.run(&link(r"\plugins\x", target)).unwrap();
    }
    for (right, wrong, words) in [
        (r"\pods\directory", r"\pods\file", "a link for a file"),
        (r"\pods\file", r"\pods\directory", "a link for a directory"),
    ] {
        if right == r"\pods\directory" {
            external.mkdir(&source).unwrap();
        } else {
            external.remove(&source).unwrap();
            external.write(&source, b"content").unwrap();
        }
        node.run(&link(r"\plugins\x", right)).unwrap();
        let before = sim.snapshot();
        let error = refused(&node, &link(r"\plugins\x", wrong), ErrorKind::AlreadyExists);
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(sim.snapshot(), before);
    }
}

#[test]
fn a_link_for_a_file_at_the_local_path_is_refused_before_the_share_is_mapped() {
    const SHARE: &str = r"C:\var\lib\kubelet\plugins\share";
    const FILE: &str = r"C:\var\lib\kubelet\plugins\file";
    let sim = smb_states::sim();
    let (external, node) = (sim.external(), node_on(&sim));
    let request = |local| map_at(r"\\files\one", r"domain\user", "pw", local);
    node.run(&request(SHARE)).unwrap();
    // The same link as an administrator makes it with mklink and without /D.
    external.write(FILE, b"").unwrap();
    let mut data = [0; 1024];
    let how = Open::existing(Access::READ_ATTRIBUTES, Options::REPARSE_POINT);
    let link = NtPath::from_win32(&U16String::from_str(SHARE));
    let filled = sim
        .open(&link, &how)
        .unwrap()
        .control(ControlCode::FSCTL_GET_REPARSE_POINT, &[], &mut data)
        .unwrap();
    links::set_reparse_point(&sim, FILE, &data[..filled]);
    assert!(external.read_dir(SHARE).is_ok());
    assert!(external.read_dir(FILE).is_err());
    node.run(&smb_states::unmap(r"\\files\one")).unwrap();
    let error = refused(&node, &request(FILE), ErrorKind::AlreadyExists);
    assert!(error.to_string().contains("a link for a file"), "{error}");
    assert!(mapped(&sim).is_empty());
    node.run(&request(SHARE)).unwrap();
}

#[test]
fn contract_16_each_disk_with_a_location_is_listed() {
    let sim = os_sim::node()
        .disk(GIB)
        .location("Integrated : Adapter 3 : Port 0 : Target 0 : LUN 7")
        .disk(GIB)
        .location("Integrated : Bus 0 : Device 5")
        .disk(GIB)
        .vhd()
        .build();
    let found = node_on(&sim).run(&ListDiskLocations).unwrap();
    let numbers: Vec<_> = found.keys().map(|number| number.0).collect();
    assert_eq!(numbers, [0, 1]);
    assert_eq!(found[&ONE].lun, "7");
}

/// Returns the number of lines with these words that the log has of a request, which succeeds.
fn lines_of<O: Operation>(node: &Node, operation: &O, words: &str) -> usize {
    let log = Arc::new(Log::default());
    let outcome = tracing::subscriber::with_default(Arc::clone(&log), || node.run(operation));
    assert!(outcome.is_ok(), "{words}");
    log.with(words)
}

#[test]
fn the_log_names_a_port_that_a_rescan_did_not_scan_and_the_cache_is_refreshed() {
    /// A node with a further storage port, which cannot be scanned.
    struct TwoPorts;
    impl Layer for TwoPorts {
        fn device_interfaces(&self, node: &dyn Os, class: Uuid) -> OsResult<Vec<U16String>> {
            let mut found = node.device_interfaces(class)?;
            if class == STORAGE_PORT_INTERFACE {
                found.insert(0, "broken port".into());
            }
            Ok(found)
        }
    }

    let sim = os_sim::node().build();
    sim.set_timing(|timing| timing.provider = Duration::from_hours(1));
    sim.attach_disk(&DiskDescription::new(GIB), false).unwrap();
    let node = layered(&sim, TwoPorts);
    assert_eq!(node.run(&ListDiskLocations).unwrap().len(), 1);
    let lines = lines_of(&node, &Rescan, "a storage port could not be scanned");
    assert_eq!(lines, 1);
    assert_eq!(node.run(&ListDiskLocations).unwrap().len(), 2);
    let update = failing("control DISK_UPDATE_PROPERTIES", OsError::IO_DEVICE);
    let words = "the properties of a disk could not be updated";
    assert_eq!(lines_of(&probed(&sim, update), &Rescan, words), 2);
    let refresh = "wmi call MSFT_StorageSetting.UpdateHostStorageCache";
    let failing = probed(&sim, failing(refresh, OsError::ACCESS_DENIED));
    refused(&failing, &Rescan, ErrorKind::PermissionDenied);
}

#[test]
fn the_log_names_the_disks_whose_identifiers_are_not_listed() {
    let sim = os_sim::node().disk(GIB).page83_ascii("x").build();
    let query = "control STORAGE_QUERY_PROPERTY";
    for (primitive, lines, words) in [
        ("open", 2, "left out a disk that could not be opened"),
        (query, 2, "not all identifiers of a disk could be read"),
    ] {
        let node = probed(&sim, failing(primitive, OsError::IO_DEVICE));
        assert_eq!(lines_of(&node, &ListDiskIds, words), lines);
    }
}

#[test]
fn the_log_says_why_the_volumes_of_an_online_disk_are_missing() {
    /// A node that lists no volume, and whose provider brings none online.
    struct NoVolumes;
    impl Layer for NoVolumes {
        fn volumes(&self, _: &dyn Os) -> OsResult<Vec<U16String>> {
            Ok(Vec::new())
        }

        fn wmi_call(
            &self,
            wmi: &dyn Wmi,
            call: &MethodCall<'_>,
            deadline: Time,
        ) -> OsResult<CallStatus> {
            if call.method != "Online" {
                return wmi.call(call, deadline);
            }
            Ok(CallStatus::Done(Returned {
                code: 4,
                ..Returned::default()
            }))
        }
    }

    let sim = ntfs().offline().read_only().build();
    let words = "the volumes of the disk could not be brought online";
    let node = layered(&sim, NoVolumes);
    assert_eq!(lines_of(&node, &set_online(1, true), words), 1);
    let disk = sim.disk(1).unwrap();
    assert!(!disk.offline && !disk.read_only);
}

#[test]
fn the_log_says_that_a_disk_went_offline_with_data_in_the_cache() {
    let sim = ntfs().build();
    let flush = failing("flush", OsError::IO_DEVICE);
    let words = "the cache of a volume was not written";
    assert_eq!(
        lines_of(&probed(&sim, flush), &set_online(1, false), words),
        1
    );
    assert!(sim.disk(1).unwrap().offline);
}

#[test]
fn a_service_that_stops_while_it_starts_does_not_count_as_started() {
    let sim = os_sim::node().service("a", "A").build();
    let name = ServiceName::parse("a").unwrap();
    let stop = StopService {
        name: name.clone(),
        force: false,
    };
    let other = sim.clone();
    // The first query is made before the start.
    let stops = Race::before(1, move || node_on(&other).run(&stop).unwrap())
        .among(|call| call.primitive == "service state");
    let start = StartService { name };
    let error = refused(&probed(&sim, stops), &start, ErrorKind::FailedPrecondition);
    assert!(
        error
            .to_string()
            .ends_with("the service stopped while it was starting"),
        "{error}"
    );
}

#[test]
fn a_portal_is_the_same_in_each_spelling_of_its_address() {
    const ADDRESS: &str = "2001:db8::5";
    let sim = os_sim::node()
        .service("MSiSCSI", "Microsoft iSCSI Initiator Service")
        .running()
        .iscsi_portal(ADDRESS, 3260)
        .target("iqn.2024-01.test:t")
        .lun(GIB)
        .build();
    let node = node_on(&sim);
    let known = || node.run(&ListTargetPortals).unwrap().len();
    let portal = |address| TargetPortal::parse(address, 3260).unwrap();
    let add = |address| {
        let portal = portal(address);
        node.run(&AddTargetPortal { portal }).unwrap();
    };
    let remove = |address| {
        let portal = portal(address);
        node.run(&RemoveTargetPortal { portal }).unwrap();
    };
    for address in [ADDRESS, "2001:DB8:0::5", "[2001:db8::5]"] {
        add(ADDRESS);
        remove(address);
        assert_eq!(known(), 0, "{address}");
        add(ADDRESS);
        add(address);
        remove("2001:db8::6");
        remove("2001:db8::5%2");
        assert_eq!(known(), 1, "{address}");
        let portal = portal(address);
        let targets = node.run(&DiscoverTargetPortal { portal }).unwrap();
        assert_eq!(targets.len(), 1, "{address}");
    }
}

#[test]
fn the_log_says_that_an_existing_mapping_does_not_require_encryption() {
    let words = "the existing mapping of the share is used, although it does not require \
                 encryption; csi-proxy's flag -require-privacy decides on new mappings";
    let request = map(r"\\files\one", r"domain\user", "pw");
    for made_with in [false, true] {
        let sim = smb_states::sim();
        let lines = |required| {
            let config = Config::default().with(|c| c.require_privacy = required);
            lines_of(&Node::new(sim.process(), config), &request, words)
        };
        assert_eq!(lines(made_with), 0);
        assert_eq!(lines(false), 0);
        assert_eq!(lines(true), usize::from(!made_with));
    }
}
