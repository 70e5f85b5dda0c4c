//! The return codes of the iSCSI classes.

/// A code of the initiator service (`ISDSC_*`, iscsierr.h) or a Win32 code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IscsiCode(pub u32);

impl IscsiCode {
    /// `ERROR_INVALID_PARAMETER`.
    pub const INVALID_PARAMETER: Self = Self(87);
    /// `ISDSC_CONNECTION_FAILED`: the portal does not answer.
    pub const CONNECTION_FAILED: Self = Self(0xefff_0003);
    /// `ISDSC_AUTHENTICATION_FAILURE`: a secret is wrong, or only one side uses CHAP.
    pub const AUTHENTICATION_FAILURE: Self = Self(0xefff_0009);
    /// `ISDSC_NOT_FOUND`: no such portal was added.
    pub const NOT_FOUND: Self = Self(0xefff_000b);
    /// `ISDSC_SESSION_ALREADY_EXISTS`: the target is already connected.
    pub const SESSION_ALREADY_EXISTS: Self = Self(0xefff_0016);
    /// `ISDSC_INVALID_SESSION_ID`: the session does not exist.
    pub const INVALID_SESSION_ID: Self = Self(0xefff_001c);
    /// `ISDSC_TARGET_NOT_FOUND`: no such target was discovered.
    pub const TARGET_NOT_FOUND: Self = Self(0xefff_0029);
}
