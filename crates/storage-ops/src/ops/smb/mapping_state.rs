//! The states of a share's mapping, and what a request to map the share does in each.

use os::OsError;

use crate::config::Config;

/// The state in which a request to map a share finds its mapping. docs/smb.md has the same states
/// as a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MappingState {
    /// Windows has no mapping of the share.
    NotMapped,
    /// The share can be read; the user is the same or unknown.
    Readable,
    /// The share can be read; the user is the same, and the password is not the one that the
    /// mapping was made with.
    OtherPassword,
    /// The share can be read; the mapping was made for another user.
    OtherUser,
    /// The server refuses the credentials of the mapping.
    CredentialsRefused(OsError),
    /// The mapping is from before Windows started, and the code says that it is no longer usable.
    FromBeforeStart(OsError),
    /// The server has answered for some time that it has no such share.
    ShareGone(OsError),
    /// The share cannot be read for any other reason.
    Unreadable(OsError),
}

/// What a request to map a share does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Makes the mapping.
    Make,
    /// Uses the mapping as it is.
    Use,
    /// Uses the mapping as it is, with a warning.
    UseWithWarning,
    /// Fails, and leaves the mapping as it is.
    Refuse(Refusal),
    /// Removes the mapping, which cannot be used because of this code, even if files are open on
    /// it, and makes it again.
    Replace(OsError),
    /// Removes the mapping, which cannot be used because of this code, unless files are open on it,
    /// and makes it again.
    ReplaceUnlessInUse(OsError),
}

/// Why a request leaves an existing mapping as it is and fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    OtherUser,
    OtherPassword,
    /// The share cannot be read because of this code.
    Unreadable(OsError),
}

impl MappingState {
    /// Returns the first step of a request that finds the mapping in this state.
    pub(crate) fn step(self, config: &Config) -> Step {
        match self {
            Self::NotMapped => Step::Make,
            Self::Readable => Step::Use,
            Self::OtherPassword if config.refuse_other_smb_passwords => {
                Step::Refuse(Refusal::OtherPassword)
            }
            Self::OtherPassword => Step::UseWithWarning,
            Self::OtherUser if config.share_smb_mappings => Step::Use,
            Self::OtherUser => Step::Refuse(Refusal::OtherUser),
            Self::Unreadable(code) => Step::Refuse(Refusal::Unreadable(code)),
            // Nothing can use the mapping any more, not even through a file that is open.
            Self::CredentialsRefused(code) => Step::Replace(code),
            // The server may fail over, or the mapping may have been used by a program that
            // csi-proxy does not know of. Files that are open may still be usable, so Windows must
            // confirm that there are none.
            Self::FromBeforeStart(code) | Self::ShareGone(code) => Step::ReplaceUnlessInUse(code),
        }
    }
}
