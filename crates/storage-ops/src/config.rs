//! The settings of a node.

use std::time::Duration;

use os::abi::Sid;

use crate::error::{OperationError, OperationResult};
use crate::types::{AllowedPortal, HostPath, ServiceName, SmbServer};

/// The settings that an administrator can change. A setting may be added in any release: begin with
/// the default.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own, and no combination of them is excluded"
)]
#[non_exhaustive]
pub struct Config {
    /// Kubelet's directory, always a working directory. The volume RPCs and IsSymlink resolve paths
    /// without a drive on its drive.
    pub kubelet_dir: HostPath,
    /// The drive that Windows is on.
    pub system_drive: char,
    /// Further directories in which drivers may change files.
    pub working_dirs: Vec<HostPath>,
    /// If set, the only directory that may contain paths of the context PLUGIN
    /// (`-kubelet-csi-plugins-path`).
    pub plugin_dir: Option<HostPath>,
    /// If set, the only directory that may contain paths of the context POD (`-kubelet-pod-path`).
    pub pod_dir: Option<HostPath>,
    /// Further paths of the node itself, such as those of the container runtime: no driver may use
    /// their volumes.
    pub node_paths: Vec<HostPath>,
    /// Whether PartitionDisk leaves a partitioned disk offline or read-only.
    pub leave_partitioned_disks: bool,
    /// Whether SMB mappings must be encrypted.
    pub require_privacy: bool,
    /// Whether a readable SMB mapping may be used by a user other than the one for whom it was
    /// created.
    pub share_smb_mappings: bool,
    /// Whether a request is refused if its password differs from the one that its SMB mapping was
    /// made with.
    pub refuse_other_smb_passwords: bool,
    /// If set, the only services that may be started and stopped.
    pub services: Option<Vec<ServiceName>>,
    /// If set, the only SMB servers whose shares may be mapped.
    pub smb_servers: Option<Vec<SmbServer>>,
    /// If set, the only iSCSI target portals that may be added, contacted and removed.
    pub iscsi_portals: Option<Vec<AllowedPortal>>,
    /// The file system with which raw volumes are formatted.
    pub format_file_system: NewFileSystem,
    /// The allocation unit size in bytes with which raw volumes are formatted. If not set, Windows
    /// chooses it.
    pub format_allocation_unit: Option<u32>,
    /// Accounts that are granted the right "modify" on a volume when it is formatted.
    pub format_writers: Vec<Sid>,
    /// A volume whose mount points are all below one of these directories, and that nothing uses, is
    /// formatted again with its content. None of them may contain a working directory or lie in one.
    pub format_again: Vec<HostPath>,
    /// How long to wait for Windows.
    pub timeouts: Timeouts,
}

/// A file system with which raw volumes are formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NewFileSystem {
    /// NTFS.
    Ntfs,
    /// ReFS.
    ReFs,
}

/// How long operations wait for Windows. docs/limits.md lists all time limits, those of calls among
/// them.
///
/// Except where a field states otherwise, a timeout ends the wait, not the work: a call that
/// Windows has started keeps running, and its locks are kept until it ends.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Timeouts {
    /// For a WMI query.
    pub query: Duration,
    /// For a WMI method that changes a partition table, a mapping or an iSCSI session.
    pub change: Duration,
    /// For formatting a volume.
    pub format: Duration,
    /// For the arrival of a volume after its partition was created or its disk was brought online.
    pub arrival: Duration,
    /// For an SMB server to find a share again that it reports as missing, as it does after a
    /// failover.
    pub share_gone: Duration,
    /// For a service to change its state.
    pub service: Duration,
    /// For the removal of a directory with its contents, or of the contents. Unlike the other
    /// timeouts, this one ends the work, between two entries.
    pub removal: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            query: Duration::from_mins(1),
            change: Duration::from_mins(2),
            format: Duration::from_mins(10),
            arrival: Duration::from_secs(20),
            share_gone: Duration::from_secs(20),
            service: Duration::from_secs(30),
            removal: Duration::from_mins(2),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            kubelet_dir: HostPath::parse(r"C:\var\lib\kubelet").expect("a valid path"),
            system_drive: 'C',
            working_dirs: Vec::new(),
            plugin_dir: None,
            pod_dir: None,
            node_paths: Vec::new(),
            leave_partitioned_disks: false,
            require_privacy: true,
            share_smb_mappings: false,
            refuse_other_smb_passwords: false,
            services: None,
            smb_servers: None,
            iscsi_portals: None,
            format_file_system: NewFileSystem::Ntfs,
            format_allocation_unit: None,
            format_writers: Vec::new(),
            format_again: Vec::new(),
            timeouts: Timeouts::default(),
        }
    }
}

impl Config {
    /// Returns the settings after a change, such as `|config| config.share_smb_mappings = true`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Returns the name of the file system with which raw volumes are formatted.
    pub(crate) fn new_file_system(&self) -> &'static str {
        match self.format_file_system {
            NewFileSystem::Ntfs => "NTFS",
            NewFileSystem::ReFs => "ReFS",
        }
    }

    /// Checks that no directory of [`Self::format_again`] contains a working directory or lies in
    /// one, as far as the texts tell: the volumes of CSI drivers are mounted there.
    ///
    /// Errors: the directory, and why it is refused.
    pub fn check_format_again(&self) -> Result<(), (HostPath, OperationError)> {
        let working_directories = || {
            [&self.kubelet_dir]
                .into_iter()
                .chain(&self.working_dirs)
                .chain(&self.plugin_dir)
                .chain(&self.pod_dir)
        };
        for directory in &self.format_again {
            if let Some(other) =
                working_directories().find(|other| other.is_in(directory) || directory.is_in(other))
            {
                let reason = format!(
                    "{directory} contains the working directory {other} or lies in it, where the \
                     volumes of CSI drivers are mounted; name a directory that has nothing to do \
                     with kubelet"
                );
                return Err((directory.clone(), OperationError::invalid(reason)));
            }
        }
        Ok(())
    }

    /// Checks that the file system of new volumes can have their allocation unit size.
    pub fn check_allocation_unit(&self) -> OperationResult<()> {
        let (name, size) = (
            self.new_file_system(),
            self.format_allocation_unit.unwrap_or(4096),
        );
        let is_possible = match self.format_file_system {
            NewFileSystem::Ntfs => size.is_power_of_two() && (512..=2 << 20).contains(&size),
            NewFileSystem::ReFs => [4096, 65536].contains(&size),
        };
        is_possible.then_some(()).ok_or_else(|| {
            OperationError::invalid(format!("{name} has no allocation units of {size} bytes"))
        })
    }
}
