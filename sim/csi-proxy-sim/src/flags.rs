//! The flags of `csi-proxy-sim`: those of the daemon, and its own.

use std::net::SocketAddr;
use std::path::PathBuf;

use csi_proxy::doctor::{DoctorFlags, EXAMINATION};
use csi_proxy::flags::table::{file, switch};
use csi_proxy::flags::{Flag, FlagKind, Flags, Program, Section};

use api::{GROUP_VERSIONS, GroupVersion};

use crate::layer::GoVersion;

/// The values of all flags.
#[derive(Clone, Debug, Default)]
pub struct SimFlags {
    /// The values of the flags that the daemon takes too.
    pub daemon: Flags,
    /// The file that describes the node.
    pub node_file: Option<PathBuf>,
    /// The file that keeps the node.
    pub state_file: Option<PathBuf>,
    /// Whether the node waits for nothing.
    pub is_fast: bool,
    /// The folder of the sockets.
    pub socket_folder: Option<PathBuf>,
    /// The TCP address at which all endpoints are served too.
    pub listen: Option<SocketAddr>,
    /// The group-versions whose endpoints are open; all if it is empty.
    pub versions: Vec<&'static GroupVersion>,
    /// The version of the Go program to imitate.
    pub(crate) go_version: Option<GoVersion>,
    /// The file that calls are recorded in.
    pub record: Option<PathBuf>,
    /// Whether connections go to the daemon directly.
    pub is_direct: bool,
    /// Whether the program ends with its standard input.
    pub exits_with_stdin: bool,
}

impl AsMut<Flags> for SimFlags {
    fn as_mut(&mut self) -> &mut Flags {
        &mut self.daemon
    }
}

const SECTION: &str = "Simulated node";

fn tcp_address(text: &str) -> Result<Option<SocketAddr>, String> {
    let parsed = (!text.is_empty()).then(|| text.parse()).transpose();
    parsed.map_err(|_| "must be an IP address and a port".to_owned())
}

fn versions(text: &str) -> Result<Vec<&'static GroupVersion>, String> {
    let find = |name: &str| {
        let mut rows = GROUP_VERSIONS.iter();
        let found = rows.find(|row| name.split_once('/') == Some((row.group.name(), row.version)));
        found.ok_or_else(|| format!("no group-version is called {name:?}: write disk/v1beta3"))
    };
    text.split(',')
        .filter(|name| !name.is_empty())
        .map(|name| find(name.trim()))
        .collect()
}

/// Returns the flag `-node`.
const fn node_flag<T>(help: &'static str, set: fn(&mut T, &str) -> Result<(), String>) -> Flag<T> {
    Flag {
        name: "node",
        kind: FlagKind::Value("FILE"),
        default: "",
        help,
        set,
    }
}

/// The program.
pub static CSI_PROXY_SIM: Program<SimFlags> = Program {
    name: "csi-proxy-sim",
    about: "Serves a simulated Windows node to CSI drivers and their tests.",
    commands: &[
        ("[FLAGS]", "serve until stopped"),
        ("demo", "run the calls of nine CSI drivers"),
        (
            "replay [FLAGS] FILE",
            "run recorded calls, and compare the answers",
        ),
        ("ctl COMMAND", "change a running csi-proxy-sim"),
        ("doctor [FLAGS]", "examine the node and list what is wrong"),
        ("print-node", "print the node file of the built-in node"),
        ("help", "print this help"),
        ("version", "print the version"),
    ],
    own_flags: &[Section {
        title: SECTION,
        flags: &[
            node_flag(
                "Serve the node that this TOML file describes, instead of the built-in one.",
                |flags, text| file(text).map(|path| flags.node_file = path),
            ),
            Flag {
                name: "state",
                kind: FlagKind::Value("FILE"),
                default: "",
                help: "Keep the node in this file: start from it if it exists, else from -node, \
                       and write it after changes.",
                set: |flags, text| file(text).map(|path| flags.state_file = path),
            },
            Flag {
                name: "fast",
                kind: FlagKind::Switch,
                default: "false",
                help: "Let no operation of the node take time, whatever the node file says.",
                set: |flags, text| switch(text).map(|on| flags.is_fast = on),
            },
            Flag {
                name: "socket-folder",
                kind: FlagKind::Value("DIR"),
                default: "",
                help: "Folder for the sockets, which only their owner can open; created if \
                       missing. No effect on Windows.",
                set: |flags, text| file(text).map(|path| flags.socket_folder = path),
            },
            Flag {
                name: "listen",
                kind: FlagKind::Value("ADDRESS"),
                default: "",
                help: "Also serve all group-versions and the control API at this TCP address, such \
                       as 127.0.0.1:9900. Without a password.",
                set: |flags, text| tcp_address(text).map(|address| flags.listen = address),
            },
            Flag {
                name: "api-versions",
                kind: FlagKind::Value("VERSION,..."),
                default: "",
                help: "Open only the endpoints of these group-versions, such as \
                       disk/v1beta3,volume/v1beta3.",
                set: |flags, text| versions(text).map(|rows| flags.versions = rows),
            },
            Flag {
                name: "like-go",
                kind: FlagKind::Switch,
                default: "false",
                help: "Answer as the csi-proxy written in Go does: Unknown for every error, and \
                       more. -like-go=1.3 for its version 1.3.",
                set: |flags, text| GoVersion::parse(text).map(|version| flags.go_version = version),
            },
            Flag {
                name: "record",
                kind: FlagKind::Value("FILE"),
                default: "",
                help: "Record the calls of drivers and the changes of the node in this file, \
                       without passwords, for 'replay'.",
                set: |flags, text| file(text).map(|path| flags.record = path),
            },
            Flag {
                name: "direct",
                kind: FlagKind::Switch,
                default: "false",
                help: "Pass connections to the daemon as they are, for measurements. Faults of \
                       RPCs then never happen.",
                set: |flags, text| switch(text).map(|on| flags.is_direct = on),
            },
            Flag {
                name: "exit-with-stdin",
                kind: FlagKind::Switch,
                default: "false",
                help: "Exit when standard input ends, as it does when the process at its other end \
                       has died. Removes the socket folder if it is empty then.",
                set: |flags, text| switch(text).map(|on| flags.exits_with_stdin = on),
            },
        ],
    }],
};

/// The command `csi-proxy-sim doctor`.
pub static CSI_PROXY_SIM_DOCTOR: Program<DoctorFlags> = Program {
    name: "csi-proxy-sim doctor",
    about: "Examines a simulated node as csi-proxy doctor examines a Windows node.\n\
            The node is as at its start; a running csi-proxy-sim is not queried.",
    commands: &[("[FLAGS]", "examine the node")],
    own_flags: &[
        Section {
            title: SECTION,
            flags: &[node_flag(
                "Examine the node that this TOML file describes, instead of the built-in one.",
                |flags, text| file(text).map(|path| flags.node_file = path),
            )],
        },
        EXAMINATION,
    ],
};

#[cfg(test)]
mod tests {
    use csi_proxy::flags::help::Help;
    use csi_proxy::flags::{TABLE, flags_of, markdown};

    use super::CSI_PROXY_SIM;

    fn parse(line: &str) -> Result<super::SimFlags, String> {
        let words = line.split_whitespace().map(str::to_owned);
        CSI_PROXY_SIM
            .parse(words)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_daemons_flags_and_the_programs_own_mix_in_any_order() {
        let flags =
            parse("-v=5 -node node.toml --drain=7 -socket-folder=/run/x rest -node=y").unwrap();
        assert_eq!(flags.node_file.unwrap().to_str(), Some("node.toml"));
        assert_eq!(flags.socket_folder.unwrap().to_str(), Some("/run/x"));
        assert_eq!(
            (flags.daemon.log.verbosity, flags.daemon.drain.as_secs()),
            (5, 7)
        );
        assert_eq!(flags.daemon.rest, ["rest", "-node=y"]);
        assert!(parse("-node= -socket-folder=").unwrap().node_file.is_none());
    }

    #[test]
    fn a_flag_that_only_the_daemon_has_is_refused() {
        let service = parse("-windows-service").unwrap_err();
        assert_eq!(
            service,
            "unknown flag -windows-service: only csi-proxy runs as a service"
        );
        assert_eq!(
            parse("-Node=x").unwrap_err(),
            "unknown flag -Node: did you mean -node?"
        );
        assert_eq!(
            parse("-kubelet_path=x").unwrap_err(),
            "unknown flag -kubelet_path: did you mean -kubelet-path?"
        );
    }

    #[test]
    fn no_flag_hides_one_of_the_daemons() {
        for flag in flags_of(CSI_PROXY_SIM.own_flags) {
            assert!(
                flags_of(&TABLE).all(|daemons| daemons.name != flag.name),
                "-{}",
                flag.name
            );
        }
    }

    #[test]
    fn the_help_has_the_programs_own_flags_first_and_fits_a_terminal() {
        let text = anstream::adapter::strip_str(&Help(&CSI_PROXY_SIM).to_string()).to_string();
        let at = |flag: &str| {
            text.find(flag)
                .unwrap_or_else(|| panic!("{flag} is missing: {text}"))
        };
        assert!(at("-socket-folder DIR") < at("-kubelet-path DIR"), "{text}");
        assert!(!text.contains("-windows-service"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn the_readme_lists_every_flag_as_the_tables_have_it() {
        const README: &str = include_str!("../README.md");
        let renewed = markdown::with_tables(README, &CSI_PROXY_SIM);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write("README.md", &renewed).expect("the README can be written");
        }
        assert!(README == renewed, "BLESS=1 renews the README");
    }
}
