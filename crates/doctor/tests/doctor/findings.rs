//! A healthy node has no findings, and each defect makes its own.

use doctor::{Finding, State};
use faults::Layer;
use os::{Handle, Instance, NtPath, Open, Os, OsError, OsResult, U16Str, U16String, Value};
use storage_ops::{
    AddTargetPortal, Authentication, Config, ConnectTarget, DiscoverTargetPortal, DiskNumber,
    HostPath, Iqn, Node, SecretText, SetDiskState, TargetPortal,
};

use crate::setup::{MOUNT, PROGRAM, Patient, file_access};
use crate::simulated_system::pipe_access;

pub(crate) const USERS: &str = "S-1-5-32-545";
pub(crate) const SOMEBODY: &str = "S-1-5-21-1-2-3-1001";

#[track_caller]
fn assert_finding(finding: &Finding, state: State, check: &str, words: &[&str]) {
    assert_eq!(
        (finding.state, finding.check),
        (state, check),
        "{finding:#?}"
    );
    for word in words {
        assert!(
            finding.seen.contains(word),
            "{word:?} is not in {finding:#?}"
        );
    }
    assert!(!finding.advice.is_empty(), "{finding:#?}");
}

pub(crate) fn connect_iscsi(patient: &Patient) {
    let node = Node::new(patient.os(), Config::default());
    let portal = TargetPortal {
        address: "10.0.0.10".into(),
        port: 3260,
    };
    let iqn = Iqn::parse("iqn.2026-01.example:target").expect("an IQN");
    node.run(&AddTargetPortal {
        portal: portal.clone(),
    })
    .expect("a portal");
    node.run(&DiscoverTargetPortal {
        portal: portal.clone(),
    })
    .expect("targets");
    node.run(&ConnectTarget {
        portal,
        iqn,
        authentication: Authentication::None,
        username: SecretText::default(),
        secret: SecretText::default(),
    })
    .expect("a session");
    node.run(&SetDiskState {
        disk: DiskNumber(2),
        online: true,
    })
    .expect("a disk");
}

#[test]
fn a_healthy_node_has_no_findings() {
    let patient = Patient::healthy();
    patient.map(r"\\server\share");
    connect_iscsi(&patient);
    let report = patient.examine();
    assert!(
        report
            .findings
            .iter()
            .all(|finding| finding.state == State::Ok),
        "{report}"
    );
    let checks = [
        "Windows",
        "Pipes",
        "Service",
        "Folders",
        "Working directories",
        "Windows services",
        "Disks",
    ];
    let leftovers = ["SMB mappings", "Links and mount points", "iSCSI sessions"];
    for check in checks.iter().chain(&leftovers) {
        assert!(
            report
                .findings
                .iter()
                .any(|finding| finding.check == *check),
            "no finding about {check}"
        );
    }
    assert!(
        report
            .findings
            .iter()
            .all(|finding| finding.advice.is_empty())
    );
}

#[test]
fn advice_in_a_container_names_the_pod_and_no_service_but_one_that_is_in_the_way() {
    let mut patient = Patient::healthy();
    patient.settings.is_in_container = true;
    assert_eq!(
        patient.complaints(),
        [],
        "the service serves the pipes, and this container only examines the node"
    );
    patient
        .system
        .service
        .as_mut()
        .expect("a service")
        .command_line = r"C:\old\csi-proxy.exe".to_owned();
    let in_the_way = patient.complaint();
    assert_finding(
        &in_the_way,
        State::Warning,
        "Service",
        &["csiproxy is installed, although"],
    );
    assert!(
        in_the_way.advice.contains("service uninstall"),
        "{in_the_way:?}"
    );
    patient.system.service = None;
    assert_eq!(patient.complaints(), []);
    patient.system.pipes.clear();
    let unserved = patient.complaint();
    assert_finding(&unserved, State::Problem, "Pipes", &["2 pipes not served"]);
    assert!(
        unserved.advice.contains("kubectl logs") && !unserved.advice.contains("sc.exe"),
        "{unserved:?}"
    );
}

#[test]
fn groups_that_are_left_out_are_named_and_are_no_problem() {
    let mut patient = Patient::healthy();
    patient.settings.excluded_groups = Some("iscsi, smb".to_owned());
    assert_eq!(patient.complaints(), []);
    let findings = patient.examine().findings;
    assert!(
        findings
            .iter()
            .any(|finding| finding.seen.contains("-api-groups: iscsi, smb")),
        "{findings:#?}"
    );
}

#[test]
fn a_pipe_that_is_busy_or_denied_cannot_be_checked() {
    let mut patient = Patient::healthy();
    let pipe = patient
        .system
        .pipes
        .get_mut("csi-proxy-disk-v1")
        .expect("a pipe");
    pipe.access = Err(OsError::ACCESS_DENIED);
    let complaint = patient.complaint();
    assert_finding(
        &complaint,
        State::Unchecked,
        "Pipes",
        &["who may open csi-proxy-disk-v1", "(5)"],
    );
    assert!(complaint.advice.contains("elevated"), "{complaint:?}");
}

#[test]
fn whether_windows_restarts_the_service_may_be_unknown() {
    let mut patient = Patient::healthy();
    patient.system.service.as_mut().expect("a service").restarts =
        Err(OsError::CALL_NOT_IMPLEMENTED);
    assert_finding(
        &patient.complaint(),
        State::Unchecked,
        "Service",
        &["whether Windows restarts", "(120)"],
    );
}

#[test]
fn what_ordinary_users_can_replace_is_a_problem() {
    for (path, what) in [
        (PROGRAM, "program"),
        (r"C:\etc\kubernetes\node\bin", "program"),
        (r"C:\etc\kubernetes\logs", "log"),
        (r"C:\var\lib", "working directory"),
    ] {
        let patient = Patient::healthy();
        patient
            .sim
            .external()
            .set_access(path, file_access(&[USERS]))
            .expect("it exists");
        assert_finding(
            &patient.complaint(),
            State::Problem,
            "Folders",
            &["ordinary users", what, path, "Users"],
        );
        patient
            .sim
            .external()
            .set_access(path, file_access(&[SOMEBODY]))
            .expect("it exists");
        assert_finding(
            &patient.complaint(),
            State::Warning,
            "Folders",
            &["other than administrators", what, path, "account-1"],
        );
    }
}

#[test]
fn a_link_at_a_working_directory_in_another_one_is_a_problem_unless_it_leads_to_a_third() {
    let file = |kind: &str, path: &str, more: &str| {
        format!("\n[[file]]\nkind = \"{kind}\"\npath = '{path}'\n{more}\n")
    };
    let moved = || {
        let link = file(
            "junction",
            r"C:\var\lib\kubelet\plugins\moved",
            r"target = '\??\C:\moved'",
        );
        let mut patient =
            Patient::changed(|text| format!("{text}{}{link}", file("directory", r"C:\moved", "")));
        patient.settings.node.pod_dir =
            Some(HostPath::parse(r"C:\var\lib\kubelet\plugins\moved").expect("a path"));
        patient
    };
    assert_finding(
        &moved().complaint(),
        State::Problem,
        "Working directories",
        &[
            r"C:\var\lib\kubelet\plugins\moved is in C:\var\lib\kubelet",
            r"a link to C:\moved",
        ],
    );
    let mut patient = moved();
    patient.settings.node.working_dirs = vec![HostPath::parse(r"C:\moved").expect("a path")];
    assert_eq!(patient.complaints(), []);
    // A link above it is never followed.
    let mut patient = moved();
    patient
        .sim
        .external()
        .mkdir(r"C:\moved\x")
        .expect("a free name");
    let inner = r"C:\var\lib\kubelet\plugins\moved\x";
    patient.settings.node.pod_dir = Some(HostPath::parse(inner).expect("a path"));
    patient.settings.node.working_dirs = vec![HostPath::parse(r"C:\moved").expect("a path")];
    assert_finding(
        &patient.complaint(),
        State::Problem,
        "Working directories",
        &[inner, r"a link to C:\moved"],
    );
}

#[test]
fn an_account_that_can_make_an_empty_working_directory_a_junction_is_a_problem() {
    let directory = r"C:\work";
    for (path, is_found) in [(r"C:\work", true), (r"C:\work\1", false)] {
        let mut patient = Patient::changed(|text| {
            format!("{text}\n[[file]]\nkind = \"directory\"\npath = '{path}'\n")
        });
        patient.settings.node.working_dirs = vec![HostPath::parse(directory).expect("a path")];
        // The rights to read and write.
        patient
            .sim
            .external()
            .set_access(directory, pipe_access(&[USERS]))
            .expect("it exists");
        if is_found {
            assert_finding(
                &patient.complaint(),
                State::Problem,
                "Folders",
                &["the working directory C:\\work: C:\\work"],
            );
        } else {
            assert_eq!(patient.complaints(), []);
        }
    }
}

#[test]
fn mappings_that_cannot_be_read_are_reported_and_their_server_is_waited_for_once() {
    let patient = Patient::healthy();
    patient.map(r"\\server\share");
    patient.map(r"\\server\other");
    assert_eq!(patient.complaints(), []);
    assert!(patient.sim.set_smb_reachable("server", false));
    patient.sim.reboot();
    let before = patient.sim.now();
    let complaints = patient.complaints();
    assert_eq!(complaints.len(), 2, "{complaints:#?}");
    for (complaint, name) in complaints.iter().zip(["share-1", "share-2"]) {
        assert_finding(
            complaint,
            State::Warning,
            "SMB mappings",
            &[name, "cannot be read"],
        );
    }
    let waited = patient.sim.now().0.saturating_sub(before.0).as_secs();
    assert!((30..60).contains(&waited), "{waited}");
    assert!(
        patient
            .examine()
            .to_string()
            .contains("-show-names shows the real names")
    );
}

/// Answers every open on the share `share` with a code.
pub(crate) struct ShareAnswers(pub(crate) OsError);

impl Layer for ShareAnswers {
    fn open(&self, node: &dyn Os, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        if path.to_string().contains(r"\server\share") {
            return Err(self.0);
        }
        node.open(path, how)
    }
}

#[test]
fn a_share_that_was_deleted_does_not_make_the_other_shares_of_its_server_unreadable() {
    let patient = Patient::healthy();
    patient.map(r"\\server\share");
    patient.map(r"\\server\other");
    for (code, reported) in [
        (OsError::BAD_NET_NAME, 1),
        (OsError::LOGON_FAILURE, 1),
        (OsError(4711), 1),
        // These codes are those of the server, so the other share is not asked.
        (OsError::BAD_NETPATH, 2),
        (OsError(64), 2),
        (OsError::SEM_TIMEOUT, 2),
        (OsError(1231), 2),
    ] {
        let findings = patient.examine_through(ShareAnswers(code)).findings;
        let warnings = findings
            .iter()
            .filter(|finding| finding.check == "SMB mappings" && finding.state == State::Warning);
        assert_eq!(warnings.count(), reported, "{code}");
    }
}

#[test]
fn a_mount_point_outside_of_the_working_directories_is_a_warning() {
    let outside = r"C:\var\lib\kubelet-old\mount";
    let mut patient = Patient::with(MOUNT, outside);
    // The target of the link, which the mount point was in.
    patient
        .sim
        .external()
        .mkdir_all(r"C:\var\lib\kubelet\pods\1")
        .expect("a directory");
    let words = ["1 mount point outside of the working directories", outside];
    let finding = patient.complaint();
    assert_finding(&finding, State::Warning, "Links and mount points", &words);
    assert!(finding.advice.contains("-working-dir"), "{finding:#?}");
    // It is a working directory, above one, or below one. The volume of Windows is at the root of
    // its drive.
    for directory in [
        outside,
        r"C:\var\lib\kubelet-old\mount\kubelet",
        r"C:\var\lib\kubelet-old",
    ] {
        patient
            .sim
            .external()
            .mkdir_all(directory)
            .expect("a directory");
        patient.settings.node.working_dirs = vec![HostPath::parse(directory).expect("a path")];
        assert_eq!(patient.complaints(), [], "{directory}");
    }
}

/// The sessions are persistent, as after `Register-IscsiSession`. Their portal may not have answered
/// at the last boot.
pub(crate) struct Persistent {
    pub(crate) are_connected: bool,
}

impl Layer for Persistent {
    fn change_instances(&self, wql: &str, found: &mut Vec<Instance>) {
        let sessions = found.iter_mut();
        for session in sessions.filter(|_| wql.contains("MSFT_iSCSISession")) {
            let mut set = |name: &str, value| {
                session
                    .properties
                    .insert(name.to_owned(), Value::Bool(value))
            };
            set("IsPersistent", true);
            set("IsConnected", self.are_connected);
        }
    }
}

/// Windows lists a directory that does not exist, and one on another volume, for each volume.
pub(crate) struct Stale;

impl Layer for Stale {
    fn volume_paths(&self, node: &dyn Os, volume: &U16Str) -> OsResult<Vec<U16String>> {
        let listed = node.volume_paths(volume)?;
        let more = [r"C:\deleted\", r"C:\Windows\"].map(U16String::from_str);
        Ok(listed.into_iter().chain(more).collect())
    }
}

#[test]
fn names_are_shown_if_asked_for() {
    let mut patient = Patient::with(
        r"target = 'C:\var\lib\kubelet\pods\1'",
        r"target = '\\server\share\dir'",
    );
    assert!(!patient.examine().to_string().contains("server"));
    patient.settings.show_names = true;
    assert_finding(
        &patient.complaint(),
        State::Warning,
        "Links and mount points",
        &[r"\\server\share"],
    );
}
