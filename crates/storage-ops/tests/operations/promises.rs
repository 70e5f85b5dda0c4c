//! What the OK of an operation promises, where no other test holds the promise.

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
    AddTargetPortal, Config, DiscoverTargetPortal,
    ErrorKind::{AlreadyExists, FailedPrecondition, PermissionDenied},
    ListDiskIds, ListDiskLocations, ListTargetPortals, NewSmbGlobalMapping, Node, Operation,
    RemoveTargetPortal, Rescan, ServiceName, StartService, StopService, TargetPortal,
};

use crate::refusals::Log;
use crate::setup::{
    GIB, ONE, failing, layered, link, map, map_at, mapped, node_on, ntfs, path, probed, raw_disk,
    refused, refused_saying, set_online,
};
use crate::{links, smb_states};

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
        refused_saying(&node, &link(r"\plugins\x", wrong), AlreadyExists, words);
        assert_eq!(sim.snapshot(), before);
    }
}

fn request(local: &str) -> NewSmbGlobalMapping {
    map_at(r"\\files\one", r"domain\user", "pw", local)
}

#[test]
fn a_link_for_a_file_at_the_local_path_is_refused_before_the_share_is_mapped() {
    const SHARE: &str = r"C:\var\lib\kubelet\plugins\share";
    const FILE: &str = r"C:\var\lib\kubelet\plugins\file";
    let sim = smb_states::sim();
    let (external, node) = (sim.external(), node_on(&sim));
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
    refused_saying(&node, &request(FILE), AlreadyExists, "a link for a file");
    assert!(mapped(&sim).is_empty());
    node.run(&request(SHARE)).unwrap();
}

#[test]
fn contract_16_each_disk_with_a_location_is_listed() {
    let sim = raw_disk()
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
    refused(&failing, &Rescan, PermissionDenied);
}

#[test]
fn the_log_names_the_disks_whose_identifiers_are_not_listed() {
    let sim = raw_disk().page83_ascii("x").build();
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
    let error = refused(&probed(&sim, stops), &start, FailedPrecondition);
    assert!(
        error
            .to_string()
            .ends_with("the service stopped while it was starting"),
        "{error}"
    );
}

fn portal(address: &str) -> TargetPortal {
    TargetPortal::parse(address, 3260).unwrap()
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
        assert_eq!(node.run(&ListTargetPortals).unwrap().len(), 0, "{address}");
        add(ADDRESS);
        add(address);
        remove("2001:db8::6");
        remove("2001:db8::5%2");
        assert_eq!(node.run(&ListTargetPortals).unwrap().len(), 1, "{address}");
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
