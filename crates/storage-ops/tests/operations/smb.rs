//! SMB mappings.

use crate::setup::{self, over, path, refused};
use faults::{Call, Fault, FaultAction, Probe, When};
use os::OsError;
use os_sim::Sim;
use storage_ops::{Config, Kind, NewSmbGlobalMapping, Node, RemoveSmbGlobalMapping, Secret, UncPath};

const LINK: &str = r"C:\var\lib\kubelet\plugins\share";

fn sim() -> Sim {
    os_sim::node().smb_server("files").share("one").share("two").user(r"domain\user", "pw").user("other", "pw2").build()
}

fn map(remote: &str, user: &str, password: &str, local: Option<&str>) -> NewSmbGlobalMapping {
    NewSmbGlobalMapping {
        remote: UncPath::parse(remote).unwrap(),
        local: local.map(path),
        username: user.into(),
        password: Secret::new(password.into()),
    }
}

fn unmap(remote: &str) -> RemoveSmbGlobalMapping {
    RemoveSmbGlobalMapping { remote: UncPath::parse(remote).unwrap() }
}

#[test]
fn contract_28_a_mapping_is_made_once_for_the_share_and_linked_as_go_reads_it() {
    let sim = sim();
    let node = over(&sim);
    for _ in 0..2 {
        node.run(&map("//Files/One/", r"domain\user", "pw", Some(LINK))).unwrap();
    }
    assert_eq!(setup::mapped(&sim), [r"\\files\one"]);
    let text = sim.external().read_link(LINK).unwrap();
    assert_eq!(text.trim_end_matches('\\').to_lowercase(), r"\\files\one");
    sim.external().write(&format!(r"{LINK}\f"), b"through").unwrap();
    node.run(&map(r"\\files\one\sub", r"DOMAIN\User", "pw", None)).unwrap();
    assert_eq!(sim.smb_mappings().len(), 1, "a path below the share shares its mapping");
}

#[test]
fn contract_28_wrong_credentials_and_unknown_shares_are_errors_with_their_codes() {
    let sim = sim();
    let (node, before) = (over(&sim), sim.snapshot());
    refused(&node, &map(r"\\files\one", r"domain\user", "wrong", Some(LINK)), Kind::PermissionDenied);
    refused(&node, &map(r"\\files\none", r"domain\user", "pw", None), Kind::NotFound);
    refused(&node, &map(r"\\nobody\one", r"domain\user", "pw", None), Kind::NotFound);
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn contract_28_another_user_of_a_readable_mapping_is_refused_and_told_what_to_do() {
    let sim = sim();
    let node = over(&sim);
    node.run(&map(r"\\files\one", r"domain\user", "pw", None)).unwrap();
    let error = refused(&node, &map(r"\\files\one\x", "other", "pw2", None), Kind::FailedPrecondition);
    assert!(error.to_string().contains("one user per share"), "{error}");
    let shared = Node::new(sim.process(), Config { share_smb_mappings: true, ..Config::default() });
    shared.run(&map(r"\\files\one", "other", "pw2", None)).unwrap();
}

#[test]
fn contract_28_after_a_restart_the_user_is_unknown_and_counts_as_the_same() {
    let sim = sim();
    over(&sim).run(&map(r"\\files\one", r"domain\user", "pw", None)).unwrap();
    over(&sim).run(&map(r"\\files\one", "other", "pw2", None)).unwrap();
}

#[test]
fn contract_28_another_user_on_the_same_server_is_explained() {
    let sim = sim();
    let node = over(&sim);
    node.run(&map(r"\\files\one", r"domain\user", "pw", None)).unwrap();
    let error = refused(&node, &map(r"\\files\two", "other", "pw2", None), Kind::FailedPrecondition);
    assert!(error.to_string().contains("one user per server"), "{error}");
    assert_eq!(error.code(), Some(os::OsError::SESSION_CREDENTIAL_CONFLICT));
}

#[test]
fn contract_28_a_mapping_that_cannot_be_read_is_made_anew_with_the_new_password() {
    let sim = sim();
    let node = over(&sim);
    node.run(&map(r"\\files\one", r"domain\user", "pw", Some(LINK))).unwrap();
    sim.rotate_smb_password("files", r"domain\user", "new");
    assert!(sim.external().read_dir(LINK).is_err());
    node.run(&map(r"\\files\one", r"domain\user", "new", Some(LINK))).unwrap();
    sim.external().read_dir(LINK).unwrap();
    assert_eq!(sim.smb_mappings().len(), 1);
}

#[test]
fn contract_28_a_mapping_is_repaired_after_a_reboot() {
    let sim = sim();
    over(&sim).run(&map(r"\\files\one", r"domain\user", "pw", Some(LINK))).unwrap();
    sim.reboot();
    over(&sim).run(&map(r"\\files\one", r"domain\user", "pw", Some(LINK))).unwrap();
    sim.external().read_dir(LINK).unwrap();
}

#[test]
fn contract_28_a_local_path_that_is_taken_or_outside_is_refused_before_a_mapping_is_made() {
    let sim = sim();
    let node = over(&sim);
    refused(&node, &map(r"\\files\one", r"domain\user", "pw", Some(r"C:\elsewhere")), Kind::PermissionDenied);
    refused(&node, &map(r"\\files\one", r"domain\user", "pw", Some(r"\missing\share")), Kind::NotFound);
    assert!(sim.smb_mappings().is_empty());
    sim.external().mkdir(LINK).unwrap();
    refused(&node, &map(r"\\files\one", r"domain\user", "pw", Some(LINK)), Kind::AlreadyExists);
    assert!(sim.smb_mappings().is_empty());
}

#[test]
fn contract_29_a_sub_path_removes_the_mapping_of_its_share_and_none_is_an_error() {
    let sim = sim();
    let node = over(&sim);
    node.run(&map(r"\\files\one", r"domain\user", "pw", None)).unwrap();
    node.run(&unmap(r"\\FILES\one\sub\dir\")).unwrap();
    assert!(sim.smb_mappings().is_empty());
    refused(&node, &unmap(r"\\files\one"), Kind::NotFound);
}

#[test]
fn contract_29_the_password_is_in_no_error_trace_or_dump() {
    let sim = sim();
    let trace = std::sync::Arc::new(faults::Trace::recording());
    let probed = faults::Probed::new(sim.process(), std::sync::Arc::clone(&trace));
    let node = Node::new(std::sync::Arc::new(probed), Config::default());
    let mapping = map(r"\\files\one", r"domain\user", "hunter2hunter2", None);
    let error = refused(&node, &mapping, Kind::PermissionDenied);
    let records = format!("{:?}", trace.take());
    assert!(!records.is_empty());
    for text in
        [error.to_string(), format!("{error:?}"), format!("{mapping:?}"), records, format!("{:?}", sim.snapshot())]
    {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn contract_28_a_mapping_is_not_given_up_for_one_error_of_one_look() {
    let sim = sim();
    over(&sim).run(&map(r"\\files\one", r"domain\user", "pw", None)).unwrap();
    let before = sim.snapshot();
    for nth in 0..3 {
        for code in [os::OsError::IO_DEVICE, os::OsError::BAD_NETPATH, os::OsError::LOGON_FAILURE] {
            let verdict = faults::FaultAction::Fail(code);
            let fault = faults::Fault::at(nth, faults::When::Before, verdict)
                .among(|call| call.object.to_lowercase().contains(r"unc\files\one"));
            let probed = faults::Probed::new(sim.process(), fault);
            let node = Node::new(std::sync::Arc::new(probed), Config::default());
            node.run(&map(r"\\files\one\missing", "other", "pw2", None)).unwrap();
            assert_eq!(sim.snapshot(), before, "{code:?} at {nth}");
        }
    }
}

#[test]
fn contract_28_an_outage_does_not_cost_a_mapping_that_others_use() {
    let sim = sim();
    over(&sim).run(&map(r"\\files\one", r"domain\user", "pw", None)).unwrap();
    let outage = Fault::each(
        |call| call.object.contains("UNC") && !call.is_wmi(),
        When::Before,
        FaultAction::Fail(OsError::BAD_NETPATH),
    );
    let (node, before) = (setup::probed(&sim, outage), sim.snapshot());
    refused(&node, &map(r"\\files\one", r"domain\user", "pw", Some(LINK)), Kind::NotFound);
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn contract_28_a_long_outage_does_not_cost_a_mapping_either() {
    let sim = sim();
    let node = over(&sim);
    node.run(&map(r"\\files\one", r"domain\user", "pw", None)).unwrap();
    sim.set_smb_reachable("files", false);
    // The first look makes Windows show the mapping as disconnected.
    for _ in 0..3 {
        refused(&node, &map(r"\\files\one", r"domain\user", "pw", None), Kind::NotFound);
        assert_eq!(setup::mapped(&sim), [r"\\files\one"]);
    }
    sim.set_smb_reachable("files", true);
    node.run(&map(r"\\files\one", r"domain\user", "pw", None)).unwrap();
}

/// Fails each look through a mapping: `at_share` at the share itself, `below` it.
struct Looks {
    at_share: OsError,
    below: OsError,
}

impl Probe for Looks {
    fn before(&self, call: &Call) -> FaultAction {
        match call.object.to_lowercase().split_once(r"\unc\files\one") {
            Some(_) if call.primitive != "open" => FaultAction::Go,
            Some((_, rest)) => {
                FaultAction::Fail(if rest.trim_matches('\\').is_empty() { self.at_share } else { self.below })
            }
            None => FaultAction::Go,
        }
    }
}

/// What becomes of a mapping for `remote` when all looks through it fail: the outcome, and whether it was made anew.
fn looked(sim: &Sim, at_share: OsError, below: OsError) -> (Result<(), storage_ops::Error>, bool) {
    let (node, trace) = setup::traced(sim, Looks { at_share, below });
    let outcome = node.run(&map(r"\\files\one\sub", r"domain\user", "pw", None));
    let counts = trace.counts();
    let [removed, made] =
        ["Remove", "Create"].map(|method| counts.of(&format!("wmi call MSFT_SmbGlobalMapping.{method}")));
    assert_eq!(removed, made);
    assert_eq!(setup::mapped(sim), [r"\\files\one"]);
    (outcome, removed == 1)
}

fn mapped_before() -> Sim {
    let sim = sim();
    over(&sim).run(&map(r"\\files\one", r"domain\user", "pw", None)).unwrap();
    sim
}

#[test]
fn contract_28_a_mapping_is_kept_while_the_network_or_the_server_is_at_fault() {
    for code in [51, 53, 59, 64, 121, 1231, 1232, 1236].map(OsError) {
        let (outcome, anew) = looked(&mapped_before(), code, code);
        let error = outcome.unwrap_err();
        assert_eq!((error.code(), anew), (Some(code), false));
        assert!(error.to_string().contains(r"\\files\one is mapped: "), "{error}");
    }
}

#[test]
fn contract_28_a_mapping_that_its_server_no_longer_takes_is_made_anew() {
    for code in [OsError::ACCESS_DENIED, OsError::LOGON_FAILURE, OsError::BAD_NET_NAME, OsError::IO_DEVICE] {
        let (outcome, anew) = looked(&mapped_before(), code, code);
        outcome.unwrap();
        assert!(anew, "{code:?}");
    }
}

#[test]
fn contract_28_a_mapping_from_before_a_reboot_is_made_anew_though_nothing_can_be_reached_through_it() {
    let sim = mapped_before();
    sim.reboot();
    let (outcome, anew) = looked(&sim, OsError::BAD_NETPATH, OsError::BAD_NETPATH);
    outcome.unwrap();
    assert!(anew);
}

#[test]
fn contract_28_a_share_that_may_not_be_listed_is_alive_if_its_server_knows_that_the_directory_is_missing() {
    for missing in [OsError::FILE_NOT_FOUND, OsError::PATH_NOT_FOUND] {
        let (outcome, anew) = looked(&mapped_before(), OsError::ACCESS_DENIED, missing);
        outcome.unwrap();
        assert!(!anew, "{missing:?}");
        // Whoever is not known to the server any more is told nothing.
        let (outcome, anew) = looked(&mapped_before(), OsError::LOGON_FAILURE, missing);
        outcome.unwrap();
        assert!(anew, "{missing:?}");
    }
}

#[test]
fn a_zero_character_in_the_user_or_the_password_is_refused_before_anything_is_asked() {
    let sim = sim();
    for (user, password) in [("us\0er", "pw"), ("user", "p\0w")] {
        let (node, trace) = setup::traced(&sim, setup::Calm);
        refused(&node, &map(r"\\files\one", user, password, None), Kind::InvalidArgument);
        assert_eq!(trace.take().len(), 0);
    }
}

const CREATE: &str = "wmi call MSFT_SmbGlobalMapping.Create";

#[test]
fn contract_28_whose_mapping_it_is_stays_known_where_nobody_knows_whether_it_was_made() {
    let sim = sim();
    let lost =
        Fault::at(0, When::After, FaultAction::Fail(OsError::RPC_CALL_FAILED)).among(|call| call.primitive == CREATE);
    let node = setup::probed(&sim, lost);
    refused(&node, &map(r"\\files\one", r"domain\user", "pw", None), Kind::StillRunning);
    assert_eq!(setup::mapped(&sim), [r"\\files\one"]);
    refused(&node, &map(r"\\files\one", "other", "pw2", None), Kind::FailedPrecondition);
    node.run(&map(r"\\files\one", r"domain\user", "pw", None)).unwrap();
}

#[test]
fn contract_28_whose_mapping_was_not_made_is_forgotten_and_a_conflict_explained_whichever_way_it_is_told() {
    let sim = sim();
    let conflict = FaultAction::Fail(OsError::SESSION_CREDENTIAL_CONFLICT);
    let node = setup::probed(&sim, Fault::at(0, When::Before, conflict).among(|call| call.primitive == CREATE));
    let error = refused(&node, &map(r"\\files\one", r"domain\user", "pw", None), Kind::FailedPrecondition);
    assert!(error.to_string().contains("one user per server"), "{error}");
    // Somebody else, an administrator, maps it for another user.
    over(&sim).run(&map(r"\\files\one", "other", "pw2", None)).unwrap();
    node.run(&map(r"\\files\one", "other", "pw2", None)).unwrap();
}

#[test]
fn contract_09a_a_link_above_the_local_path_is_refused() {
    let sim = sim();
    sim.external().symlink(r"C:\var\lib\kubelet\pods\l", r"C:\Windows").unwrap();
    let (node, before) = (over(&sim), sim.snapshot());
    let mapping = map(r"\\files\one", r"domain\user", "pw", Some(r"\pods\l\share"));
    refused(&node, &mapping, Kind::FailedPrecondition);
    assert_eq!(sim.snapshot(), before);
}
