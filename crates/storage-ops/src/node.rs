//! The node that operations run on.

pub(crate) mod run;
pub(crate) mod smb_mapping_record;

use std::sync::Arc;

use os::Os;

use crate::config::Config;
use crate::host::Host;
use crate::host::fallback::FallbackCount;
use crate::host::wmi_calls::WmiCallCount;
use crate::node::smb_mapping_record::MappingRecord;
use crate::paths::refused_links::RefusedLinks;
use crate::paths::working_directories::WorkingDirectories;
use crate::scheduling::locks::Locks;

/// One Windows node and the state that its operations share.
///
/// Two `Node`s on one system do not share their locks, and other programs that change disks do not use them. Data is
/// still protected, because the state is read again right before a change, and the storage provider of Windows refuses
/// changes that would destroy data.
pub struct Node {
    pub(crate) host: Host,
    config: Config,
    pub(crate) locks: Locks,
    pub(crate) directories: WorkingDirectories,
    /// The record of the SMB mappings.
    pub(crate) smb_mappings: MappingRecord,
    pub(crate) refused_links: RefusedLinks,
}

impl Node {
    /// Creates a node that calls `os`.
    pub fn new(os: Arc<dyn Os>, config: Config) -> Self {
        let directories = WorkingDirectories::new(&config);
        let host = Host::new(os, config.timeouts);
        let smb_mappings = MappingRecord::default();
        Self {
            host,
            config,
            locks: Locks::default(),
            directories,
            smb_mappings,
            refused_links: RefusedLinks::default(),
        }
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the number of objects that are locked or requested.
    pub fn locked_objects(&self) -> usize {
        self.locks.len()
    }

    /// Returns how often a fallback was taken because Windows gave an unexpected answer.
    pub fn fallbacks(&self) -> Vec<FallbackCount> {
        self.host.fallbacks.counts()
    }

    /// Returns how many calls of WMI were made, and how long they took.
    pub fn wmi_calls(&self) -> Vec<WmiCallCount> {
        self.host.wmi_calls.counts()
    }

    /// Begins the record of the SMB mappings that are made since Windows started. A daemon calls this when it starts.
    ///
    /// Without the call, a mapping from before the start of Windows is not recognized as one. Does not fail: if the record
    /// cannot be written, that is logged.
    pub fn begin_smb_record(&self) {
        MappingRecord::begin(&self.host);
    }

    /// Tests whether Windows looks up a whole path without following a link in it. A daemon calls this when it starts.
    ///
    /// Without the call, and if Windows does not, paths are opened component by component. Changes nothing and does not
    /// fail: if the answer is not certain, it is no.
    pub fn test_path_lookup(&self) {
        self.directories.lookup().test(&self.host);
    }

    /// Checks that no working directory, and no link on the way to one, lies in another working directory, unless the texts of
    /// their paths show that: drivers may replace what lies there, and paths in the directory would then lead elsewhere. A
    /// daemon calls this when it starts, and does not serve if it fails.
    ///
    /// Errors: which two directories are to be named differently.
    pub fn check_working_directories(&self) -> Result<(), String> {
        let Some((inner, outer)) = self.directories.nested_by_links(self.host.os()) else { return Ok(()) };
        Err(format!(
            "the working directory {inner} lies in the working directory {outer}, or a link on the way to it does, and drivers \
             could replace it; name {inner} by its path below {outer}, or the target of the link"
        ))
    }

    /// Returns the number of handles that stay open while no operation runs.
    pub fn held_handles(&self) -> usize {
        self.directories.lookup().held_handles()
    }

    /// Returns how many requests had another password than the one with which their SMB mapping was made.
    pub fn smb_password_differences(&self) -> u64 {
        self.smb_mappings.password_differences()
    }

    /// Returns how many requests were refused because of a link or mount point on a path.
    pub fn links_refused(&self) -> u64 {
        self.refused_links.count()
    }
}
