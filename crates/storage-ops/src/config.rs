//! The settings of a node.

use std::time::Duration;

use crate::types::HostPath;

/// What an administrator can decide.
#[derive(Clone, Debug)]
pub struct Config {
    /// Kubelet's directory, always a working directory; paths without a drive lie on its drive.
    pub kubelet: HostPath,
    /// Further directories that drivers may change.
    pub working: Vec<HostPath>,
    /// Where alone paths of the context PLUGIN may lie, if given (`-kubelet-csi-plugins-path`).
    pub plugins: Option<HostPath>,
    /// Where alone paths of the context POD may lie, if given (`-kubelet-pod-path`).
    pub pods: Option<HostPath>,
    /// Whether SMB mappings must be encrypted.
    pub require_privacy: bool,
    /// Whether a readable mapping serves a user other than the one it was made for.
    pub share_smb_mappings: bool,
    /// How long Windows may take for things.
    pub timeouts: Timeouts,
}

/// How long to wait before an operation answers without what it waits for.
///
/// None of these stops anything: what Windows has begun goes on, under its lock.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// A WMI query.
    pub query: Duration,
    /// A WMI method that changes a partition table, a mapping or a session.
    pub change: Duration,
    /// Formatting a volume.
    pub format: Duration,
    /// A volume's arrival after its partition was made or its disk brought online.
    pub arrival: Duration,
    /// A service's change of state.
    pub service: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            query: Duration::from_mins(1),
            change: Duration::from_mins(2),
            format: Duration::from_mins(10),
            arrival: Duration::from_secs(20),
            service: Duration::from_secs(30),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            kubelet: HostPath::parse(r"C:\var\lib\kubelet").expect("a valid path"),
            working: Vec::new(),
            plugins: None,
            pods: None,
            require_privacy: true,
            share_smb_mappings: false,
            timeouts: Timeouts::default(),
        }
    }
}
