//! A healthy node has no findings, and each defect makes its own.

use doctor::{Finding, State};
use faults::Layer;
use os::{
    Handle, Instance, MethodCall, Namespace, NtPath, Open, Os, OsError, OsResult, Time, U16Str,
    U16String, Value,
};
use storage_ops::{
    AddTargetPortal, Authentication, Config, ConnectTarget, DiscoverTargetPortal, DiskNumber,
    HostPath, Iqn, Node, SecretText, SetDiskState, TargetPortal,
};

use crate::setup::{MOUNT, PROGRAM, Patient, file_access};
use crate::simulated_system::pipe_access;

const USERS: &str = "S-1-5-32-545";
const SOMEBODY: &str = "S-1-5-21-1-2-3-1001";

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

fn connect_iscsi(patient: &Patient) {
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
fn an_old_build_is_a_problem_and_an_unknown_one_a_warning() {
    let mut patient = Patient::healthy();
    for (build, state) in [
        (14393, State::Problem),
        (19045, State::Warning),
        (26100, State::Ok),
        (30000, State::Warning),
    ] {
        patient.system.build = build;
        let complaints = patient.complaints();
        if state == State::Ok {
            assert_eq!(complaints, []);
        } else {
            assert_finding(&complaints[0], state, "Windows", &[&build.to_string()]);
        }
    }
}

#[test]
fn pipes_that_no_process_serves_are_a_problem_and_a_few_of_them_a_warning() {
    let mut patient = Patient::healthy();
    patient.system.pipes.remove("csi-proxy-volume-v1");
    assert_finding(
        &patient.complaint(),
        State::Warning,
        "Pipes",
        &["1 pipe not served", "csi-proxy-volume-v1"],
    );
    patient.system.pipes.clear();
    assert_finding(
        &patient.complaint(),
        State::Problem,
        "Pipes",
        &["2 pipes not served"],
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
fn a_pipe_that_is_excluded_but_served_by_another_program_is_a_problem() {
    let mut patient = Patient::healthy();
    patient.settings.excluded_groups = Some("smb".to_owned());
    patient.settings.excluded_pipes = vec![
        "csi-proxy-smb-v1".to_owned(),
        "csi-proxy-smb-v1beta2".to_owned(),
    ];
    assert_eq!(patient.complaints(), []);
    let mut pipe = patient.system.pipes["csi-proxy-disk-v1"].clone();
    pipe.process = 7;
    patient
        .system
        .pipes
        .insert("csi-proxy-smb-v1".to_owned(), pipe);
    assert_finding(
        &patient.complaint(),
        State::Problem,
        "Pipes",
        &["csi-proxy-smb-v1, which", "process 7"],
    );
}

#[test]
fn pipes_served_by_two_processes_are_a_problem() {
    let mut patient = Patient::healthy();
    patient
        .system
        .pipes
        .get_mut("csi-proxy-volume-v1")
        .expect("a pipe")
        .process = 7;
    let complaints = patient.complaints();
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert_finding(
        &complaints[0],
        State::Problem,
        "Pipes",
        &["process 7", "csi-proxy-volume-v1"],
    );
    assert_finding(
        &complaints[1],
        State::Problem,
        "Pipes",
        &["process 4242", "csi-proxy-disk-v1"],
    );
}

#[test]
fn a_pipe_that_ordinary_users_may_open_is_a_problem_and_an_unknown_account_a_warning() {
    let mut patient = Patient::healthy();
    let mut open_to = |accounts: &[&str]| {
        let access = Ok(pipe_access(accounts));
        patient
            .system
            .pipes
            .get_mut("csi-proxy-disk-v1")
            .expect("a pipe")
            .access = access;
    };
    open_to(&[USERS, SOMEBODY]);
    assert_finding(
        &patient.complaint(),
        State::Problem,
        "Pipes",
        &["Users, account-1 may open csi-proxy-disk-v1"],
    );
    let access = Ok(pipe_access(&[SOMEBODY]));
    patient
        .system
        .pipes
        .values_mut()
        .for_each(|pipe| pipe.access.clone_from(&access));
    assert_finding(
        &patient.complaint(),
        State::Warning,
        "Pipes",
        &["account-1 may open the pipes"],
    );
    patient.settings.accounts = vec![SOMEBODY.to_owned()];
    assert_eq!(patient.complaints(), []);
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
fn a_defect_in_the_description_of_a_node_makes_one_finding() {
    let service = |name: &str, display: &str, rest: &str| {
        format!("name = \"{name}\"\ndisplay_name = \"{display}\"\n{rest}")
    };
    let running = "start_type = \"automatic\"\nstate = \"running\"";
    let own = |rest| {
        (
            service("csiproxy", "CSI Proxy", running),
            service("csiproxy", "CSI Proxy", rest),
        )
    };
    let smb = |rest| {
        let with = |rest| service("LanmanWorkstation", "Workstation", rest);
        (with(running), with(rest))
    };
    let iscsi = |rest| {
        let with = |rest| service("MSiSCSI", "Microsoft iSCSI Initiator Service", rest);
        (with(running), with(rest))
    };
    let disk = |flags| {
        let server = "[[smb_server]]".to_owned();
        (
            server.clone(),
            format!("[[disk]]\nsize = \"1 GiB\"\nnumber = 2\n{flags}\n\n{server}"),
        )
    };
    let link = r"target = 'C:\var\lib\kubelet\pods\1'".to_owned();
    let stopped = "start_type = \"automatic\"\nstate = \"stopped\"";
    let manual = "start_type = \"manual\"\nstate = \"running\"";
    for ((from, to), state, check, words) in [
        (
            own(manual),
            State::Problem,
            "Service",
            ["does not start with Windows", ""],
        ),
        (
            own(stopped),
            State::Problem,
            "Service",
            ["is not running", ""],
        ),
        (
            smb(stopped),
            State::Problem,
            "Windows services",
            ["not running", "SMB shares"],
        ),
        (
            smb("start_type = \"disabled\""),
            State::Problem,
            "Windows services",
            ["disabled", "SMB shares"],
        ),
        (
            iscsi("start_type = \"manual\""),
            State::Warning,
            "Windows services",
            ["not running", "iSCSI targets"],
        ),
        (
            iscsi(manual),
            State::Warning,
            "Windows services",
            ["MSiSCSI", "does not start with Windows"],
        ),
        (
            ("MSiSCSI".into(), "Renamed".into()),
            State::Warning,
            "Windows services",
            ["MSiSCSI does not exist", ""],
        ),
        (
            disk("offline = true"),
            State::Warning,
            "Disks",
            ["disk 2 is offline", ""],
        ),
        (
            disk("read_only = true"),
            State::Warning,
            "Disks",
            ["disk 2 is read-only", ""],
        ),
        (
            disk("offline = true\nread_only = true"),
            State::Warning,
            "Disks",
            ["disk 2 is offline and read-only", ""],
        ),
        (
            (link, r"target = 'C:\gone'".to_owned()),
            State::Warning,
            "Links and mount points",
            [
                "1 link to paths that do not exist",
                r"C:\var\lib\kubelet\plugins\link",
            ],
        ),
    ] {
        assert_finding(&Patient::with(&from, &to).complaint(), state, check, &words);
    }
}

#[test]
fn a_service_that_windows_does_not_restart_is_a_problem() {
    let mut patient = Patient::healthy();
    patient.system.service.as_mut().expect("a service").restarts = Ok(false);
    assert_finding(
        &patient.complaint(),
        State::Problem,
        "Service",
        &["does not restart"],
    );
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
fn a_service_that_is_not_installed_is_a_warning_only_if_nothing_serves() {
    let mut patient = Patient::healthy();
    patient.system.service = None;
    assert_eq!(patient.complaints(), []);
    patient.system.pipes.clear();
    let complaints = patient.complaints();
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert_finding(
        &complaints[1],
        State::Warning,
        "Service",
        &["not installed"],
    );
}

#[test]
fn the_registration_of_the_service_is_examined() {
    let mut patient = Patient::healthy();
    patient.system.service.as_mut().expect("a service").account = Some(r".\somebody".to_owned());
    assert_finding(
        &patient.complaint(),
        State::Warning,
        "Service",
        &["runs as account-1"],
    );
    patient.system.service.as_mut().expect("a service").account = Some("localsystem".to_owned());
    assert_eq!(patient.complaints(), []);

    let in_program_files = r"C:\Program Files\csi-proxy.exe";
    patient.install(in_program_files);
    patient
        .system
        .service
        .as_mut()
        .expect("a service")
        .command_line = format!("{in_program_files} -v=5");
    patient
        .system
        .pipes
        .values_mut()
        .for_each(|pipe| pipe.program = Some(in_program_files.to_owned()));
    assert_finding(
        &patient.complaint(),
        State::Warning,
        "Service",
        &["has a blank and no quotation marks"],
    );
    patient
        .system
        .service
        .as_mut()
        .expect("a service")
        .command_line = format!(r#""{in_program_files}" -v=5"#);
    assert_eq!(patient.complaints(), []);

    let go = r"C:\go\csi-proxy.exe";
    patient.install(go);
    patient
        .system
        .pipes
        .values_mut()
        .for_each(|pipe| pipe.program = Some(go.to_owned()));
    assert_finding(
        &patient.complaint(),
        State::Warning,
        "Service",
        &[go, in_program_files],
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
fn a_working_directory_that_is_missing_or_cannot_hold_links_is_a_problem() {
    let mut patient = Patient::healthy();
    patient.settings.node.working_dirs = vec![HostPath::parse(r"C:\missing").expect("a path")];
    let [directory] = &patient.complaints()[..] else {
        panic!("{:#?}", patient.complaints())
    };
    assert_finding(
        directory,
        State::Problem,
        "Working directories",
        &[r"C:\missing", "does not exist"],
    );

    let mut patient = Patient::with(r#"file_system = "NTFS""#, r#"file_system = "FAT32""#);
    patient.settings.node.working_dirs = vec![HostPath::parse(MOUNT).expect("a path")];
    // It is in kubelet's directory, too.
    let [link, directory] = &patient.complaints()[..] else {
        panic!("{:#?}", patient.complaints())
    };
    assert_finding(
        link,
        State::Problem,
        "Working directories",
        &[MOUNT, "does not follow"],
    );
    assert_finding(
        directory,
        State::Problem,
        "Working directories",
        &[MOUNT, "FAT32"],
    );
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
struct ShareAnswers(OsError);

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
fn a_session_that_windows_could_not_connect_again_is_a_warning() {
    /// The sessions are persistent, as after `Register-IscsiSession`. Their portal may not have
    /// answered at the last boot.
    struct Persistent {
        are_connected: bool,
    }

    impl Layer for Persistent {
        fn change_instances(&self, wql: &str, found: &mut Vec<Instance>) {
            for session in found
                .iter_mut()
                .filter(|_| wql.contains("MSFT_iSCSISession"))
            {
                session
                    .properties
                    .insert("IsPersistent".to_owned(), Value::Bool(true));
                session
                    .properties
                    .insert("IsConnected".to_owned(), Value::Bool(self.are_connected));
            }
        }
    }

    let patient = Patient::healthy();
    connect_iscsi(&patient);
    let of_sessions = |are_connected| {
        let findings = patient
            .examine_through(Persistent { are_connected })
            .findings;
        findings
            .into_iter()
            .filter(|finding| finding.check == "iSCSI sessions")
            .collect::<Vec<_>>()
    };
    let connected = of_sessions(true);
    assert_eq!(connected.len(), 1, "{connected:#?}");
    assert_eq!(
        connected[0].seen,
        "sessions: 1 connected, 1 of them persistent"
    );
    let not_connected = of_sessions(false);
    assert_eq!(not_connected.len(), 2, "{not_connected:#?}");
    let words = ["the session to target-1 is not connected"];
    assert_finding(&not_connected[0], State::Warning, "iSCSI sessions", &words);
    assert_eq!(
        not_connected[1].seen,
        "sessions: 0 connected, 0 of them persistent"
    );
}

#[test]
fn a_mapping_of_a_directory_is_a_warning() {
    let patient = Patient::healthy();
    let arguments = [("RemotePath", Value::Text(r"\\server\share\dir".to_owned()))];
    let create = MethodCall::new(
        Namespace::Smb,
        "MSFT_SmbGlobalMapping",
        "Create",
        &arguments,
    );
    patient
        .os()
        .wmi()
        .call(&create, Time(std::time::Duration::MAX))
        .expect("a mapping");
    assert_finding(
        &patient.complaint(),
        State::Warning,
        "SMB mappings",
        &["share-2 is mapped: a directory"],
    );
}

#[test]
fn a_mount_point_whose_volume_is_gone_is_a_warning() {
    let patient = Patient::healthy();
    patient.sim.unplug_disk(1).expect("a disk");
    assert_finding(
        &patient.complaint(),
        State::Warning,
        "Links and mount points",
        &["1 mount point to", MOUNT],
    );
}

#[test]
fn a_mount_point_that_windows_lists_and_that_does_not_exist_is_a_warning() {
    /// Windows lists a directory that does not exist, and one on another volume, for each volume.
    struct Stale;

    impl Layer for Stale {
        fn volume_paths(&self, node: &dyn Os, volume: &U16Str) -> OsResult<Vec<U16String>> {
            let listed = node.volume_paths(volume)?;
            let more = [r"C:\deleted\", r"C:\Windows\"].map(U16String::from_str);
            Ok(listed.into_iter().chain(more).collect())
        }
    }

    let report = Patient::healthy().examine_through(Stale);
    let stale = report
        .findings
        .iter()
        .find(|finding| finding.state != State::Ok)
        .expect("a finding");
    let words = [
        "Windows lists 4 mount points",
        r"C:\deleted\",
        r"C:\Windows\",
    ];
    assert_finding(stale, State::Warning, "Links and mount points", &words);
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

#[test]
fn a_link_to_a_share_is_a_warning_unless_the_share_is_mapped() {
    let patient = Patient::with(
        r"target = 'C:\var\lib\kubelet\pods\1'",
        r"target = '\\server\share\dir'",
    );
    let words = ["1 link to shares that are not mapped", "share-1"];
    assert_finding(
        &patient.complaint(),
        State::Warning,
        "Links and mount points",
        &words,
    );
    patient.map(r"\\server\share");
    assert_eq!(patient.complaints(), []);
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
