//! Tests of the operations on SMB global mappings.

use std::sync::Mutex;

use crate::setup::{
    NoProbe, both, failing, has_code, map, map_at, mapped, node_on, probed, refused, traced,
};
use crate::smb_states::{mapped_sim, sim, unmap};
use faults::{Call, Fault, FaultAction, Probe, When};
use os::{Access, NtPath, Open, Options, Os as _, OsError, U16String};
use os_sim::Sim;
use storage_ops::{
    ErrorKind::{AlreadyExists, FailedPrecondition, NotFound, PermissionDenied, StillRunning},
    NewSmbGlobalMapping, Node,
};

const LINK: &str = r"C:\var\lib\kubelet\plugins\share";

#[test]
fn contract_28_a_share_is_mapped_once_and_go_reads_the_link_to_it() {
    let sim = sim();
    let node = node_on(&sim);
    for _ in 0..2 {
        node.run(&map_at("//Files/One/", r"domain\user", "pw", LINK))
            .unwrap();
    }
    assert_eq!(mapped(&sim), [r"\\files\one"]);
    let text = sim.external().read_link(LINK).unwrap();
    assert_eq!(text.trim_end_matches('\\').to_lowercase(), r"\\files\one");
    sim.external()
        .write(&format!(r"{LINK}\f"), b"through")
        .unwrap();
    node.run(&map(r"\\files\one\sub", r"DOMAIN\User", "pw"))
        .unwrap();
    assert_eq!(
        sim.smb_mappings().len(),
        1,
        "a path below the share shares its mapping"
    );
}

#[test]
fn contract_28_an_occupied_or_forbidden_local_path_is_refused_before_the_share_is_mapped() {
    let sim = sim();
    let node = node_on(&sim);
    refused(
        &node,
        &map_at(r"\\files\one", r"domain\user", "pw", r"C:\elsewhere"),
        PermissionDenied,
    );
    refused(
        &node,
        &map_at(r"\\files\one", r"domain\user", "pw", r"\missing\share"),
        NotFound,
    );
    assert!(sim.smb_mappings().is_empty());
    sim.external().mkdir(LINK).unwrap();
    refused(
        &node,
        &map_at(r"\\files\one", r"domain\user", "pw", LINK),
        AlreadyExists,
    );
    assert!(sim.smb_mappings().is_empty());
}

#[test]
fn contract_29_a_sub_path_removes_the_mapping_of_its_share_and_an_unmapped_share_is_an_error() {
    let sim = sim();
    let node = node_on(&sim);
    node.run(&map(r"\\files\one", r"domain\user", "pw"))
        .unwrap();
    node.run(&unmap(r"\\FILES\one\sub\dir\")).unwrap();
    assert!(sim.smb_mappings().is_empty());
    refused(&node, &unmap(r"\\files\one"), NotFound);
}

#[test]
fn contract_29_the_password_is_in_no_error_trace_or_dump() {
    let sim = sim();
    let (node, trace) = traced(&sim, NoProbe);
    let mapping = map(r"\\files\one", r"domain\user", "hunter2hunter2");
    let error = refused(&node, &mapping, PermissionDenied);
    let records = format!("{:?}", trace.take());
    assert!(!records.is_empty());
    for text in [
        error.to_string(),
        format!("{error:?}"),
        format!("{mapping:?}"),
        records,
        format!("{:?}", sim.snapshot()),
    ] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn contract_28_a_single_error_does_not_remove_a_mapping() {
    let sim = mapped_sim();
    let before = sim.snapshot();
    for nth in 0..3 {
        for code in [
            OsError::IO_DEVICE,
            OsError::BAD_NETPATH,
            OsError::LOGON_FAILURE,
        ] {
            let fault = Fault::at(nth, When::Before, FaultAction::Fail(code))
                .among(|call| call.object.to_lowercase().contains(r"unc\files\one"));
            probed(&sim, fault)
                .run(&map(r"\\files\one\missing", r"domain\user", "pw"))
                .unwrap();
            assert_eq!(sim.snapshot(), before, "{code:?} at {nth}");
        }
    }
}

/// Fails each attempt to open the share with `at_share`, and each attempt to open a path below it
/// with `below`.
struct FailedOpens {
    at_share: OsError,
    below: OsError,
}

impl Probe for FailedOpens {
    fn before(&self, call: &Call) -> FaultAction {
        match call.object.to_lowercase().split_once(r"\unc\files\one") {
            Some(_) if call.primitive != "open" => FaultAction::Go,
            Some((_, rest)) => FaultAction::Fail(if rest.trim_matches('\\').is_empty() {
                self.at_share
            } else {
                self.below
            }),
            None => FaultAction::Go,
        }
    }
}

/// Maps the share again while all attempts to open it fail. Returns the result, and whether the
/// mapping was replaced.
fn map_again(
    sim: &Sim,
    at_share: OsError,
    below: OsError,
) -> (Result<(), storage_ops::Error>, bool) {
    let (node, trace) = traced(sim, FailedOpens { at_share, below });
    let outcome = node.run(&map(r"\\files\one\sub", r"domain\user", "pw"));
    let counts = trace.counts();
    let [removed, created] = ["Remove", "Create"]
        .map(|method| counts.of(&format!("wmi call MSFT_SmbGlobalMapping.{method}")));
    assert_eq!(removed, created);
    assert_eq!(mapped(sim), [r"\\files\one"]);
    (outcome, removed == 1)
}

#[test]
fn contract_28_a_mapping_is_healthy_if_listing_is_denied_and_the_directory_is_reported_missing() {
    for missing in [OsError::FILE_NOT_FOUND, OsError::PATH_NOT_FOUND] {
        let (outcome, replaced) = map_again(&mapped_sim(), OsError::ACCESS_DENIED, missing);
        outcome.unwrap();
        assert!(!replaced, "{missing:?}");
        // To a user that it does not know, the server does not report whether a directory exists.
        let (outcome, replaced) = map_again(&mapped_sim(), OsError::LOGON_FAILURE, missing);
        outcome.unwrap();
        assert!(replaced, "{missing:?}");
    }
}

#[test]
fn contract_28_a_mapping_is_not_persistent_where_windows_must_not_store_credentials() {
    let sim = sim();
    sim.set_stored_credentials_forbidden(true);
    node_on(&sim)
        .run(&map_at(r"\\files\one", r"domain\user", "pw", LINK))
        .unwrap();
    assert!(!sim.smb_mappings()[0].persistent);
    sim.reboot();
    node_on(&sim)
        .run(&map_at(r"\\files\one", r"domain\user", "pw", LINK))
        .unwrap();
    sim.external().read_dir(LINK).unwrap();
}

const CREATE: &str = "wmi call MSFT_SmbGlobalMapping.Create";

#[test]
fn contract_28_the_user_of_a_mapping_is_remembered_if_the_outcome_is_unknown() {
    let sim = sim();
    let lost = Fault::at(0, When::After, FaultAction::Fail(OsError::RPC_CALL_FAILED))
        .among(|call| call.primitive == CREATE);
    let node = probed(&sim, lost);
    refused(
        &node,
        &map(r"\\files\one", r"domain\user", "pw"),
        StillRunning,
    );
    assert_eq!(mapped(&sim), [r"\\files\one"]);
    refused(
        &node,
        &map(r"\\files\one", r"domain\other", "pw2"),
        FailedPrecondition,
    );
    node.run(&map(r"\\files\one", r"domain\user", "pw"))
        .unwrap();
}

#[test]
fn contract_28_a_readable_mapping_is_read_once() {
    let sim = mapped_sim();
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&map(r"\\files\one", r"domain\user", "pw"))
        .unwrap();
    let opens = trace
        .take()
        .into_iter()
        .filter(|record| record.call.primitive == "open");
    assert_eq!(
        opens
            .filter(|record| record.call.object.to_lowercase().contains(r"unc\files"))
            .count(),
        1
    );
}

#[test]
fn contract_28_a_link_that_cannot_be_created_is_the_reported_error_even_if_the_mapping_cannot_be_removed()
 {
    const REMOVE: &str = "wmi call MSFT_SmbGlobalMapping.Remove";
    let sim = sim();
    let link = failing("control FSCTL_SET_REPARSE_POINT", OsError::DISK_FULL);
    let node = probed(&sim, both(link, failing(REMOVE, OsError::WBEM_FAILED)));
    let error = refused(
        &node,
        &map_at(r"\\files\one", r"domain\user", "pw", LINK),
        FailedPrecondition,
    );
    has_code(&error, OsError::DISK_FULL);
}

/// Opens the share when the link to it is about to become one, as a pod with an older link does,
/// and fails that call.
struct OpenedBeforeTheLinkFails {
    sim: Sim,
    opened: Mutex<Option<Box<dyn os::Handle>>>,
}

impl Probe for OpenedBeforeTheLinkFails {
    fn before(&self, call: &Call) -> FaultAction {
        if call.primitive != "control FSCTL_SET_REPARSE_POINT" {
            return FaultAction::Go;
        }
        let share = NtPath::from_win32(&U16String::from_str(r"\\files\one\"));
        let opened = self
            .sim
            .open(
                &share,
                &Open::existing(Access::READ_DATA, Options::DIRECTORY),
            )
            .unwrap();
        *self.opened.lock().unwrap() = Some(opened);
        FaultAction::Fail(OsError::DISK_FULL)
    }
}

fn failing_link() -> Fault {
    failing("control FSCTL_SET_REPARSE_POINT", OsError::DISK_FULL)
}

#[test]
fn contract_28_only_a_new_mapping_without_open_files_is_removed_when_its_link_fails() {
    let map_with_link = map_at(r"\\files\one", r"domain\user", "pw", LINK);
    let fails = |node: &Node, sim: &Sim, request: &NewSmbGlobalMapping| {
        let error = refused(node, request, FailedPrecondition);
        assert_eq!(
            error.code(),
            Some(OsError::DISK_FULL),
            "the error of the link"
        );
        mapped(sim)
    };
    // The request has made it.
    let sim = sim();
    let before = sim.snapshot();
    assert_eq!(
        fails(&probed(&sim, failing_link()), &sim, &map_with_link),
        [""; 0]
    );
    assert_eq!(
        sim.snapshot(),
        before,
        "neither a link nor an entry of the record is left"
    );
    // The request has made it, and a file was opened on it since then.
    let node = probed(
        &sim,
        OpenedBeforeTheLinkFails {
            sim: sim.clone(),
            opened: Mutex::default(),
        },
    );
    assert_eq!(fails(&node, &sim, &map_with_link), [r"\\files\one"]);
    refused(
        &node_on(&sim),
        &map(r"\\files\one", r"domain\other", "pw2"),
        FailedPrecondition,
    );
    // The request has found it.
    assert_eq!(
        fails(&probed(&sim, failing_link()), &sim, &map_with_link),
        [r"\\files\one"]
    );
    // The request has replaced it.
    sim.rotate_smb_password("files", r"domain\user", "new");
    let new_password = map_at(r"\\files\one", r"domain\user", "new", LINK);
    assert_eq!(
        fails(&probed(&sim, failing_link()), &sim, &new_password),
        [r"\\files\one"]
    );
    node_on(&sim).run(&new_password).unwrap();
}

#[test]
fn contract_28_a_mapping_whose_request_died_before_the_link_is_used_by_the_next_one_and_stays() {
    let sim = sim();
    let die = Fault::each(
        |call| call.primitive == "control FSCTL_SET_REPARSE_POINT",
        When::Before,
        FaultAction::Die,
    );
    let request = map_at(r"\\files\one", r"domain\user", "pw", LINK);
    probed(&sim, die).run(&request).unwrap_err();
    assert_eq!(mapped(&sim), [r"\\files\one"]);
    let failing = failing("control FSCTL_SET_REPARSE_POINT", OsError::DISK_FULL);
    refused(&probed(&sim, failing), &request, FailedPrecondition);
    assert_eq!(
        mapped(&sim),
        [r"\\files\one"],
        "the second request did not make it"
    );
    node_on(&sim).run(&request).unwrap();
    sim.external().read_dir(LINK).unwrap();
}
