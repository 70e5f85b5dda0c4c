//! The table of flags, and the kinds of text that their values are.

use std::path::PathBuf;
use std::time::Duration;

use api::Group;
use storage_ops::{
    AllowedPortal, HostPath, NewFileSystem, OperationResult, ServiceName, Sid, SmbServer,
};
use tracing::Level;

use super::{Flag, FlagKind, Section};

/// The title of the flags that are listed by name alone. The parser notes those that are given.
pub const WITHOUT_EFFECT: &str = "Accepted for compatibility with klog, without effect";

const fn ignored_value(name: &'static str, value: &'static str) -> Flag {
    Flag {
        name,
        kind: FlagKind::Value(value),
        default: "",
        help: "",
        set: |_, _| Ok(()),
    }
}

const fn ignored_switch(name: &'static str) -> Flag {
    Flag {
        name,
        kind: FlagKind::Switch,
        default: "",
        help: "",
        set: |_, text| switch(text).map(drop),
    }
}

/// The flags that all programs share.
pub static TABLE: [Section; 5] = [
    Section {
        title: "Paths, new volumes and SMB",
        flags: &[
            Flag {
                name: "kubelet-path",
                kind: FlagKind::Value("DIR"),
                default: r"C:\var\lib\kubelet",
                help: "Kubelet's directory. Drivers may always change files below it. Paths \
                       without a drive are on its drive (volume RPCs, IsSymlink).",
                set: |flags, text| folder(text).map(|path| flags.node.kubelet_dir = path),
            },
            Flag {
                name: "working-dir",
                kind: FlagKind::Values("DIR"),
                default: "",
                help: "Also let drivers change files below this directory.",
                set: |flags, text| folder(text).map(|path| flags.node.working_dirs.push(path)),
            },
            Flag {
                name: "node-path",
                kind: FlagKind::Values("DIR"),
                default: "",
                help: "Protect the volumes on the path to this directory from drivers, for example \
                       the directory of the container runtime.",
                set: |flags, text| folder(text).map(|path| flags.node.node_paths.push(path)),
            },
            Flag {
                name: "kubelet-csi-plugins-path",
                kind: FlagKind::Value("DIR"),
                default: "",
                help: "Accept paths with the context PLUGIN only if they are below this directory.",
                set: |flags, text| optional(text, folder).map(|path| flags.node.plugin_dir = path),
            },
            Flag {
                name: "kubelet-pod-path",
                kind: FlagKind::Value("DIR"),
                default: "",
                help: "Accept paths with the context POD only if they are below this directory.",
                set: |flags, text| optional(text, folder).map(|path| flags.node.pod_dir = path),
            },
            Flag {
                name: "format-file-system",
                kind: FlagKind::Value("NAME"),
                default: "NTFS",
                help: "File system that FormatVolume gives a raw volume: NTFS or ReFS.",
                set: |flags, text| {
                    let of = |is_refs| {
                        if is_refs {
                            NewFileSystem::ReFs
                        } else {
                            NewFileSystem::Ntfs
                        }
                    };
                    either(text, "NTFS", "ReFS")
                        .map(|is_refs| flags.node.format_file_system = of(is_refs))
                },
            },
            Flag {
                name: "format-allocation-unit",
                kind: FlagKind::Value("BYTES"),
                default: "",
                help: "Allocation unit size: a power of two from 512 to 2097152, for ReFS 4096 or \
                       65536. Default: Windows chooses.",
                set: |flags, text| {
                    optional(text, number).map(|size| flags.node.format_allocation_unit = size)
                },
            },
            Flag {
                name: "format-writer-sid",
                kind: FlagKind::Values("SID"),
                default: "",
                help: "Grant the account with this SID the right Modify on new volumes, for \
                       example S-1-5-93-2-2 (ContainerUser).",
                set: |flags, text| sid(text).map(|sid| flags.node.format_writers.push(sid)),
            },
            Flag {
                name: "format-again",
                kind: FlagKind::Values("DIR"),
                default: "",
                help: "Let FormatVolume erase a volume that is mounted below this directory and \
                       nowhere else, and that no pod uses.",
                set: |flags, text| folder(text).map(|path| flags.node.format_again.push(path)),
            },
            Flag {
                name: "leave-partitioned-disks",
                kind: FlagKind::Switch,
                default: "false",
                help: "PartitionDisk leaves a partitioned disk offline or read-only. Default: it \
                       brings the disk online.",
                set: |flags, text| switch(text).map(|on| flags.node.leave_partitioned_disks = on),
            },
            Flag {
                name: "require-privacy",
                kind: FlagKind::Switch,
                default: "true",
                help: "Require encryption for new SMB mappings.",
                set: |flags, text| switch(text).map(|on| flags.node.require_privacy = on),
            },
            Flag {
                name: "share-smb-mappings",
                kind: FlagKind::Switch,
                default: "false",
                help: "Let a request with another user name use an existing SMB mapping, with the \
                       access of the mapping's user.",
                set: |flags, text| switch(text).map(|on| flags.node.share_smb_mappings = on),
            },
            Flag {
                name: "refuse-other-smb-passwords",
                kind: FlagKind::Switch,
                default: "false",
                help: "Refuse a request whose password differs from that of the existing SMB \
                       mapping. Default: log a warning.",
                set: |flags, text| {
                    switch(text).map(|on| flags.node.refuse_other_smb_passwords = on)
                },
            },
        ],
    },
    Section {
        title: "Least privilege",
        flags: &[
            Flag {
                name: "api-groups",
                kind: FlagKind::Value("GROUP,..."),
                default: "disk,filesystem,iscsi,smb,system,volume",
                help: "Serve only these API groups. Other groups have no pipe.",
                set: |flags, text| items(text, group).map(|groups| flags.api_groups = groups),
            },
            Flag {
                name: "services",
                kind: FlagKind::Value("NAME,..."),
                default: "",
                help: "Let drivers start and stop only these Windows services. 'none' allows no \
                       service.",
                set: |flags, text| {
                    list(text, ServiceName::parse)
                        .map(|services| flags.node.services = Some(services))
                },
            },
            Flag {
                name: "smb-servers",
                kind: FlagKind::Value("HOST,..."),
                default: "",
                help: "Map only shares of these SMB servers, spelled as in drivers' requests. \
                       'none' allows no server.",
                set: |flags, text| {
                    list(text, SmbServer::parse)
                        .map(|servers| flags.node.smb_servers = Some(servers))
                },
            },
            Flag {
                name: "iscsi-portals",
                kind: FlagKind::Value("HOST[:PORT],..."),
                default: "",
                help: "Use only these iSCSI target portals or networks (10.0.0.0/24). Default \
                       port: 3260. 'none' allows no portal.",
                set: |flags, text| {
                    list(text, AllowedPortal::parse)
                        .map(|portals| flags.node.iscsi_portals = Some(portals))
                },
            },
        ],
    },
    Section {
        title: "Endpoints and limits",
        flags: &[
            Flag {
                name: "pipe-sid",
                kind: FlagKind::Values("SID"),
                default: "",
                help: "Also let the account with this SID open the pipes (Windows only).",
                set: |flags, text| {
                    flags.pipe_sids.push(text.to_owned());
                    Ok(())
                },
            },
            Flag {
                name: "groupless-pipes",
                kind: FlagKind::Switch,
                default: "false",
                help: "Also serve one pipe per version for all groups, such as csi-proxy-v1. Early \
                       csi-proxy manifests mount these pipes.",
                set: |flags, text| switch(text).map(|on| flags.groupless_pipes = on),
            },
            Flag {
                name: "max-connections",
                kind: FlagKind::Value("COUNT"),
                default: "1024",
                help: "Maximum open connections. At the limit, a new one evicts one that has not \
                       started HTTP/2, else the longest-idle one.",
                set: |flags, text| positive(text).map(|count| flags.max_connections = count),
            },
            Flag {
                name: "drain",
                kind: FlagKind::Value("SECONDS"),
                default: "30",
                help: "Seconds to wait for running calls at shutdown. Use 4 in a HostProcess \
                       container, which Windows ends after 5.",
                set: |flags, text| {
                    number(text).map(|seconds| flags.drain = Duration::from_secs(seconds))
                },
            },
        ],
    },
    Section {
        title: "Log and metrics",
        flags: &[
            Flag {
                name: "v",
                kind: FlagKind::Value("LEVEL"),
                default: "0",
                help: "Log level. 0 and 1: events. 2 to 4: also the start and end of each call. 5 \
                       and more: everything.",
                set: |flags, text| verbosity(text).map(|level| flags.log.verbosity = level),
            },
            Flag {
                name: "log_file",
                kind: FlagKind::Value("FILE"),
                default: "",
                help: "Also log to this file. With -logtostderr=false, standard error gets only \
                       lines at or above -stderrthreshold.",
                set: |flags, text| file(text).map(|path| flags.log.file = path),
            },
            Flag {
                name: "log_dir",
                kind: FlagKind::Value("DIR"),
                default: "",
                help: "Log to a file in this folder. Requires -logtostderr=false. -log_file takes \
                       precedence.",
                set: |flags, text| file(text).map(|path| flags.log.folder = path),
            },
            Flag {
                name: "log_file_max_size",
                kind: FlagKind::Value("MB"),
                default: "1800",
                help: "Maximum total size of the log file and its three old files. 0 means no \
                       limit.",
                set: |flags, text| number(text).map(|megabytes| flags.log.megabytes = megabytes),
            },
            Flag {
                name: "logtostderr",
                kind: FlagKind::Switch,
                default: "true",
                help: "Log to standard error.",
                set: |flags, text| switch(text).map(|on| flags.log.to_stderr = on),
            },
            Flag {
                name: "alsologtostderr",
                kind: FlagKind::Switch,
                default: "false",
                help: "Log to standard error and to the file, whatever -logtostderr says.",
                set: |flags, text| switch(text).map(|on| flags.log.also_to_stderr = on),
            },
            Flag {
                name: "stderrthreshold",
                kind: FlagKind::Value("LEVEL"),
                default: "ERROR",
                help: "If the log goes only to a file, lines from this level on also go to \
                       standard error: INFO, WARNING, ERROR, FATAL.",
                set: |flags, text| {
                    severity(text).map(|severity| flags.log.stderr_threshold = severity)
                },
            },
            Flag {
                name: "logging-format",
                kind: FlagKind::Value("FORMAT"),
                default: "text",
                help: "Format of the log: text or klog (klog's lines), or json (the field names of \
                       Kubernetes' components).",
                set: |flags, text| {
                    let text = if text == "klog" { "text" } else { text };
                    either(text, "text", "json").map(|is_json| flags.log.is_json = is_json)
                },
            },
            Flag {
                name: "metrics-bind-address",
                kind: FlagKind::Values("ADDR"),
                default: "",
                help: "Serve /metrics, /healthz, /readyz at this address, such as :9818; on its \
                       port, 127.0.0.1 also serves the status pages.",
                set: |flags, text| {
                    let addresses = text.split(',').filter(|address| !address.is_empty());
                    flags.metrics_addresses.extend(addresses.map(str::to_owned));
                    Ok(())
                },
            },
        ],
    },
    Section {
        title: WITHOUT_EFFECT,
        flags: &[
            ignored_value("log_backtrace_at", "LINE"),
            ignored_value("vmodule", "LEVELS"),
            ignored_switch("one_output"),
            ignored_switch("add_dir_header"),
            ignored_switch("skip_headers"),
            ignored_switch("skip_log_headers"),
        ],
    },
];

/// Parses a severity as klog does: by its name or number. No line is as severe as FATAL.
fn severity(text: &str) -> Result<Option<Level>, String> {
    match text.to_ascii_uppercase().as_str() {
        "INFO" | "0" => Ok(Some(Level::INFO)),
        "WARNING" | "1" => Ok(Some(Level::WARN)),
        "ERROR" | "2" => Ok(Some(Level::ERROR)),
        "FATAL" | "3" => Ok(None),
        _ => Err("expected INFO, WARNING, ERROR or FATAL".to_owned()),
    }
}

/// Parses Go's words for true and false.
pub fn switch(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// Parses a text unless it is empty: an empty value is no value.
fn optional<T>(
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if text.is_empty() {
        Ok(None)
    } else {
        parse(text).map(Some)
    }
}

/// Parses the path of a file or folder; empty for none.
pub fn file(text: &str) -> Result<Option<PathBuf>, String> {
    optional(text, |text| Ok(PathBuf::from(text)))
}

/// Parses one of two names. Returns whether it is the second.
pub(crate) fn either(text: &str, first: &str, second: &str) -> Result<bool, String> {
    if [first, second].contains(&text) {
        Ok(text == second)
    } else {
        Err(format!("expected {first} or {second}"))
    }
}

/// Parses a log level, which may be negative, as in klog.
fn verbosity(text: &str) -> Result<i32, String> {
    text.parse()
        .map_err(|_| "expected a whole number".to_owned())
}

fn number<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let parsed = text
        .parse::<u64>()
        .ok()
        .and_then(|number| N::try_from(number).ok());
    parsed.ok_or_else(|| "expected a whole number".to_owned())
}

/// Parses a limit that would leave nothing to serve if it were 0.
fn positive<N: TryFrom<u64> + PartialOrd + From<u8>>(text: &str) -> Result<N, String> {
    number(text)
        .ok()
        .filter(|limit| *limit >= N::from(1))
        .ok_or_else(|| "expected a whole number of at least 1".to_owned())
}

fn sid(text: &str) -> Result<Sid, String> {
    text.parse()
        .map_err(|_| "expected a SID, such as S-1-5-93-2-2".to_owned())
}

fn group(name: &str) -> Result<Group, String> {
    let group = Group::ALL.into_iter().find(|group| group.name() == name);
    group.ok_or_else(|| {
        format!(
            "'{name}' is not one of {}",
            Group::ALL.map(Group::name).join(", ")
        )
    })
}

/// Parses items that are separated by commas.
fn items<T>(text: &str, parse: impl FnMut(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(str::trim).map(parse).collect()
}

/// Parses the items that drivers may use. The list cannot be empty, since that could mean both all
/// and none.
fn list<T>(text: &str, parse: fn(&str) -> OperationResult<T>) -> Result<Vec<T>, String> {
    match text {
        "" => Err("expected a list separated by commas, or 'none'".to_owned()),
        "none" => Ok(Vec::new()),
        _ => items(text, |item| parse(item).map_err(|fault| fault.to_string())),
    }
}

fn folder(text: &str) -> Result<HostPath, String> {
    HostPath::parse(text).map_err(|fault| fault.to_string())
}
