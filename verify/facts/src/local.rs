//! This machine as a system for checks: Windows, or Wine.
//!
//! A check may overwrite a disk, so variables of the environment name the disks for tests by their numbers:
//! `CSI_PROXY_FACTS_DISK_RAW=2`, `CSI_PROXY_FACTS_VOLUME_NTFS=3`. The kinds of disks are `RAW`, `MBR`, `SUPERFLOPPY`,
//! `NOPAGE83`, `NOSERIAL` and `FOURKN`; the kinds of volumes are `NTFS`, `FAT32`, `REFS`, `RAW`, `SHORT`, `NTFS4KN`,
//! `SHORT4KN`, `HALF`, `SPANNED`, `BITLOCKER`, `RECOGNIZED` and `UNREADABLE`. A check is skipped if no variable names its object.
//! If `CSI_PROXY_FACTS_IDENTITY_DISK_RAW` and so on are set too, each to the `Debug` text of a [`DiskIdentity`](crate::DiskIdentity), a
//! check fails before it touches a disk with another identity: the number may mean another disk by then.
//!
//! Variables also name the objects on the network. `CSI_PROXY_FACTS_SMB_HOST`, `_SMB_SHARES` (two names, with a comma
//! between them), `_SMB_USER_1`, `_SMB_PASSWORD_1`, `_SMB_USER_2` and `_SMB_PASSWORD_2` describe an SMB server;
//! `_SMB_SILENT` names a server that does not answer, and `_SMB_UNLISTABLE` a share whose root may not be listed.
//! `_ISCSI_PORTAL` and `_ISCSI_SILENT` are `address:port`; `_ISCSI_OPEN` and `_ISCSI_CHAP` are names of targets, and
//! `_ISCSI_CHAP_USER` and `_ISCSI_CHAP_SECRET` the credentials of the second one. `_SERVICE_PLAIN` and so on are names of
//! services, one for each [`ServiceKind`](crate::ServiceKind).

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
