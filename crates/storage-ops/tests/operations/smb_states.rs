//! Tests of the states of an SMB mapping: what a request to map the share does in each.
//! docs/appendix-security.md names them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use faults::{Call, FaultAction, Probe, Probed, Trace};
use os::{Access, Handle, NtPath, Open, Options, Os as _, OsError, U16Str, U16String};
use os_sim::Sim;
use storage_ops::{
    Config, Error,
    ErrorKind::{FailedPrecondition, Internal, PermissionDenied, StillRunning},
    Node, RemoveSmbGlobalMapping, SecretText, SmbUser, UncPath,
};

use crate::setup::{
    NoProbe, both, failing, failing_once, has_code, map, mapped, node_on, probed, refused,
    refused_saying, says, traced,
};

const USER: &str = r"domain\user";
const ONE: &str = r"\\files\one";
const TWO: &str = r"\\files\two";
/// Codes that do not say that a mapping or its credentials are no longer usable: of the network, of
/// servers that are down or overloaded, of the node, and unknown.
const OUTAGES: [u32; 17] = [
    51, 53, 55, 59, 64, 71, 121, 1225, 1231, 1232, 1236, 1256, 1311, 1130, 1450, 31, 4711,
];
const KEY: &str = r"SOFTWARE\csi-proxy\SmbMappingsSinceStartOfWindows";

pub(crate) fn sim() -> Sim {
    os_sim::node()
        .smb_server("files")
        .share("one")
        .share("two")
        .user(USER, "pw")
        .user("other", "pw2")
        .build()
}

pub(crate) fn unmap(remote: &str) -> RemoveSmbGlobalMapping {
    RemoveSmbGlobalMapping {
        remote: UncPath::parse(remote).unwrap(),
    }
}

/// Returns a node on which `ONE` is mapped.
pub(crate) fn mapped_sim() -> Sim {
    let sim = sim();
    node_on(&sim).run(&map(ONE, USER, "pw")).unwrap();
    sim
}

/// Restarts Windows, and then the daemon.
fn restart(sim: &Sim) {
    sim.reboot();
    drop(Node::start(sim.process(), Config::default()).unwrap());
}

/// Returns a node on which `ONE` was mapped before Windows started.
fn restarted_sim() -> Sim {
    let sim = mapped_sim();
    restart(&sim);
    sim
}

/// Opens the share as another program does.
fn open(sim: &Sim, remote: &str) -> Box<dyn Handle> {
    let path = NtPath::from_win32(&U16String::from_str(&format!(r"{remote}\")));
    sim.open(
        &path,
        &Open::existing(Access::READ_DATA, Options::DIRECTORY),
    )
    .expect("the share opens")
}

/// Returns what the record has for `share`.
fn recorded(sim: &Sim, share: &str) -> Option<String> {
    let wide = U16String::from_str;
    let (key, share): (&U16Str, &U16Str) = (&wide(KEY), &wide(share));
    sim.registry_text(key, share)
        .ok()
        .map(|text| text.to_string_lossy())
}

/// Fails the opens of paths on the server `files` with a code: those whose number is in a range.
struct FailingOpens {
    code: OsError,
    numbers: Range<usize>,
    made: AtomicUsize,
}

impl FailingOpens {
    fn all(code: u32) -> Self {
        Self::first(usize::MAX, code)
    }

    fn first(count: usize, code: u32) -> Self {
        Self::numbered(0..count, code)
    }

    fn numbered(numbers: Range<usize>, code: u32) -> Self {
        Self {
            code: OsError(code),
            numbers,
            made: AtomicUsize::new(0),
        }
    }
}

impl Probe for FailingOpens {
    fn before(&self, call: &Call) -> FaultAction {
        let is_open = call.primitive == "open" && call.object.to_lowercase().contains(r"unc\files");
        if is_open
            && self
                .numbers
                .contains(&self.made.fetch_add(1, Ordering::Relaxed))
        {
            FaultAction::Fail(self.code)
        } else {
            FaultAction::Go
        }
    }
}

/// Maps `ONE` again while all opens fail with `code`. Returns the result, and how often Windows
/// removed and made a mapping.
fn map_unreadable(sim: &Sim, code: u32) -> (Result<(), Error>, [u64; 2]) {
    let (node, trace) = traced(sim, FailingOpens::all(code));
    let outcome = node.run(&map(ONE, USER, "pw"));
    let counts = trace.counts();
    (
        outcome,
        [
            counts.of("wmi call MSFT_SmbGlobalMapping.Remove"),
            counts.of("wmi call MSFT_SmbGlobalMapping.Create"),
        ],
    )
}

fn kept(sim: &Sim, code: u32) -> Error {
    let (outcome, calls) = map_unreadable(sim, code);
    let error = outcome.expect_err("the mapping is kept");
    assert_eq!(
        (error.kind(), error.code(), calls),
        (FailedPrecondition, Some(OsError(code)), [0, 0]),
        "{error}"
    );
    assert_eq!(mapped(sim), [ONE]);
    error
}

fn replaced(sim: &Sim, code: u32) {
    let (outcome, calls) = map_unreadable(sim, code);
    outcome.unwrap_or_else(|error| panic!("{code}: {error}"));
    assert_eq!(calls, [1, 1], "{code}");
    assert_eq!(
        (mapped(sim), recorded(sim, ONE).as_deref()),
        (vec![ONE.to_owned()], Some(r"made for domain\user"))
    );
}

#[test]
fn a_share_that_is_not_mapped_is_mapped_and_recorded_without_the_password() {
    let sim = mapped_sim();
    assert_eq!(mapped(&sim), [ONE]);
    assert_eq!(
        recorded(&sim, ONE).as_deref(),
        Some(r"made for domain\user")
    );
    refused(&node_on(&sim), &map(TWO, USER, "wrong"), PermissionDenied);
    assert_eq!(recorded(&sim, TWO), None, "nothing was mapped");
    node_on(&sim).run(&unmap(ONE)).unwrap();
    assert_eq!((mapped(&sim), recorded(&sim, ONE)), (vec![], None));
}

#[test]
fn a_readable_mapping_is_used_and_counts_as_made_since_the_start_of_windows() {
    let sim = restarted_sim();
    let node = node_on(&sim);
    for _ in 0..2 {
        node.run(&map(ONE, USER, "pw")).unwrap();
        assert_eq!(
            (mapped(&sim), recorded(&sim, ONE).as_deref()),
            (vec![ONE.to_owned()], Some("found"))
        );
    }
    kept(&sim, 5);
}

#[test]
fn a_share_whose_root_may_not_be_listed_is_readable_by_its_attributes() {
    let sim = os_sim::node()
        .smb_server("files")
        .share("one")
        .unlistable()
        .user(USER, "pw")
        .build();
    for _ in 0..2 {
        node_on(&sim).run(&map(ONE, USER, "pw")).unwrap();
    }
    refused(
        &node_on(&sim),
        &map(ONE, r"domain\other", "pw2"),
        FailedPrecondition,
    );
    restart(&sim);
    let (node, trace) = traced(&sim, NoProbe);
    node.run(&map(ONE, USER, "pw")).unwrap();
    assert_eq!(
        (
            trace.counts().of("wmi call MSFT_SmbGlobalMapping.Remove"),
            recorded(&sim, ONE).as_deref()
        ),
        (0, Some("found"))
    );
    // With an old password, the attributes cannot be read either.
    sim.rotate_smb_password("files", USER, "new");
    node.run(&map(ONE, USER, "new")).unwrap();
    assert_eq!(
        trace.counts().of("wmi call MSFT_SmbGlobalMapping.Remove"),
        1
    );
}

#[test]
fn another_password_for_a_readable_mapping_is_counted_and_refused_only_with_a_flag() {
    let sim = sim();
    for (refuse, other) in [(false, "wrong"), (true, "wrong"), (true, "")] {
        let node = Node::new(
            sim.process(),
            Config::default().with(|c| c.refuse_other_smb_passwords = refuse),
        );
        node.run(&map(ONE, USER, "pw")).unwrap();
        node.run(&map(ONE, r"DOMAIN\User", "pw")).unwrap();
        assert_eq!(node.smb_password_differences(), 0);
        if refuse {
            refused_saying(
                &node,
                &map(ONE, USER, other),
                FailedPrecondition,
                "-refuse-other-smb-passwords",
            );
        } else {
            node.run(&map(ONE, USER, other)).unwrap();
        }
        assert_eq!(
            (node.smb_password_differences(), mapped(&sim)),
            (1, vec![ONE.to_owned()])
        );
        node.run(&unmap(ONE)).unwrap();
    }
}

#[test]
fn a_new_password_counts_once_its_mapping_was_made_again() {
    let sim = sim();
    let node = Node::new(
        sim.process(),
        Config::default().with(|c| c.refuse_other_smb_passwords = true),
    );
    node.run(&map(ONE, USER, "pw")).unwrap();
    sim.rotate_smb_password("files", USER, "new");
    for _ in 0..2 {
        node.run(&map(ONE, USER, "new")).unwrap();
    }
    assert_eq!(node.smb_password_differences(), 0);
}

#[test]
fn another_user_of_a_readable_mapping_is_refused_until_windows_restarts() {
    let sim = mapped_sim();
    let other = map(ONE, r"domain\other", "pw2");
    for user in [
        &other,
        &map(r"\\files\one\x", r"domain\other", "pw2"),
        &map(ONE, "", ""),
    ] {
        refused_saying(
            &node_on(&sim),
            user,
            FailedPrecondition,
            "one user per share",
        );
    }
    let shared = Node::new(
        sim.process(),
        Config::default().with(|c| c.share_smb_mappings = true),
    );
    shared.run(&other).unwrap();
    assert_eq!(
        shared.smb_password_differences(),
        0,
        "the password of another user"
    );
    refused(&node_on(&sim), &other, FailedPrecondition);
    restart(&sim);
    node_on(&sim).run(&other).unwrap();
}

#[test]
fn a_mapping_whose_credentials_are_refused_is_replaced_even_if_files_are_open_on_it() {
    for code in [86, 1326, 1327, 1328, 1329, 1330, 1331, 1907, 1909] {
        let sim = mapped_sim();
        let _file = open(&sim, ONE);
        replaced(&sim, code);
    }
}

#[test]
fn a_mapping_from_before_the_start_that_is_no_longer_usable_is_replaced_unless_files_are_open_on_it()
 {
    for code in [5, 67, 1312] {
        replaced(&restarted_sim(), code);
    }
    let sim = restarted_sim();
    let file = open(&sim, ONE);
    let (outcome, calls) = map_unreadable(&sim, 5);
    let error = outcome.unwrap_err();
    assert_eq!(
        (error.kind(), error.code(), calls),
        (FailedPrecondition, Some(OsError::OPEN_FILES), [1, 0])
    );
    assert!(
        error.to_string().contains("(5)") && error.to_string().contains("it stays: "),
        "{error}"
    );
    assert_eq!(mapped(&sim), [ONE]);
    drop(file);
    replaced(&sim, 5);
}

#[test]
fn an_outage_or_an_unknown_error_keeps_a_mapping_from_before_the_start() {
    for code in OUTAGES {
        kept(&restarted_sim(), code);
    }
    // A single attempt fails with a code of an outage, the others with one for which the mapping
    // would be replaced.
    for (first, others, named) in [(53, 5, 5), (53, 67, 67), (4711, 1326, 4711)] {
        let sim = restarted_sim();
        let probes = both(FailingOpens::first(1, first), FailingOpens::all(others));
        let error = refused(
            &probed(&sim, probes),
            &map(ONE, USER, "pw"),
            FailedPrecondition,
        );
        assert_eq!(
            (error.code(), mapped(&sim)),
            (Some(OsError(named)), vec![ONE.to_owned()])
        );
    }
}

#[test]
fn without_a_complete_record_a_mapping_counts_as_made_since_the_start_of_windows() {
    // No record, as after a request to a program that has none.
    let sim = mapped_sim();
    sim.reboot();
    kept(&sim, 5);
    // A record that the daemon began too late: another program may have made the mapping before.
    sim.advance(Duration::from_mins(11));
    drop(Node::start(sim.process(), Config::default()).unwrap());
    kept(&sim, 5);
    node_on(&sim).run(&map(TWO, USER, "pw")).unwrap_err();
    kept(&sim, 5);
}

#[test]
fn a_record_that_was_begun_in_time_stays_complete_when_the_daemon_restarts_later() {
    let sim = restarted_sim();
    sim.advance(Duration::from_hours(100));
    drop(Node::start(sim.process(), Config::default()).unwrap());
    replaced(&sim, 5);
}

#[test]
fn a_share_that_is_missing_only_during_a_failover_keeps_its_mapping() {
    let sim = mapped_sim();
    for opens in [1, 2, 3, 6, 12] {
        let (node, trace) = traced(&sim, FailingOpens::first(opens, 67));
        node.run(&map(ONE, USER, "pw")).unwrap();
        assert_eq!(
            trace.counts().of("wmi call MSFT_SmbGlobalMapping.Remove"),
            0,
            "{opens}"
        );
    }
    // The server answers with another code afterwards.
    let probes = both(FailingOpens::first(8, 67), FailingOpens::all(1326));
    let error = refused(
        &probed(&sim, probes),
        &map(ONE, USER, "pw"),
        FailedPrecondition,
    );
    assert_eq!(
        (error.code(), mapped(&sim)),
        (Some(OsError::LOGON_FAILURE), vec![ONE.to_owned()])
    );
}

#[test]
fn a_share_that_stays_missing_is_mapped_again_unless_files_are_open_on_it() {
    let sim = mapped_sim();
    let before = sim.now();
    let file = open(&sim, ONE);
    let error = map_unreadable(&sim, 67).0.unwrap_err();
    assert!(
        sim.now() - before >= Duration::from_secs(20),
        "the server is asked for some time"
    );
    assert_eq!(
        (error.kind(), error.code()),
        (FailedPrecondition, Some(OsError::OPEN_FILES))
    );
    assert!(
        error.to_string().contains("(67)") && mapped(&sim) == [ONE],
        "{error}"
    );
    drop(file);
    replaced(&sim, 67);
}

#[test]
fn a_mapping_that_cannot_be_read_is_kept() {
    for code in OUTAGES.into_iter().chain([5, 1312]) {
        let error = kept(&mapped_sim(), code);
        says(&error, r"\\files\one is mapped, but cannot be read: ");
    }
}

#[test]
fn an_outage_of_the_server_of_a_mapping_costs_one_time_out() {
    let sim = mapped_sim();
    sim.set_smb_reachable("files", false);
    // The first attempts may fail at once, because of the stale session.
    for at_once in 0..=2 {
        let (node, begin) = (probed(&sim, FailingOpens::first(at_once, 64)), sim.now());
        refused(&node, &map(ONE, USER, "pw"), FailedPrecondition);
        let end = (sim.now(), mapped(&sim));
        assert_eq!(
            end,
            (begin + Duration::from_secs(30), vec![ONE.to_owned()]),
            "{at_once}"
        );
    }
    sim.set_smb_reachable("files", true);
    node_on(&sim).run(&map(ONE, USER, "pw")).unwrap();
}

#[test]
fn a_conflict_is_resolved_by_removing_unreadable_mappings_from_before_the_start() {
    let sim = restarted_sim();
    // The mapping of one is not readable any more, and two is mapped for the new user.
    sim.rotate_smb_password("files", USER, "new");
    node_on(&sim).run(&map(TWO, USER, "new")).unwrap();
    assert_eq!(mapped(&sim), [TWO]);
    node_on(&sim).run(&map(ONE, USER, "new")).unwrap();
    assert_eq!(sim.smb_mappings().len(), 2);
}

#[test]
fn a_conflict_leaves_mappings_that_can_be_read_or_are_used_or_locked() {
    let second = map(TWO, USER, "pw");
    let conflicts = |sim: &Sim, node: &Node, text: &str| {
        let error = refused(node, &second, FailedPrecondition);
        assert_eq!(
            (error.code(), mapped(sim)),
            (
                Some(OsError::SESSION_CREDENTIAL_CONFLICT),
                vec![ONE.to_owned()]
            )
        );
        says(&error, text);
    };
    // It can be read.
    let sim = restarted_sim();
    conflicts(
        &sim,
        &node_on(&sim),
        r"remove those that no pod uses (\\files\one)",
    );
    node_on(&sim).run(&unmap(ONE)).unwrap();
    node_on(&sim).run(&second).unwrap();
    let sim = restarted_sim();
    // It cannot be read, and the reason is an outage or unknown.
    for code in OUTAGES {
        conflicts(
            &sim,
            &probed(&sim, FailingOpens::all(code)),
            r"(\\files\one: unreadable now: ",
        );
    }
    // It was used since Windows started.
    node_on(&sim).run(&map(ONE, USER, "pw")).unwrap();
    conflicts(&sim, &probed(&sim, FailingOpens::all(5)), r"(\\files\one)");
    // Files are open on it.
    let sim = restarted_sim();
    let _file = open(&sim, ONE);
    conflicts(
        &sim,
        &probed(&sim, FailingOpens::all(5)),
        r"(\\files\one: Remove failed: files are open",
    );
    // It was made since Windows started.
    let sim = mapped_sim();
    let error = refused(
        &probed(&sim, FailingOpens::all(5)),
        &map(TWO, r"domain\other", "pw2"),
        FailedPrecondition,
    );
    assert!(
        error.to_string().contains(r"(\\files\one)") && mapped(&sim) == [ONE],
        "{error}"
    );
}

/// Returns a node on which many shares were mapped before Windows started.
fn many_left(count: usize) -> Sim {
    let mut builder = os_sim::node().smb_server("files").user(USER, "pw");
    for number in 0..=count {
        builder = builder.share(&format!("pvc-{number:03}"));
    }
    let sim = builder.build();
    let node = node_on(&sim);
    for number in 0..count {
        node.run(&map(&format!(r"\\files\pvc-{number:03}"), USER, "pw"))
            .unwrap();
    }
    restart(&sim);
    sim
}

/// Returns how many shares a trace has opened.
fn shares_opened(trace: &Trace) -> usize {
    let records = trace.take();
    let opened: BTreeSet<_> = records
        .iter()
        .filter(|record| record.call.primitive == "open" && record.call.object.contains("pvc-"))
        .map(|record| record.call.object.clone())
        .collect();
    opened.len()
}

#[test]
fn a_conflict_with_many_mappings_that_can_be_read_reads_one_of_them() {
    let sim = many_left(40);
    let (node, trace) = traced(&sim, NoProbe);
    let error = refused(
        &node,
        &map(r"\\files\pvc-040", USER, "pw"),
        FailedPrecondition,
    );
    let named = r"(\\files\pvc-000, \\files\pvc-001)";
    says(&error, named);
    assert_eq!((shares_opened(&trace), mapped(&sim).len()), (1, 40));
}

/// A probe in which no open of a share ends before eight have begun.
#[derive(Default)]
struct Meeting {
    begun: Mutex<usize>,
    changed: Condvar,
}

impl Probe for Meeting {
    fn before(&self, call: &Call) -> FaultAction {
        if call.primitive != "open" || !call.object.contains("pvc-") {
            return FaultAction::Go;
        }
        // The first share is read alone.
        if !call.object.contains("pvc-000") {
            let mut begun = self.begun.lock().unwrap();
            *begun += 1;
            self.changed.notify_all();
            let limit = Duration::from_secs(30);
            let waited = self
                .changed
                .wait_timeout_while(begun, limit, |begun| *begun < 8)
                .unwrap();
            assert!(
                !waited.1.timed_out(),
                "the shares are read one after the other"
            );
        }
        FaultAction::Fail(OsError::LOGON_FAILURE)
    }
}

#[test]
fn mappings_that_cannot_be_read_are_read_side_by_side_and_removed() {
    let sim = many_left(25);
    let node = probed(&sim, Meeting::default());
    node.run(&map(r"\\files\pvc-025", USER, "pw")).unwrap();
    assert_eq!(mapped(&sim), [r"\\files\pvc-025"]);
}

#[test]
fn a_mapping_is_not_used_or_removed_if_the_record_cannot_be_read() {
    let sim = restarted_sim();
    for opens in [None, Some(FailingOpens::all(5))] {
        let mut probes: Vec<Arc<dyn Probe>> =
            vec![Arc::new(failing("registry_text", OsError(4711)))];
        probes.extend(opens.map(|opens| Arc::new(opens) as Arc<dyn Probe>));
        let error = refused(&probed(&sim, probes), &map(ONE, USER, "pw"), Internal);
        assert_eq!(
            (error.code(), mapped(&sim)),
            (Some(OsError(4711)), vec![ONE.to_owned()])
        );
    }
}

#[test]
fn a_found_mapping_counts_as_used_even_if_that_cannot_be_recorded() {
    let sim = restarted_sim();
    let opens = FailingOpens::numbered(1..usize::MAX, OsError::ACCESS_DENIED.0);
    let node = probed(
        &sim,
        both(failing("set_volatile_text", OsError(4711)), opens),
    );
    node.run(&map(ONE, USER, "pw")).unwrap();
    let error = refused(&node, &map(ONE, USER, "pw"), FailedPrecondition);
    assert_eq!(
        (error.code(), mapped(&sim)),
        (Some(OsError::ACCESS_DENIED), vec![ONE.to_owned()])
    );
}

#[test]
fn a_mapping_is_made_and_used_even_if_the_record_cannot_be_written() {
    let sim = sim();
    let primitives = [
        "registry_text",
        "set_volatile_text",
        "delete_registry_value",
    ];
    let os = Arc::new(Probed::new(
        sim.process(),
        primitives
            .map(|primitive| Arc::new(failing(primitive, OsError::ACCESS_DENIED)) as Arc<dyn Probe>)
            .to_vec(),
    ));
    let node = Node::start(os, Config::default()).unwrap();
    node.run(&map(ONE, USER, "pw")).unwrap();
    refused(&node, &map(ONE, r"domain\other", "pw2"), FailedPrecondition);
    node.run(&unmap(ONE)).unwrap();
    assert_eq!(sim.smb_mappings(), []);
}

#[test]
fn a_removal_that_still_runs_keeps_the_lock_of_the_other_share() {
    let sim = restarted_sim();
    let lost = failing_once(
        "wmi call MSFT_SmbGlobalMapping.Remove",
        OsError::RPC_CALL_FAILED,
    );
    let node = probed(&sim, both(lost, FailingOpens::all(5)));
    refused(&node, &map(TWO, USER, "pw"), StillRunning);
    assert_eq!(
        (mapped(&sim), node.locked_objects()),
        (vec![ONE.to_owned()], 0)
    );
    node.run(&map(TWO, USER, "pw")).unwrap();
    assert_eq!(mapped(&sim), [TWO]);
}

#[test]
fn the_node_itself_is_refused_without_a_user_and_allowed_with_one() {
    let own = [
        "localhost",
        "a.localhost",
        "127.0.0.1",
        "127.0.0.1@80",
        "SIM-NODE",
        "Sim-Node.example.test",
        "10.240.0.4",
        "fe80--d4s7.IPv6-Literal.net",
        "\u{ff4c}ocalhost",
    ];
    for host in own {
        let sim = os_sim::node()
            .smb_server(host)
            .share("c$")
            .user(USER, "pw")
            .build();
        let remote = format!(r"\\{host}\C$\dir");
        refused_saying(
            &node_on(&sim),
            &map(&remote, "", ""),
            PermissionDenied,
            "rights of LocalSystem",
        );
        assert_eq!(sim.smb_mappings(), []);
        node_on(&sim).run(&map(&remote, USER, "pw")).unwrap();
    }
    for host in [
        "files",
        "sim-node2",
        "10.240.0.5",
        "fe80--d5.ipv6-literal.net",
        "a.sim-node.test",
    ] {
        let sim = os_sim::node().smb_server(host).share("public").build();
        // The server refuses a client without credentials; the node does not.
        let error = refused(
            &node_on(&sim),
            &map(&format!(r"\\{host}\public"), "", ""),
            PermissionDenied,
        );
        has_code(&error, OsError::LOGON_FAILURE);
    }
}

#[test]
fn without_a_user_a_server_has_an_ordinary_name() {
    let odd = [
        "x@localhost",
        "localhost@",
        "localhost@x",
        "files@SSL@x",
        "@80",
        "localhost%",
        "localhost%20",
        "%6cocalhost",
        "127.0.0.1%0",
        "localhost,",
        "localhost$",
        "localhost'",
        "(localhost)",
        "f\u{e9}",
    ];
    for host in odd {
        let sim = os_sim::node().smb_server(host).share("c$").guest().build();
        refused_saying(
            &node_on(&sim),
            &map(&format!(r"\\{host}\C$"), "", ""),
            PermissionDenied,
            "rights of LocalSystem",
        );
        assert_eq!(sim.smb_mappings(), []);
    }
    for host in [
        "files@80",
        "files@SSL",
        "files@ssl@443",
        "a_b-c.d",
        "fe80--d5s4.ipv6-literal.net",
    ] {
        let sim = os_sim::node()
            .smb_server(host)
            .share("public")
            .guest()
            .build();
        node_on(&sim)
            .run(&map(&format!(r"\\{host}\public"), "", ""))
            .unwrap();
    }
}

#[test]
fn a_user_without_a_name_a_nul_character_and_1025_bytes_are_refused() {
    let too_long = "x".repeat(1025);
    for user in [
        " ",
        "\t",
        "\u{a0}",
        "\\",
        ".\\",
        "domain\\",
        "domain\\ ",
        "@",
        "@domain",
        "us\0er",
        &too_long,
    ] {
        texts::seen!(SmbUser::parse(user).unwrap_err().to_string());
    }
    for password in ["p\0w", &too_long] {
        SecretText::parse(password.into(), "the password").unwrap_err();
    }
    map(ONE, &too_long[1..], &too_long[1..]);
}

#[test]
fn a_mapping_without_a_user_is_refused_if_the_names_of_the_node_are_unknown() {
    let sim = sim();
    let node = probed(&sim, failing("wmi query", OsError::WBEM_INVALID_CLASS));
    for host in ["files", "10.0.0.1"] {
        let error = refused(
            &node,
            &map(&format!(r"\\{host}\one"), "", ""),
            FailedPrecondition,
        );
        has_code(&error, OsError::WBEM_INVALID_CLASS);
    }
}
