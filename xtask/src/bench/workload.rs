//! What is called: an RPC, its argument and the right answer.

/// One call that is made again and again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Workload {
    /// Its name on the command line and on the page.
    pub(super) name: &'static str,
    /// The RPC, by the name that the Go client knows.
    pub(super) rpc: &'static str,
    pub(super) path: &'static str,
    /// The expected answer in the words of the Go client. Any other answer fails the run.
    pub(super) expect: &'static str,
}

/// The deepest directory that exists below the working directory; verify/bench/node.toml has it too.
pub(super) const DEEPEST: &str = r"pods\pod\volumes\csi\pvc";

pub(super) const WORKLOADS: [Workload; 6] = [
    path_exists("missing-1", r"C:\var\lib\kubelet\missing", "false"),
    path_exists("missing-5", r"C:\var\lib\kubelet\pods\pod\volumes\csi\missing", "false"),
    path_exists("existing-1", r"C:\var\lib\kubelet\pods", "true"),
    path_exists("existing-5", r"C:\var\lib\kubelet\pods\pod\volumes\csi\pvc", "true"),
    path_exists("refused", r"C:\Windows\System32", "PermissionDenied"),
    Workload { name: "list-disk-ids", rpc: "ListDiskIDs", path: "", expect: "5 disks" },
];

const fn path_exists(name: &'static str, path: &'static str, expect: &'static str) -> Workload {
    Workload { name, rpc: "PathExists", path, expect }
}

impl Workload {
    pub(super) fn named(name: &str) -> Result<&'static Self, String> {
        WORKLOADS.iter().find(|workload| workload.name == name).ok_or_else(|| {
            let names = WORKLOADS.each_ref().map(|workload| workload.name);
            format!("the workloads are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{DEEPEST, WORKLOADS, Workload};

    const NODE: &str = include_str!("../../../verify/bench/node.toml");

    #[test]
    fn a_path_that_exists_for_the_minimal_servers_exists_on_the_simulated_node() {
        assert!(NODE.contains(&format!(r"path = 'C:\var\lib\kubelet\{DEEPEST}'")));
        for workload in WORKLOADS.iter().filter(|workload| workload.expect == "true") {
            let below = workload.path.strip_prefix(r"C:\var\lib\kubelet\").expect("a path in the working directory");
            assert!(DEEPEST.starts_with(below), "{}", workload.name);
        }
    }

    #[test]
    fn a_workload_is_found_by_its_name() {
        for workload in &WORKLOADS {
            assert_eq!(Workload::named(workload.name), Ok(workload));
        }
        assert!(Workload::named("none").expect_err("no such workload").contains("existing-5"));
    }
}
