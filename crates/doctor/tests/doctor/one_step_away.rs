//! Each finding: a state of a node in which it is true, and a state one step away, in which doctor
//! must not make it. A finding without a row fails the last test.

use std::{env, fs};

use doctor::{Report, State};
use os::{MethodCall, Namespace, OsError, Time, Value};
use storage_ops::HostPath;

use crate::findings::{Persistent, SOMEBODY, ShareAnswers, Stale, USERS, connect_iscsi};
use crate::setup::{MOUNT, PROGRAM, Patient, file_access};
use crate::simulated_system::pipe_access;
use State::{Problem, Warning};

/// The subject and a part of the text of a finding, a part of its advice, and the report of a node
/// on which it is true, or one step away.
type Row = (
    State,
    &'static str,
    &'static str,
    &'static str,
    fn(bool) -> Report,
);

/// A node that is changed.
fn changed(change: impl FnOnce(&mut Patient)) -> Report {
    let mut patient = Patient::healthy();
    change(&mut patient);
    patient.examine()
}

/// A node with a second disk and more.
fn with_disk(keys: &str) -> Report {
    let server = "[[smb_server]]";
    let disk = format!("[[disk]]\nsize = '1 GiB'\nnumber = 2\n{keys}\n\n{server}");
    Patient::with(server, &disk).examine()
}

/// A node with a service that has other keys.
fn with_service(name: &str, keys: &str) -> Report {
    Patient::changed(|text| {
        let at = text.find(&format!("name = \"{name}\"")).expect("a service");
        let end = text[at..].find("\n\n").expect("a table") + at;
        format!(
            "{}name = \"{name}\"\ndisplay_name = \"x\"\n{keys}{}",
            &text[..at],
            &text[end..]
        )
    })
    .examine()
}

fn with_link(target: &str) -> Patient {
    let healthy = r"target = 'C:\var\lib\kubelet\pods\1'";
    Patient::with(healthy, &format!("target = '{target}'"))
}

fn path(text: &str) -> HostPath {
    HostPath::parse(text).expect("a path")
}

fn with_working_directory(file: &str, directory: &str) -> Report {
    let mut patient = Patient::changed(|text| format!("{text}\n[[file]]\n{file}\n"));
    patient.settings.node.working_dirs = vec![path(directory)];
    patient.examine()
}

fn mapped(remote: &str, is_private: bool) -> Report {
    let patient = Patient::healthy();
    let arguments = [
        ("RemotePath", Value::Text(remote.to_owned())),
        ("RequirePrivacy", Value::Bool(is_private)),
    ];
    let class = "MSFT_SmbGlobalMapping";
    let create = MethodCall::new(Namespace::Smb, class, "Create", &arguments);
    let os = patient.os();
    let forever = Time(std::time::Duration::MAX);
    os.wmi().call(&create, forever).expect("a mapping");
    patient.examine()
}

fn share_that_answers(code: OsError) -> Report {
    let patient = Patient::healthy();
    patient.map(r"\\server\share");
    patient.examine_through(ShareAnswers(code))
}

const RUNNING: &str = "start_type = 'automatic'\nstate = 'running'";
const STOPPED: &str = "start_type = 'automatic'\nstate = 'stopped'";
const MANUAL: &str = "start_type = 'manual'\nstate = 'running'";
const DISABLED: &str = "start_type = 'disabled'";
const AZURE: &str = "bus = 'nvme'\nvendor = 'MSFT'\nproduct = 'NVMe Accelerator v1.0'";

fn either(is_true: bool, one: &'static str, other: &'static str) -> &'static str {
    if is_true { one } else { other }
}

const ROWS: &[Row] = &[
    (Problem, "Windows", "lacks calls", "use one of", |yes| {
        changed(|node| node.system.build = if yes { 17762 } else { 17763 })
    }),
    (
        Warning,
        "Windows",
        "is not made for",
        "supported builds",
        |yes| changed(|node| node.system.build = if yes { 20349 } else { 20348 }),
    ),
    (
        Problem,
        "Pipes",
        "pipes not served",
        "sc.exe start csiproxy",
        |yes| {
            changed(|node| {
                node.system
                    .pipes
                    .retain(|name, _| !yes && name.contains("disk"));
            })
        },
    ),
    (
        Problem,
        "Pipes",
        "pipes not served",
        "kubectl logs",
        |yes| {
            changed(|node| {
                node.system.pipes.clear();
                node.settings.is_in_container = yes;
            })
        },
    ),
    (Warning, "Pipes", "1 pipe not served", "may be old", |yes| {
        changed(|node| {
            node.system
                .pipes
                .retain(|name, _| !yes || name.contains("disk"));
        })
    }),
    (
        Problem,
        "Pipes",
        "served by process",
        "stop all but one",
        |yes| {
            changed(|node| {
                let pipes = node.system.pipes.values_mut();
                pipes
                    .take(if yes { 1 } else { 2 })
                    .for_each(|pipe| pipe.process = 7);
            })
        },
    ),
    (
        Problem,
        "Pipes",
        "which -api-groups excludes",
        "stop that program",
        |yes| {
            changed(|node| {
                node.settings.excluded_groups = Some("smb".to_owned());
                node.settings.excluded_pipes = vec!["csi-proxy-smb-v1".to_owned()];
                let pipe = node.system.pipes["csi-proxy-disk-v1"].clone();
                let name = either(yes, "csi-proxy-smb-v1", "csi-proxy-smb-v9");
                node.system.pipes.insert(name.to_owned(), pipe);
            })
        },
    ),
    (
        Problem,
        "Pipes",
        "can then do everything",
        "remove the account",
        |yes| {
            changed(|node| {
                let access = Ok(pipe_access(&[either(yes, USERS, SOMEBODY)]));
                node.system
                    .pipes
                    .values_mut()
                    .for_each(|pipe| pipe.access.clone_from(&access));
            })
        },
    ),
    (
        Warning,
        "Pipes",
        "not named with -pipe-sid",
        "why it admits",
        |yes| {
            changed(|node| {
                let access = Ok(pipe_access(&[SOMEBODY]));
                node.system
                    .pipes
                    .values_mut()
                    .for_each(|pipe| pipe.access.clone_from(&access));
                node.settings.accounts = vec![either(yes, USERS, SOMEBODY).to_owned()];
            })
        },
    ),
    (
        Warning,
        "Service",
        "in this container",
        "service uninstall",
        |yes| {
            changed(|node| {
                node.settings.is_in_container = yes;
                service(node).command_line = String::from(r"C:\old\csi-proxy.exe");
            })
        },
    ),
    (
        Warning,
        "Service",
        "csiproxy is not installed",
        "service install",
        |yes| {
            changed(|node| {
                node.system.service = None;
                node.system.pipes.retain(|_, _| !yes);
            })
        },
    ),
    (
        Problem,
        "Service",
        "does not start with Windows",
        "start= auto",
        |yes| with_service("csiproxy", either(yes, MANUAL, RUNNING)),
    ),
    (
        Problem,
        "Service",
        "is not running",
        "sc.exe start",
        |yes| with_service("csiproxy", either(yes, STOPPED, MANUAL)),
    ),
    (
        Problem,
        "Service",
        "does not restart service",
        "sc.exe failure",
        |yes| changed(|node| service(node).restarts = Ok(!yes)),
    ),
    (Warning, "Service", "runs as", "needs LocalSystem", |yes| {
        changed(|node| {
            service(node).account = Some(either(yes, r".\somebody", "localsystem").to_owned());
        })
    }),
    (
        Warning,
        "Service",
        "no quotation marks",
        "put it in quotation marks",
        |yes| {
            changed(|node| {
                let line = either(yes, r"C:\a b\c.exe -v=5", r#""C:\a b\c.exe" -v=5"#);
                service(node).command_line = String::from(line);
            })
        },
    ),
    (
        Warning,
        "Service",
        "the pipes are served by",
        "stop one of the two",
        |yes| {
            changed(|node| {
                let program = if yes {
                    r"C:\go\csi-proxy.exe".to_owned()
                } else {
                    PROGRAM.to_uppercase()
                };
                node.system
                    .pipes
                    .values_mut()
                    .for_each(|pipe| pipe.program = Some(program.clone()));
            })
        },
    ),
    (
        Problem,
        "Folders",
        "ordinary users can replace",
        "icacls",
        |yes| changed(|node| allow(node, either(yes, USERS, SOMEBODY))),
    ),
    (
        Warning,
        "Folders",
        "other than administrators can replace",
        "trust these",
        |yes| changed(|node| allow(node, either(yes, SOMEBODY, "S-1-5-18"))),
    ),
    (
        Problem,
        "Working directories",
        "does not follow it",
        "-working-dir too",
        |yes| {
            let mut patient = Patient::changed(|text| {
                let link = r"kind = 'junction'
path = 'C:\var\lib\kubelet\plugins\moved'
target = '\??\C:\moved'";
                format!(
                    "{text}\n[[file]]\nkind = 'directory'\npath = 'C:\\moved'\n[[file]]\n{link}\n"
                )
            });
            patient.settings.node.pod_dir = Some(path(r"C:\var\lib\kubelet\plugins\moved"));
            if !yes {
                patient.settings.node.working_dirs = vec![path(r"C:\moved")];
            }
            patient.examine()
        },
    ),
    (
        Problem,
        "Working directories",
        "csi-proxy does not start",
        "name the inner",
        |yes| {
            let target = either(yes, r"C:\var\lib\kubelet\pods", r"C:\elsewhere");
            let link = format!(
                "kind = 'directory'\npath = '{target}'\n[[file]]\nkind = 'junction'\npath = 'C:\\alias'\ntarget = '\\??\\{target}'"
            );
            with_working_directory(&link, r"C:\alias")
        },
    ),
    (
        Problem,
        "Working directories",
        "does not exist",
        "start kubelet",
        |yes| {
            let file = either(
                yes,
                "kind = 'directory'\npath = 'C:\\other'",
                "kind = 'directory'\npath = 'C:\\work'",
            );
            with_working_directory(file, r"C:\work")
        },
    ),
    (
        Problem,
        "Working directories",
        "is not a directory",
        "remove the file",
        |yes| {
            let file = either(
                yes,
                "kind = 'file'\npath = 'C:\\work'",
                "kind = 'directory'\npath = 'C:\\work'",
            );
            with_working_directory(file, r"C:\work")
        },
    ),
    (
        Problem,
        "Working directories",
        "cannot hold links",
        "use a directory on NTFS",
        |yes| {
            let file_system = either(yes, "file_system = 'exFAT'", "file_system = 'ReFS'");
            let mut patient = Patient::with(r#"file_system = "NTFS""#, file_system);
            patient.settings.node.working_dirs = vec![path(MOUNT)];
            patient.examine()
        },
    ),
    (
        Problem,
        "Windows services",
        "LanmanWorkstation is not running",
        "sc.exe start",
        |yes| with_service("LanmanWorkstation", either(yes, STOPPED, RUNNING)),
    ),
    (
        Problem,
        "Windows services",
        "LanmanWorkstation is disabled",
        "sc.exe start",
        |yes| with_service("LanmanWorkstation", either(yes, DISABLED, STOPPED)),
    ),
    (
        Warning,
        "Windows services",
        "MSiSCSI is not running",
        "if this node uses iSCSI",
        |yes| with_service("MSiSCSI", either(yes, STOPPED, RUNNING)),
    ),
    (
        Warning,
        "Windows services",
        "but does not start with Windows",
        "start= auto",
        |yes| with_service("MSiSCSI", either(yes, MANUAL, RUNNING)),
    ),
    (
        Warning,
        "Windows services",
        "MSiSCSI does not exist",
        "an image of Windows",
        |yes| {
            Patient::changed(|text| {
                text.replace("\"MSiSCSI\"", either(yes, "\"Renamed\"", "\"msiscsi\""))
            })
            .examine()
        },
    ),
    (
        Warning,
        "Disks",
        "disk 2 is offline",
        "brings it online",
        |yes| with_disk(either(yes, "offline = true", "offline = false")),
    ),
    // The second path of a LUN is not to be brought online.
    (
        Warning,
        "Disks",
        "disk 2 is offline",
        "brings it online",
        |yes| {
            let serial = either(yes, "a", "b");
            with_disk(&format!(
                "offline = true\npage83 = {{ ascii = '{serial}' }}\n[[disk]]\nsize = '1 GiB'\npage83 = {{ ascii = 'b' }}"
            ))
        },
    ),
    (
        Warning,
        "Disks",
        "disk 2 is read-only",
        "makes it writable",
        |yes| with_disk(either(yes, "read_only = true", "read_only = false")),
    ),
    (
        Warning,
        "Disks",
        "disk 2 is offline and read-only",
        "brings it online",
        |yes| {
            with_disk(either(
                yes,
                "offline = true\nread_only = true",
                "offline = true",
            ))
        },
    ),
    (
        Warning,
        "Disks",
        "disks 2 and 3 have one identifier",
        "install MPIO",
        |yes| {
            let second = either(yes, "'lun'", "'lun2'");
            with_disk(&format!(
                "page83 = {{ ascii = 'lun' }}\n[[disk]]\nsize = '1 GiB'\npage83 = {{ ascii = {second} }}"
            ))
        },
    ),
    (
        Warning,
        "Disks",
        "disks 2 and 3 have one identifier",
        "install MPIO",
        |yes| {
            let keys = |serial| format!("page83 = 'none'\nserial = '{serial}'");
            with_disk(&format!(
                "{}\n[[disk]]\nsize = '1 GiB'\n{}",
                keys("a"),
                keys(either(yes, "a", ""))
            ))
        },
    ),
    (
        Warning,
        "Disks",
        "its MBR can describe",
        "a disk with a GPT",
        |yes| {
            with_disk(either(
                yes,
                "content = 'mbr'\ngrown_to = '3 TiB'",
                "content = 'gpt'\ngrown_to = '3 TiB'",
            ))
        },
    ),
    (
        Warning,
        "Disks",
        "4294967295 clusters",
        "-format-allocation-unit",
        |yes| {
            let size = either(yes, "20 TiB", "15 TiB");
            with_disk(&format!(
                "content = 'partitioned'\nfile_system = 'NTFS'\ngrown_to = '{size}'"
            ))
        },
    ),
    (
        Warning,
        "Disks",
        "locked by BitLocker",
        "manage-bde",
        |yes| with_volume(either(yes, "locked", "readable")),
    ),
    (Warning, "Disks", "no pod can use volume", "chkdsk", |yes| {
        with_volume(either(yes, "unreadable", "readable"))
    }),
    (Warning, "Disks", "cannot mount", "chkdsk", |yes| {
        with_volume(either(yes, "unmountable", "readable"))
    }),
    (Warning, "Disks", "shows no LUN", "HostProcess", |yes| {
        let location = "location = 'Integrated : Bus 1 : Device 0 : Function 0 : Adapter 0'";
        let lun = "location = 'Integrated : Adapter 0 : Port 0 : Target 0 : LUN 1'";
        with_disk(&format!("{AZURE}\n{}", either(yes, location, lun)))
    }),
    // Other providers' disks have no LUN either, and their drivers need none.
    (Warning, "Disks", "shows no LUN", "HostProcess", |yes| {
        let location = "location = 'Integrated : Bus 1 : Device 0 : Function 0 : Adapter 0'";
        let product = either(
            yes,
            AZURE,
            "bus = 'nvme'\nvendor = 'NVMe'\nproduct = 'nvme_card'",
        );
        with_disk(&format!("{product}\n{location}"))
    }),
    (
        Warning,
        "SMB mappings",
        "a directory of a share",
        "maps whole shares",
        |yes| mapped(either(yes, r"\\server\share\dir", r"\\server\share"), true),
    ),
    (
        Warning,
        "SMB mappings",
        "without the encryption",
        "the driver maps",
        |yes| mapped(r"\\server\share", !yes),
    ),
    (
        Warning,
        "SMB mappings",
        "cannot be read",
        "TCP port 445",
        |yes| {
            share_that_answers(if yes {
                OsError::BAD_NETPATH
            } else {
                OsError::LOGON_FAILURE
            })
        },
    ),
    (
        Warning,
        "SMB mappings",
        "cannot be read",
        "secret of the volume",
        |yes| {
            share_that_answers(if yes {
                OsError::LOGON_FAILURE
            } else {
                OsError::BAD_NET_NAME
            })
        },
    ),
    (
        Warning,
        "SMB mappings",
        "cannot be read",
        "still has the share",
        |yes| {
            share_that_answers(if yes {
                OsError::BAD_NET_NAME
            } else {
                OsError(4711)
            })
        },
    ),
    (
        Warning,
        "SMB mappings",
        "cannot be read",
        "if no pod uses the share",
        |yes| {
            share_that_answers(if yes {
                OsError(4711)
            } else {
                OsError::BAD_NETPATH
            })
        },
    ),
    (
        Warning,
        "Links and mount points",
        "to volumes that no longer exist",
        "attach the disk",
        |yes| {
            changed(|node| {
                if yes {
                    node.sim.unplug_disk(1).expect("a disk");
                }
            })
        },
    ),
    // The target is a share, whose server is away.
    (
        Warning,
        "Links and mount points",
        "to volumes that no longer exist",
        "attach the disk",
        |yes| {
            let patient = with_link(r"\\server\share");
            patient.map(r"\\server\share");
            patient.sim.set_smb_reachable("server", false);
            if yes {
                patient.sim.unplug_disk(1).expect("a disk");
            }
            patient.examine()
        },
    ),
    (
        Warning,
        "Links and mount points",
        "to paths that do not exist",
        "remove the link",
        |yes| with_link(either(yes, r"C:\gone", r"C:\Windows")).examine(),
    ),
    (
        Warning,
        "Links and mount points",
        "to shares that are not mapped",
        "restart the pod",
        |yes| {
            let patient = with_link(r"\\server\share\dir");
            patient.map(either(yes, r"\\server\other", r"\\server\share"));
            patient.examine()
        },
    ),
    (
        Warning,
        "Links and mount points",
        "outside of the working directories",
        "-working-dir",
        |yes| {
            let outside = either(yes, r"C:\other\mount", r"C:\var\lib\kubelet\mount");
            Patient::with(MOUNT, outside).examine()
        },
    ),
    (
        Warning,
        "Links and mount points",
        "Windows lists",
        "mountvol.exe",
        |yes| {
            let patient = Patient::healthy();
            if yes {
                patient.examine_through(Stale)
            } else {
                patient.examine()
            }
        },
    ),
    (
        Warning,
        "iSCSI sessions",
        "is not connected",
        "Unregister-IscsiSession",
        |yes| {
            let patient = Patient::healthy();
            connect_iscsi(&patient);
            patient.examine_through(Persistent {
                are_connected: !yes,
            })
        },
    ),
];

fn service(node: &mut Patient) -> &mut doctor::ServiceRegistration {
    node.system.service.as_mut().expect("a service")
}

/// Lets an account change the folder of the program.
fn allow(node: &Patient, account: &str) {
    let folder = r"C:\etc\kubernetes\node\bin";
    let access = file_access(&[account]);
    node.sim
        .external()
        .set_access(folder, access)
        .expect("it exists");
}

fn with_volume(state: &str) -> Report {
    with_disk(&format!(
        "content = 'partitioned'\nfile_system = 'NTFS'\nvolume = '{state}'"
    ))
}

#[test]
fn a_finding_is_made_where_it_is_true_and_not_one_step_away() {
    for (at, (state, check, seen, advice, node)) in ROWS.iter().enumerate() {
        let has = |report: &Report| {
            report.findings.iter().any(|finding| {
                (finding.state, finding.check) == (*state, *check)
                    && finding.seen.contains(seen)
                    && finding.advice.contains(advice)
            })
        };
        let (here, step_away) = (node(true), node(false));
        assert!(
            has(&here),
            "row {at}, {seen} ({advice}) is missing:\n{here}"
        );
        assert!(
            !has(&step_away),
            "row {at}, {seen} ({advice}) is wrong:\n{step_away}"
        );
    }
}

/// The texts of all findings that a test of this crate has seen, in which the lint of the workspace
/// requires each sentence of the source.
const TEXTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/texts.txt");

#[test]
fn each_finding_has_a_row() {
    // The other tests write the file then.
    if env::var_os("BLESS").is_some() {
        return;
    }
    let texts = fs::read_to_string(TEXTS).expect("the texts");
    for line in texts.lines() {
        let (check, text) = line.split_once(": ").expect("a subject");
        let (seen, advice) = text.split_once("\\n-> ").unwrap_or_default();
        let is_ok = advice.is_empty() || seen.contains("could not be checked");
        let has_row = ROWS.iter().any(|(_, row_check, row_seen, row_advice, _)| {
            *row_check == check && seen.contains(row_seen) && advice.contains(row_advice)
        });
        assert!(is_ok || has_row, "no row: {line}");
    }
}
