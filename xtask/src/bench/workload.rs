//! What is called: an RPC, its argument and the right answer; or an exchange of bytes without gRPC.

use super::server::Kind;

/// One call that is made again and again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Workload {
    /// Its name on the command line and on the page.
    pub(super) name: &'static str,
    /// The RPC, by the name that the Go client knows.
    pub(super) rpc: &'static str,
    pub(super) path: &'static str,
    /// The expected answer in the words of the Go client. Any other answer fails the run.
    expect: &'static str,
    /// Where it is measured.
    systems: &'static [System],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    /// csi-proxy on the simulated node, on Unix sockets.
    Linux,
    /// Windows programs, on named pipes.
    Wine,
}

/// How the callers are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connections {
    /// All callers share one, as a driver has one for each API group.
    Shared,
    /// Each caller has one.
    Each,
    /// Each call dials anew, as some drivers do.
    PerCall,
}

/// The deepest directory that exists below the working directory; verify/bench/node.toml has it too.
pub(super) const DEEPEST: &str = r"pods\pod\volumes\csi\pvc";

/// The size of a request and of a reply without gRPC: what one caller sends and receives for a call of `missing-1`, on
/// average, in the frames of HTTP/2. The client's report has these averages.
pub(super) const PING_PONG_BYTES: [u16; 2] = [88, 52];

const PING_PONG: &str = "ping-pong";

const BOTH: &[System] = &[System::Linux, System::Wine];
const LINUX: &[System] = &[System::Linux];

pub(super) const WORKLOADS: [Workload; 11] = [
    path_exists("missing-1", r"C:\var\lib\kubelet\missing", "false"),
    path_exists("missing-5", r"C:\var\lib\kubelet\pods\pod\volumes\csi\missing", "false"),
    path_exists("existing-1", r"C:\var\lib\kubelet\pods", "true"),
    path_exists("existing-5", r"C:\var\lib\kubelet\pods\pod\volumes\csi\pvc", "true"),
    Workload { systems: &[System::Wine], ..path_exists("working-directory", r"C:\var\lib\kubelet", "true") },
    path_exists("refused", r"C:\Windows\System32", "PermissionDenied"),
    on_linux("is-symlink", "IsSymlink", r"C:\var\lib\kubelet\pods\pod\volumes\csi\pvc", "false"),
    on_linux(
        "get-volume-stats",
        "GetVolumeStats",
        r"\\?\Volume{2a7b67af-6c6a-450e-866d-5e7f3e46f143}\",
        "10719588352 bytes",
    ),
    on_linux("list-volumes", "ListVolumesOnDisk", "2", "1 volumes"),
    on_linux("list-disk-ids", "ListDiskIDs", "", "5 disks"),
    Workload { name: PING_PONG, rpc: "PingPong", path: "", expect: "", systems: BOTH },
];

/// The workload that is measured with each use of connections, beside the ping-pong.
const EVERY_CONNECTION: &str = "missing-1";

const fn path_exists(name: &'static str, path: &'static str, expect: &'static str) -> Workload {
    Workload { name, rpc: "PathExists", path, expect, systems: BOTH }
}

const fn on_linux(name: &'static str, rpc: &'static str, path: &'static str, expect: &'static str) -> Workload {
    Workload { name, rpc, path, expect, systems: LINUX }
}

impl Workload {
    pub(super) fn named(name: &str) -> Result<&'static Self, String> {
        WORKLOADS.iter().find(|workload| workload.name == name).ok_or_else(|| {
            let names = WORKLOADS.each_ref().map(|workload| workload.name);
            format!("the workloads are {}", names.join(", "))
        })
    }

    pub(super) fn is_measured_on(&self, system: System) -> bool {
        self.systems.contains(&system)
    }

    /// Returns whether the goals for calls/s apply to it: PathExists of what exists and of what is missing.
    pub(super) fn is_path_lookup(&self) -> bool {
        self.name.starts_with("missing-") || self.name.starts_with("existing-")
    }

    /// Returns whether a server of this kind has it.
    pub(super) fn is_served_by(&self, kind: Kind) -> bool {
        (self.name == PING_PONG) == (kind == Kind::PingPong)
    }

    /// The answer that a server of this kind must give.
    pub(super) fn expected_from(&self, kind: Kind) -> &'static str {
        match (self.expect, kind) {
            // The code of every error of the Go program.
            ("PermissionDenied", Kind::GoProgram) => "Unknown",
            (expect, _) => expect,
        }
    }

    pub(super) fn connections(&self) -> &'static [Connections] {
        if [EVERY_CONNECTION, PING_PONG].contains(&self.name) { &Connections::ALL } else { &[Connections::Shared] }
    }
}

impl Connections {
    const ALL: [Self; 3] = [Self::Shared, Self::Each, Self::PerCall];

    /// In the words of the Go client, which the page has too.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Each => "each",
            Self::PerCall => "per-call",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::Kind;
    use super::{Connections, DEEPEST, WORKLOADS, Workload};

    const NODE: &str = include_str!("../../../verify/bench/node.toml");

    #[test]
    fn a_path_that_exists_for_the_minimal_servers_exists_on_the_simulated_node() {
        assert!(NODE.contains(&format!(r"path = 'C:\var\lib\kubelet\{DEEPEST}'")));
        for workload in WORKLOADS.iter().filter(|workload| workload.expect == "true") {
            let below = workload.path.strip_prefix(r"C:\var\lib\kubelet").expect("a path in the working directory");
            assert!(DEEPEST.starts_with(below.trim_start_matches('\\')), "{}", workload.name);
        }
    }

    #[test]
    fn a_workload_is_found_by_its_name() {
        for workload in &WORKLOADS {
            assert_eq!(Workload::named(workload.name), Ok(workload));
        }
        assert!(Workload::named("none").expect_err("no such workload").contains("existing-5"));
    }

    #[test]
    fn the_floor_is_measured_with_each_use_of_connections() {
        for (name, kind) in [("ping-pong", Kind::PingPong), ("missing-1", Kind::Ours)] {
            let workload = Workload::named(name).expect("in the table");
            assert_eq!(workload.connections(), Connections::ALL);
            assert!(workload.is_served_by(kind));
        }
        assert_eq!(Workload::named("refused").expect("in the table").connections(), [Connections::Shared]);
    }

    #[test]
    fn the_go_program_has_one_code_for_errors() {
        let refused = Workload::named("refused").expect("in the table");
        let expected = [Kind::Ours, Kind::Minimal, Kind::GoProgram].map(|kind| refused.expected_from(kind));
        assert_eq!(expected, ["PermissionDenied", "PermissionDenied", "Unknown"]);
    }
}
