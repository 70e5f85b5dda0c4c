//! The table of flags, and the kinds of text that their values are.

use std::path::PathBuf;
use std::time::Duration;

use api::Group;
use storage_ops::{AllowedPortal, HostPath, OperationResult, ServiceName, SmbServer};

use super::{Flag, Kind, Severity};

/// The headings of the help.
mod section {
    pub(super) const STORAGE: &str = "Paths and SMB";
    pub(super) const LEAST_PRIVILEGE: &str = "Least privilege";
    pub(super) const ENDPOINTS: &str = "Endpoints and limits";
    pub(super) const TELEMETRY: &str = "Log and metrics";
}

/// The heading of the flags that are listed by name alone.
pub const WITHOUT_EFFECT: &str = "Accepted for compatibility with klog, without effect";

/// A flag of klog's that is checked and then ignored.
macro_rules! without_effect {
    ($name:literal, $kind:expr) => {
        Flag {
            name: $name,
            kind: $kind,
            default: "",
            help: "",
            section: WITHOUT_EFFECT,
            set: |flags, text| {
                if $kind == Kind::Switch {
                    switch(text)?;
                }
                flags.without_effect.push($name);
                Ok(())
            },
        }
    };
}

const SWITCH: Kind = Kind::Switch;

/// The flags that all programs share.
pub static TABLE: [Flag; 33] = [
    Flag {
        name: "kubelet-path",
        kind: Kind::Value("DIR"),
        default: r"C:\var\lib\kubelet",
        help: "Kubelet's directory, always a working directory. Volume RPCs and IsSymlink take paths without a drive to be on its drive.",
        section: section::STORAGE,
        set: |flags, text| folder(text).map(|path| flags.node.kubelet_dir = path),
    },
    Flag {
        name: "working-dir",
        kind: Kind::Values("DIR"),
        default: "",
        help: "Also let drivers change files below this directory.",
        section: section::STORAGE,
        set: |flags, text| folder(text).map(|path| flags.node.working_dirs.push(path)),
    },
    Flag {
        name: "node-path",
        kind: Kind::Values("DIR"),
        default: "",
        help: "Protect the volumes on the path to this directory, such as the container runtime's, from drivers.",
        section: section::STORAGE,
        set: |flags, text| folder(text).map(|path| flags.node.node_paths.push(path)),
    },
    Flag {
        name: "kubelet-csi-plugins-path",
        kind: Kind::Value("DIR"),
        default: "",
        help: "Restrict PLUGIN-context paths to this directory.",
        section: section::STORAGE,
        set: |flags, text| {
            flags.node.plugin_dir = some_text(text).as_deref().map(folder).transpose()?;
            Ok(())
        },
    },
    Flag {
        name: "kubelet-pod-path",
        kind: Kind::Value("DIR"),
        default: "",
        help: "Restrict POD-context paths to this directory.",
        section: section::STORAGE,
        set: |flags, text| {
            flags.node.pod_dir = some_text(text).as_deref().map(folder).transpose()?;
            Ok(())
        },
    },
    Flag {
        name: "require-privacy",
        kind: SWITCH,
        default: "true",
        help: "Require encryption for new SMB mappings.",
        section: section::STORAGE,
        set: |flags, text| switch(text).map(|on| flags.node.require_privacy = on),
    },
    Flag {
        name: "share-smb-mappings",
        kind: SWITCH,
        default: "false",
        help: "Let a second user use an SMB mapping that was made with the first user's credentials.",
        section: section::STORAGE,
        set: |flags, text| switch(text).map(|on| flags.node.share_smb_mappings = on),
    },
    Flag {
        name: "refuse-other-smb-passwords",
        kind: SWITCH,
        default: "false",
        help: "Refuse a request with another password than the one that made its SMB mapping, instead of logging a warning.",
        section: section::STORAGE,
        set: |flags, text| switch(text).map(|on| flags.node.refuse_other_smb_passwords = on),
    },
    Flag {
        name: "api-groups",
        kind: Kind::Value("GROUP,..."),
        default: "disk,filesystem,iscsi,smb,system,volume",
        help: "Serve only these API groups. The pipes of the others do not exist.",
        section: section::LEAST_PRIVILEGE,
        set: |flags, text| {
            flags.api_groups = items(text, |name| {
                let group = Group::ALL.into_iter().find(|group| group.name() == name);
                group.ok_or_else(|| format!("'{name}' is not one of {}", Group::ALL.map(Group::name).join(", ")))
            })?;
            Ok(())
        },
    },
    Flag {
        name: "services",
        kind: Kind::Value("NAME,..."),
        default: "",
        help: "Let drivers start and stop only these Windows services; 'none' for no service.",
        section: section::LEAST_PRIVILEGE,
        set: |flags, text| list(text, ServiceName::parse).map(|services| flags.node.services = Some(services)),
    },
    Flag {
        name: "smb-servers",
        kind: Kind::Value("HOST,..."),
        default: "",
        help: "Map only shares of these SMB servers, named as drivers name them; 'none' for no server.",
        section: section::LEAST_PRIVILEGE,
        set: |flags, text| list(text, SmbServer::parse).map(|servers| flags.node.smb_servers = Some(servers)),
    },
    Flag {
        name: "iscsi-portals",
        kind: Kind::Value("HOST[:PORT],..."),
        default: "",
        help: "Use only these iSCSI target portals or networks (10.0.0.0/24); port 3260 if not given; 'none' for no portal.",
        section: section::LEAST_PRIVILEGE,
        set: |flags, text| list(text, AllowedPortal::parse).map(|portals| flags.node.iscsi_portals = Some(portals)),
    },
    Flag {
        name: "pipe-sid",
        kind: Kind::Values("SID"),
        default: "",
        help: "Also let the account with this SID open the pipes (Windows).",
        section: section::ENDPOINTS,
        set: |flags, text| {
            flags.pipe_sids.push(text.to_owned());
            Ok(())
        },
    },
    Flag {
        name: "groupless-pipes",
        kind: SWITCH,
        default: "false",
        help: "Also serve one pipe for all groups of each version, such as csi-proxy-v1, which early csi-proxy manifests mount.",
        section: section::ENDPOINTS,
        set: |flags, text| switch(text).map(|on| flags.groupless_pipes = on),
    },
    Flag {
        name: "max-connections",
        kind: Kind::Value("COUNT"),
        default: "1024",
        help: "Maximum open connections. At the limit a new connection evicts a silent one, else the least recently \
               used idle one.",
        section: section::ENDPOINTS,
        set: |flags, text| positive(text).map(|count| flags.max_connections = count),
    },
    Flag {
        name: "max-silence",
        kind: Kind::Value("SECONDS"),
        default: "120",
        help: "Close a connection that has sent no HTTP/2 preface within this time.",
        section: section::ENDPOINTS,
        set: |flags, text| positive(text).map(|seconds| flags.silence = Duration::from_secs(seconds)),
    },
    Flag {
        name: "max-calls",
        kind: Kind::Value("COUNT"),
        default: "2048",
        help: "Maximum running calls; the same number may wait. Half are reserved for connections without another running call.",
        section: section::ENDPOINTS,
        set: |flags, text| positive(text).map(|count| flags.max_calls = count),
    },
    Flag {
        name: "drain",
        kind: Kind::Value("SECONDS"),
        default: "30",
        help: "Time for running calls to finish when the daemon stops. In a HostProcess container, which gets 5 seconds: 4.",
        section: section::ENDPOINTS,
        set: |flags, text| number(text).map(|seconds| flags.drain = Duration::from_secs(seconds)),
    },
    Flag {
        name: "v",
        kind: Kind::Value("LEVEL"),
        default: "0",
        help: "Log level. 0 and 1: events; 2 to 4: also the start and end of each call; 5 and more: everything.",
        section: section::TELEMETRY,
        set: |flags, text| {
            flags.log.verbosity = text.parse().map_err(|_| "expected a whole number".to_owned())?;
            Ok(())
        },
    },
    Flag {
        name: "log_file",
        kind: Kind::Value("FILE"),
        default: "",
        help: "Log to this file as well, or with -logtostderr=false to it alone, but for -stderrthreshold.",
        section: section::TELEMETRY,
        set: |flags, text| {
            flags.log.file = some_text(text).map(PathBuf::from);
            Ok(())
        },
    },
    Flag {
        name: "log_dir",
        kind: Kind::Value("DIR"),
        default: "",
        help: "Without -log_file, and with -logtostderr=false: log to a file in this folder.",
        section: section::TELEMETRY,
        set: |flags, text| {
            flags.log.folder = some_text(text).map(PathBuf::from);
            Ok(())
        },
    },
    Flag {
        name: "log_file_max_size",
        kind: Kind::Value("MB"),
        default: "1800",
        help: "Maximum size of the log file and its three old files together. 0 means no limit.",
        section: section::TELEMETRY,
        set: |flags, text| number(text).map(|megabytes| flags.log.megabytes = megabytes),
    },
    Flag {
        name: "logtostderr",
        kind: SWITCH,
        default: "true",
        help: "Log to standard error.",
        section: section::TELEMETRY,
        set: |flags, text| switch(text).map(|on| flags.log.to_stderr = on),
    },
    Flag {
        name: "alsologtostderr",
        kind: SWITCH,
        default: "false",
        help: "Log to standard error as well as to the file, regardless of -logtostderr.",
        section: section::TELEMETRY,
        set: |flags, text| switch(text).map(|on| flags.log.also_to_stderr = on),
    },
    Flag {
        name: "stderrthreshold",
        kind: Kind::Value("LEVEL"),
        default: "ERROR",
        help: "With a file and -logtostderr=false: also log lines from this level on (INFO, WARNING, ERROR, FATAL) to standard error.",
        section: section::TELEMETRY,
        set: |flags, text| severity(text).map(|severity| flags.log.stderr_threshold = severity),
    },
    Flag {
        name: "logging-format",
        kind: Kind::Value("FORMAT"),
        default: "text",
        help: "Format of the log: text, or json with the names of fields that Kubernetes' components use.",
        section: section::TELEMETRY,
        set: |flags, text| {
            flags.log.is_json = match text {
                "text" => false,
                "json" => true,
                _ => return Err("expected text or json".to_owned()),
            };
            Ok(())
        },
    },
    Flag {
        name: "metrics-bind-address",
        kind: Kind::Value("ADDRESS"),
        default: "",
        help: "Serve /metrics, /healthz, /readyz and, to the node itself, a status page at this address, such as 127.0.0.1:9818 or :9818.",
        section: section::TELEMETRY,
        set: |flags, text| {
            flags.metrics_address = some_text(text);
            Ok(())
        },
    },
    without_effect!("log_backtrace_at", Kind::Value("LINE")),
    without_effect!("vmodule", Kind::Value("LEVELS")),
    without_effect!("one_output", SWITCH),
    without_effect!("add_dir_header", SWITCH),
    without_effect!("skip_headers", SWITCH),
    without_effect!("skip_log_headers", SWITCH),
];

/// Parses a severity as klog does: by its name or number.
fn severity(text: &str) -> Result<Severity, String> {
    match text.to_ascii_uppercase().as_str() {
        "INFO" | "0" => Ok(Severity::Info),
        "WARNING" | "1" => Ok(Severity::Warning),
        "ERROR" | "2" => Ok(Severity::Error),
        "FATAL" | "3" => Ok(Severity::Fatal),
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

/// Returns the text unless it is empty: an empty value is no value.
pub fn some_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn number<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let parsed = text.parse::<u64>().ok().and_then(|number| N::try_from(number).ok());
    parsed.ok_or_else(|| "expected a whole number".to_owned())
}

/// Parses a limit that would leave nothing to serve if it were 0.
fn positive<N: TryFrom<u64> + PartialOrd + From<u8>>(text: &str) -> Result<N, String> {
    number(text)
        .ok()
        .filter(|limit| *limit >= N::from(1))
        .ok_or_else(|| "expected a whole number of at least 1".to_owned())
}

/// Parses items that are separated by commas.
fn items<T>(text: &str, parse: impl FnMut(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(str::trim).map(parse).collect()
}

/// Parses the items that drivers may use. The list cannot be empty, since that could mean both all and none.
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
