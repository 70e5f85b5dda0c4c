//! No path that is examined leads doctor to a server, which would make LocalSystem or an
//! administrator log on there, and which may not answer.

use doctor::{Finding, Report, ServiceRegistration, State};
use faults::Layer;
use os::abi::ControlCode;
use os::{Access, Handle, NtPath, Open, Options, Os, OsResult, U16Str, U16String};
use os_sim::Sim;
use storage_ops::HostPath;

use crate::setup::{MountedAt, PROGRAM, Patient, file_access};

const LINKS: &str = "Links and mount points";

/// Returns a patient with these symbolic links (path and target) beside its own. The server does
/// not answer.
fn with_links(links: &[(&str, &str)]) -> Patient {
    let file = |(path, target): &(&str, &str)| {
        format!("\n[[file]]\nkind = \"symlink\"\npath = '{path}'\ntarget = '{target}'\n")
    };
    let patient = Patient::changed(|text| links.iter().fold(text, |text, link| text + &file(link)));
    assert!(patient.sim.set_smb_reachable("server", false));
    patient
}

/// Examines the patient, and asserts that no server was asked.
#[track_caller]
fn examine_without_servers(patient: &Patient) -> Report {
    /// Changes nothing.
    struct Same;
    impl Layer for Same {}
    examine_through(patient, Same)
}

/// Examines the patient with `layer` around its node, and asserts that no server was asked.
#[track_caller]
fn examine_through(patient: &Patient, layer: impl Layer) -> Report {
    let before = patient.sim.now();
    let report = patient.examine_through(layer);
    patient.compare();
    assert_eq!(
        patient.sim.now(),
        before,
        "a server was waited for: {report}"
    );
    report
}

fn complaints(report: &Report) -> Vec<Finding> {
    report
        .findings
        .iter()
        .filter(|finding| finding.state != State::Ok)
        .cloned()
        .collect()
}

/// Asserts that something could not be checked, because it leads off the node.
#[track_caller]
fn assert_off_node(complaint: &Finding) {
    assert_eq!(complaint.state, State::Unchecked, "{complaint:#?}");
    assert!(
        complaint.seen.contains("was not followed"),
        "{complaint:#?}"
    );
    assert!(complaint.advice.contains("dir /al"), "{complaint:#?}");
}

#[test]
fn links_are_followed_on_the_node_and_to_no_server() {
    let plugins = |name: &str| format!(r"C:\var\lib\kubelet\plugins\{name}");
    let on_server = [
        (&*plugins("direct"), r"\\server\share\dir"),
        (&plugins("chain"), r"C:\data\1"),
        (&plugins("above"), r"C:\data\2\dir\file"),
        (r"C:\data\1", r"C:\data\2"),
        (r"C:\data\2", r"\\server\share"),
    ];
    let loops = [
        (&*plugins("loop"), r"C:\data\1"),
        (r"C:\data\1", r"C:\data\1\more"),
    ];
    let relative = [
        (&*plugins("sound"), r"..\pods"),
        (&plugins("server"), r"..\..\..\..\data\1"),
        (r"C:\data\1", r"\\server\share"),
        (&plugins("gone"), r"..\missing"),
        (&plugins("loop"), "loop"),
        (&plugins("outside"), r"..\..\..\..\..\x"),
    ];
    let on_node = [
        (&*plugins("chain"), r"C:\data\1\link\pods\1\volumes"),
        (&plugins("mounted"), r"C:\data\1\mounted"),
        (&plugins("missing"), r"C:\data\1\link\gone"),
        (r"C:\data\1", r"C:\data\2"),
        (r"C:\data\2\link", r"..\..\var\lib\kubelet"),
        (
            r"C:\data\2\mounted",
            r"\var\lib\kubelet\pods\1\volumes\kubernetes.io~csi\pv\mount",
        ),
    ];
    for (links, seen, names) in [
        (
            &on_server[..],
            "1 link to shares that are not mapped",
            &[][..],
        ),
        (&loops, "1 link to paths that do not exist", &["loop"]),
        (
            &relative,
            "3 links to paths that do not exist",
            &["gone", "loop", "outside"],
        ),
        (&on_node, "1 link to paths that do not exist", &["missing"]),
    ] {
        let complaints = complaints(&examine_without_servers(&with_links(links)));
        let [complaint] = &complaints[..] else {
            panic!("{complaints:#?}")
        };
        assert_eq!(
            (complaint.state, complaint.check),
            (State::Warning, LINKS),
            "{complaint:#?}"
        );
        assert!(complaint.seen.contains(seen), "{complaint:#?}");
        assert!(
            names
                .iter()
                .all(|name| complaint.seen.contains(&plugins(name))),
            "{complaint:#?}"
        );
    }
}

#[test]
fn a_working_directory_on_a_server_is_not_opened() {
    for links in [
        &[(r"C:\kubelet", r"\\server\share")][..],
        &[
            (r"C:\kubelet", r"C:\data\1"),
            (r"C:\data\1", r"\\server\share"),
        ],
    ] {
        let mut patient = with_links(links);
        for directory in [r"C:\kubelet", r"C:\kubelet\below"] {
            patient.settings.node.working_dirs = vec![HostPath::parse(directory).expect("a path")];
            let report = examine_without_servers(&patient);
            let complaints = complaints(&report);
            for check in ["Folders", "Working directories", LINKS] {
                assert!(
                    complaints.iter().any(|finding| finding.check == check),
                    "{check}: {complaints:#?}"
                );
            }
            complaints.iter().for_each(assert_off_node);
            let is_called_safe =
                |finding: &Finding| finding.state == State::Ok && finding.seen.contains(directory);
            assert!(!report.findings.iter().any(is_called_safe), "{report}");
        }
    }
}

#[test]
fn a_mount_point_below_a_link_to_a_server_is_not_opened() {
    let patient = with_links(&[(r"C:\data\link", r"\\server\share")]);
    let complaints = complaints(&examine_through(
        &patient,
        MountedAt(r"C:\data\link\mount\"),
    ));
    assert_eq!(complaints.len(), 2, "one for each volume: {complaints:#?}");
    complaints.iter().for_each(assert_off_node);
}

#[test]
fn a_drive_that_is_no_volume_of_the_node_is_not_opened() {
    /// A node that has drive D, but no volume there: a network drive.
    struct NetworkDrive;

    impl Layer for NetworkDrive {
        fn volume_paths(&self, node: &dyn Os, volume: &U16Str) -> OsResult<Vec<U16String>> {
            let paths = node.volume_paths(volume)?;
            Ok(paths
                .into_iter()
                .filter(|path| !path.to_string_lossy().starts_with("D:"))
                .collect())
        }

        fn open(&self, node: &dyn Os, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
            assert!(!path.to_string().starts_with(r"\??\D:"), "{path}");
            node.open(path, how)
        }
    }

    let patient = with_links(&[(r"C:\var\lib\kubelet\plugins\drive", r"D:\dir")]);
    assert_eq!(complaints(&examine_through(&patient, NetworkDrive)), []);
}

#[test]
fn a_program_on_a_server_is_not_opened() {
    let mut patient = Patient::healthy();
    let program = r"\\server\share\csi-proxy.exe";
    for pipe in patient.system.pipes.values_mut() {
        pipe.program = Some(program.to_owned());
    }
    let service = ServiceRegistration {
        command_line: program.to_owned(),
        account: None,
        restarts: Ok(true),
    };
    patient.system.service = Some(service);
    patient.settings.log_file = Some(r"\\server\logs\x.log".to_owned());
    let complaints = complaints(&examine_without_servers(&patient));
    assert_eq!(complaints.len(), 2, "{complaints:#?}");
    for (complaint, file) in complaints.iter().zip([program, r"\\server\logs\x.log"]) {
        assert_eq!(
            (complaint.state, complaint.check),
            (State::Unchecked, "Folders"),
            "{complaint:#?}"
        );
        assert!(
            complaint.seen.contains(file) && complaint.seen.contains("not a path on a drive"),
            "{complaint:#?}"
        );
    }
}

#[test]
fn an_access_list_is_read_from_what_was_opened_whatever_the_path_leads_to_by_then() {
    /// Replaces the folder of the program by a link to a share as soon as the program has been
    /// opened.
    struct Attacker(Sim);

    impl Layer for Attacker {
        fn open_child(
            &self,
            parent: &dyn Handle,
            name: &U16Str,
            how: &Open,
        ) -> OsResult<Box<dyn Handle>> {
            let opened = parent.open_child(name, how)?;
            if how.access == Access::READ_CONTROL && *name == U16String::from_str("csi-proxy.exe") {
                let external = self.0.external();
                external
                    .rename(r"C:\etc\kubernetes\node", r"C:\etc\kubernetes\moved")
                    .unwrap();
                external
                    .symlink(r"C:\etc\kubernetes\node", r"\\server\share")
                    .unwrap();
            }
            Ok(opened)
        }
    }

    let patient = with_links(&[]);
    patient
        .sim
        .external()
        .set_access(PROGRAM, file_access(&["S-1-5-32-545"]))
        .unwrap();
    let report = examine_through(&patient, Attacker(patient.sim.clone()));
    let program =
        |finding: &&Finding| finding.seen.contains("can replace") && finding.seen.contains(PROGRAM);
    assert_eq!(
        report
            .findings
            .iter()
            .find(program)
            .map(|finding| finding.state),
        Some(State::Problem),
        "{report}"
    );
}

#[test]
fn a_program_behind_a_link_to_a_server_is_not_opened() {
    let mut patient = with_links(&[(r"C:\etc\kubernetes", r"\\server\share")]);
    patient.settings.log_file = None;
    let complaints = complaints(&examine_without_servers(&patient));
    assert_eq!(complaints.len(), 4, "{complaints:#?}");
    assert!(
        complaints
            .iter()
            .all(|complaint| complaint.check == "Folders"),
        "{complaints:#?}"
    );
    complaints.iter().for_each(assert_off_node);
}

#[test]
fn a_reparse_point_that_is_not_a_link_is_not_said_to_lead_off_the_node() {
    let mut patient =
        Patient::changed(|text| text + "\n[[file]]\nkind = \"directory\"\npath = 'C:\\cloud'\n");
    let how = Open::existing(Access::WRITE_ATTRIBUTES, Options::REPARSE_POINT);
    let os = patient.os();
    let directory = os
        .open(&NtPath::from_win32(&U16String::from_str(r"C:\cloud")), &how)
        .unwrap();
    // A placeholder of cloud storage.
    let data = [0x1a, 0, 0, 0x90, 4, 0, 0, 0, 1, 2, 3, 4];
    directory
        .control(ControlCode::FSCTL_SET_REPARSE_POINT, &data, &mut [])
        .unwrap();
    patient.settings.node.working_dirs = vec![HostPath::parse(r"C:\cloud\work").expect("a path")];
    let complaints = complaints(&patient.examine());
    assert!(!complaints.is_empty());
    for complaint in complaints {
        assert_eq!(complaint.state, State::Unchecked, "{complaint:#?}");
        assert!(
            complaint
                .seen
                .contains("cloud is a reparse point that is not a link"),
            "{complaint:#?}"
        );
        assert!(!complaint.advice.contains("server"), "{complaint:#?}");
    }
}
