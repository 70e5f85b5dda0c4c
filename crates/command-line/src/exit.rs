//! The exit codes.

use std::process::ExitCode;

/// Why the program ended. The numbers are part of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A reason without a code of its own.
    Failed = 1,
    /// The command line or a request is not valid.
    Usage = 2,
    /// csi-proxy cannot be reached.
    Unreachable = 3,
    /// The object does not exist.
    NotFound = 4,
    /// The call timed out.
    Timeout = 5,
    /// The node does not serve the RPC.
    Unimplemented = 6,
}

/// The meaning of each exit code, for `--help` and README.md.
pub const MEANINGS: [(u8, &str); 7] = [
    (0, "success"),
    (
        Code::Failed as u8,
        "the call failed for a reason not listed below",
    ),
    (
        Code::Usage as u8,
        "the command line or a request is not valid; nothing was changed",
    ),
    (
        Code::Unreachable as u8,
        "csi-proxy is unreachable, stopping or overloaded, or the connection broke",
    ),
    (
        Code::NotFound as u8,
        "the disk, volume, path, share, target or service does not exist",
    ),
    (
        Code::Timeout as u8,
        "the call timed out; a change may still be in progress",
    ),
    (
        Code::Unimplemented as u8,
        "the node does not serve a version that has the RPC",
    ),
];

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}
