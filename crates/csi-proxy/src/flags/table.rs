//! The table of flags.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{Flag, Kind, folder, number, some_text, switch};

/// The sections of `--help`, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// What drivers may do.
    Node,
    /// Where drivers find the daemon, and what bounds them.
    Endpoints,
    /// The log and the metrics.
    Telemetry,
    /// The simulated node.
    Simulation,
    /// What is accepted because command lines have it, and does nothing.
    WithoutEffect,
}

impl Section {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Node, Self::Endpoints, Self::Telemetry, Self::Simulation, Self::WithoutEffect];
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "What drivers may do",
            Self::Endpoints => "Endpoints",
            Self::Telemetry => "Log and metrics",
            Self::Simulation => "Simulated node",
            Self::WithoutEffect => "Accepted for klog's sake, without effect",
        })
    }
}

/// A flag of klog's that is read and then forgotten.
macro_rules! without_effect {
    ($name:literal, $kind:expr) => {
        Flag {
            name: $name,
            kind: $kind,
            default: "",
            help: "",
            section: Section::WithoutEffect,
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

/// All flags.
pub static TABLE: [Flag; 30] = [
    Flag {
        name: "kubelet-path",
        kind: Kind::Value("DIR"),
        default: r"C:\var\lib\kubelet",
        help: "Kubelet's directory, always a working directory. Paths without a drive lie on its drive.",
        section: Section::Node,
        set: |flags, text| folder(text).map(|path| flags.node.kubelet_dir = path),
    },
    Flag {
        name: "working-dir",
        kind: Kind::Values("DIR"),
        default: "",
        help: "A further directory in which drivers may change things.",
        section: Section::Node,
        set: |flags, text| folder(text).map(|path| flags.node.working_dirs.push(path)),
    },
    Flag {
        name: "kubelet-csi-plugins-path",
        kind: Kind::Value("DIR"),
        default: "",
        help: "Where alone paths of the context PLUGIN may lie, in the versions that have contexts.",
        section: Section::Node,
        set: |flags, text| {
            flags.node.plugin_dir = some_text(text).as_deref().map(folder).transpose()?;
            Ok(())
        },
    },
    Flag {
        name: "kubelet-pod-path",
        kind: Kind::Value("DIR"),
        default: "",
        help: "Where alone paths of the context POD may lie, in the versions that have contexts.",
        section: Section::Node,
        set: |flags, text| {
            flags.node.pod_dir = some_text(text).as_deref().map(folder).transpose()?;
            Ok(())
        },
    },
    Flag {
        name: "require-privacy",
        kind: SWITCH,
        default: "true",
        help: "Make SMB mappings that encrypt.",
        section: Section::Node,
        set: |flags, text| switch(text).map(|on| flags.node.require_privacy = on),
    },
    Flag {
        name: "share-smb-mappings",
        kind: SWITCH,
        default: "false",
        help: "Serve a second user with the mapping that a first one's credentials made.",
        section: Section::Node,
        set: |flags, text| switch(text).map(|on| flags.node.share_smb_mappings = on),
    },
    Flag {
        name: "windows-service",
        kind: SWITCH,
        default: "false",
        help: "Run as a Windows service.",
        section: Section::Endpoints,
        set: |flags, text| switch(text).map(|on| flags.windows_service = on),
    },
    Flag {
        name: "pipe-sid",
        kind: Kind::Values("SID"),
        default: "",
        help: "A further SID that may open the pipes (Windows).",
        section: Section::Endpoints,
        set: |flags, text| {
            flags.pipe_sids.push(text.to_owned());
            Ok(())
        },
    },
    Flag {
        name: "groupless-pipes",
        kind: SWITCH,
        default: "false",
        help: "Serve csi-proxy-<version> too, each with all groups of that version, as the first manifests mount it.",
        section: Section::Endpoints,
        set: |flags, text| switch(text).map(|on| flags.groupless_pipes = on),
    },
    Flag {
        name: "socket-folder",
        kind: Kind::Value("DIR"),
        default: "",
        help: "The folder of the sockets, where there are no pipes; made if missing, open to its owner alone.",
        section: Section::Endpoints,
        set: |flags, text| {
            flags.socket_folder = some_text(text).map(PathBuf::from);
            Ok(())
        },
    },
    Flag {
        name: "max-connections",
        kind: Kind::Value("COUNT"),
        default: "4096",
        help: "From so many open connections on, a new one closes one: one that said nothing, else the one longest without a call. \
               While all have a call in flight, calls of further ones are refused.",
        section: Section::Endpoints,
        set: |flags, text| number(text).map(|count| flags.max_connections = count),
    },
    Flag {
        name: "max-silence",
        kind: Kind::Value("SECONDS"),
        default: "120",
        help: "How long a connection may be open without having said anything.",
        section: Section::Endpoints,
        set: |flags, text| number(text).map(|seconds| flags.silence = Duration::from_secs(seconds)),
    },
    Flag {
        name: "max-calls",
        kind: Kind::Value("COUNT"),
        default: "2048",
        help: "How many calls may run at once, of all connections; half are kept for connections that have none. As many may wait.",
        section: Section::Endpoints,
        set: |flags, text| number(text).map(|count| flags.max_calls = count),
    },
    Flag {
        name: "drain",
        kind: Kind::Value("SECONDS"),
        default: "30",
        help: "How long calls that are under way may take to end once the daemon is told to stop.",
        section: Section::Endpoints,
        set: |flags, text| number(text).map(|seconds| flags.drain = Duration::from_secs(seconds)),
    },
    Flag {
        name: "v",
        kind: Kind::Value("LEVEL"),
        default: "0",
        help: "How much is logged: up to 1 what matters, up to 4 each call, from 5 on everything.",
        section: Section::Telemetry,
        set: |flags, text| {
            flags.log.verbosity = text.parse().map_err(|_| "it is a whole number".to_owned())?;
            Ok(())
        },
    },
    Flag {
        name: "log_file",
        kind: Kind::Value("FILE"),
        default: "",
        help: "Log to this file too, or with -logtostderr=false to it alone.",
        section: Section::Telemetry,
        set: |flags, text| {
            flags.log.file = some_text(text).map(PathBuf::from);
            Ok(())
        },
    },
    Flag {
        name: "log_file_max_size",
        kind: Kind::Value("MB"),
        default: "1800",
        help: "How large the log file may grow before it is put aside; 0 is without a limit.",
        section: Section::Telemetry,
        set: |flags, text| number(text).map(|megabytes| flags.log.megabytes = megabytes),
    },
    Flag {
        name: "logtostderr",
        kind: SWITCH,
        default: "true",
        help: "Log to standard error.",
        section: Section::Telemetry,
        set: |flags, text| switch(text).map(|on| flags.log.to_stderr = on),
    },
    Flag {
        name: "alsologtostderr",
        kind: SWITCH,
        default: "false",
        help: "Log to standard error as well as to the file, whatever -logtostderr says.",
        section: Section::Telemetry,
        set: |flags, text| switch(text).map(|on| flags.log.also_to_stderr = on),
    },
    Flag {
        name: "metrics-bind-address",
        kind: Kind::Value("ADDRESS"),
        default: "",
        help: "Answer GET /metrics and /healthz here, such as 127.0.0.1:8888; a lone :8888 is on all interfaces.",
        section: Section::Telemetry,
        set: |flags, text| {
            flags.metrics_address = some_text(text);
            Ok(())
        },
    },
    Flag {
        name: "node",
        kind: Kind::Value("FILE"),
        default: "",
        help: "A TOML file that describes the simulated node; without it there is a built-in one.",
        section: Section::Simulation,
        set: |flags, text| {
            flags.node_file = some_text(text).map(PathBuf::from);
            Ok(())
        },
    },
    Flag {
        name: "simulate",
        kind: SWITCH,
        default: "false",
        help: "Serve the simulated node even on Windows.",
        section: Section::Simulation,
        set: |flags, text| switch(text).map(|on| flags.simulate = on),
    },
    without_effect!("log_dir", Kind::Value("DIR")),
    without_effect!("log_backtrace_at", Kind::Value("LINE")),
    without_effect!("vmodule", Kind::Value("LEVELS")),
    without_effect!("stderrthreshold", Kind::Value("LEVEL")),
    without_effect!("one_output", SWITCH),
    without_effect!("add_dir_header", SWITCH),
    without_effect!("skip_headers", SWITCH),
    without_effect!("skip_log_headers", SWITCH),
];
