//! This machine as a system for checks: Windows, or Wine.
//!
//! Disks and volumes for tests are named by the environment, because a check may overwrite them:
//! `CSI_PROXY_FACTS_DISK_RAW=2` and `CSI_PROXY_FACTS_VOLUME_NTFS=3` are numbers of disks. The kinds of disks are `RAW`,
//! `MBR`, `SUPERFLOPPY`, `NOPAGE83`, `NOSERIAL` and `4KN`; those of volumes `NTFS`, `FAT32`, `REFS`, `RAW`,
//! `SHORT`, `NTFS_4KN`, `SHORT_4KN`, `SPANNED`, `BITLOCKER`, `RECOGNIZED` and `UNREADABLE`. A
//! check whose object is not named is skipped.
//!
//! So are the objects on the network. `CSI_PROXY_FACTS_SMB_HOST`, `_SMB_SHARES` (two names with a comma between them),
//! `_SMB_USER_1`, `_SMB_PASSWORD_1`, `_SMB_USER_2` and `_SMB_PASSWORD_2` describe an SMB server, and `_SMB_SILENT` names
//! one that does not answer. `_ISCSI_PORTAL` and `_ISCSI_SILENT` are `address:port`; `_ISCSI_OPEN` and `_ISCSI_CHAP` are
//! names of targets, and `_ISCSI_CHAP_USER` and `_ISCSI_CHAP_SECRET` what the second one accepts. `_SERVICE_PLAIN` and so
//! on are names of services, for each kind of [`ServiceKind`](crate::ServiceKind).

use crate::node::TestNode;

#[cfg(windows)]
#[path = "local/windows.rs"]
mod imp;

#[cfg(not(windows))]
mod imp {
    use crate::node::TestNode;

    pub(super) fn local_node() -> Option<Box<dyn TestNode>> {
        None
    }
}

/// Returns this machine, or `None` if it runs neither Windows nor Wine.
pub fn local_node() -> Option<Box<dyn TestNode>> {
    imp::local_node()
}
