//! The node that operations run on.

pub(crate) mod iscsi_sessions;
pub(crate) mod run;
pub(crate) mod smb_mapping_record;

use std::collections::BTreeSet;
use std::sync::Arc;

use os::Os;

use crate::config::Config;
use crate::error::{OperationError, OperationResult};
use crate::node::iscsi_sessions::SessionRecord;
use crate::node::smb_mapping_record::MappingRecord;
use crate::paths::held_directory::HeldDirectory;
use crate::paths::refused_links::RefusedLinks;
use crate::paths::working_directories::WorkingDirectories;
use crate::scheduling::locks::Locks;
use crate::sync::Mutex;
use crate::types::DiskNumber;
use crate::windows::Windows;
use crate::windows::fallback::FallbackCount;
use crate::windows::wmi_calls::WmiCallCount;

/// One Windows node and the state that its operations share.
///
/// Two `Node`s on one system do not share their locks, and other programs that change disks do not
/// use them. Data is still protected, because the state is read again right before a change, and
/// the storage provider of Windows refuses changes that would destroy data.
pub struct Node {
    pub(crate) windows: Windows,
    config: Config,
    pub(crate) locks: Locks,
    pub(crate) directories: WorkingDirectories,
    pub(crate) held_directory: HeldDirectory,
    /// The record of the SMB mappings.
    pub(crate) smb_mappings: MappingRecord,
    /// What was seen of the iSCSI sessions.
    pub(crate) iscsi_sessions: SessionRecord,
    pub(crate) refused_links: RefusedLinks,
    /// The disks without a LUN that the log has named: each once, because drivers list the disks
    /// again and again.
    pub(crate) named_without_lun: Mutex<BTreeSet<DiskNumber>>,
}

impl Node {
    /// Creates a node that calls `os`, and prepares it as a daemon or driver does once, before its
    /// first operation:
    ///
    /// - Refuses an allocation unit size that the file system of new volumes cannot have, and a
    ///   directory of volumes to format again that has to do with a working directory.
    /// - Begins the record of the SMB mappings that are made since Windows started. Without the
    ///   record, a mapping from before the start of Windows is not recognized as one. If the record
    ///   cannot be written, that is logged.
    /// - Tests whether Windows looks up a whole path without following a link in it. If not, paths
    ///   are opened component by component.
    /// - Refuses a working directory that lies in another one, or behind a link in another one,
    ///   unless the texts of their paths show that: drivers may replace what lies there, and paths
    ///   in the directory would then lead elsewhere.
    ///
    /// Errors: which setting to change.
    pub fn start(os: Arc<dyn Os>, config: Config) -> OperationResult<Self> {
        config.check_allocation_unit()?;
        config.check_format_again().map_err(|(_, error)| error)?;
        let node = Self::new(os, config);
        MappingRecord::begin(&node.windows);
        node.test_path_lookup();
        let Some((inner, outer)) = node.directories.nested_by_links(node.windows.os()) else {
            return Ok(node);
        };
        Err(OperationError::invalid(format!(
            "the working directory {inner} lies in the working directory {outer}, or a link on the \
             way to it does, and drivers could replace it; name {inner} by its path below {outer}, \
             or the target of the link"
        )))
    }

    /// Creates a node that calls `os`, without what [`Self::start`] does: for tests.
    pub fn new(os: Arc<dyn Os>, config: Config) -> Self {
        let directories = WorkingDirectories::new(&config);
        let windows = Windows::new(os, config.timeouts);
        let smb_mappings = MappingRecord::default();
        Self {
            held_directory: HeldDirectory::new(config.system_drive),
            windows,
            config,
            locks: Locks::default(),
            directories,
            smb_mappings,
            iscsi_sessions: SessionRecord::default(),
            refused_links: RefusedLinks::default(),
            named_without_lun: Mutex::default(),
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
        self.windows.fallbacks.counts()
    }

    /// Returns how many calls of WMI were made, and how long they took.
    pub fn wmi_calls(&self) -> Vec<WmiCallCount> {
        self.windows.wmi_calls.counts()
    }

    /// Tests whether Windows looks up a whole path without following a link in it, as
    /// [`Self::start`] does: for tests.
    ///
    /// Changes nothing and does not fail: if the answer is not certain, it is no.
    #[doc(hidden)]
    pub fn test_path_lookup(&self) {
        self.directories.lookup().test(&self.windows);
    }

    /// Returns the number of handles that stay open while no operation runs.
    pub fn held_handles(&self) -> usize {
        self.directories.lookup().held_handles()
    }

    /// Returns how many requests had another password than the one with which their SMB mapping was
    /// made.
    pub fn smb_password_differences(&self) -> u64 {
        self.smb_mappings.password_differences()
    }

    /// Returns how many requests were refused because of a link or mount point on a path.
    pub fn links_refused(&self) -> u64 {
        self.refused_links.count()
    }
}
