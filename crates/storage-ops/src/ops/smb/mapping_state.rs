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

#[cfg(test)]
mod tests {
    use os::OsError;

    use super::{MappingState, Step};
    use crate::config::Config;

    const STATES: [MappingState; 8] = [
        MappingState::NotMapped,
        MappingState::Readable,
        MappingState::OtherPassword,
        MappingState::OtherUser,
        MappingState::CredentialsRefused(OsError(0)),
        MappingState::FromBeforeStart(OsError(0)),
        MappingState::ShareGone(OsError(0)),
        MappingState::Unreadable(OsError(0)),
    ];

    fn name(state: MappingState) -> &'static str {
        match state {
            MappingState::NotMapped => "not mapped",
            MappingState::Readable => "readable",
            MappingState::OtherPassword => "readable, other password",
            MappingState::OtherUser => "readable, other user",
            MappingState::CredentialsRefused(_) => "credentials refused",
            MappingState::FromBeforeStart(_) => "from before the start",
            MappingState::ShareGone(_) => "share gone",
            MappingState::Unreadable(_) => "unreadable",
        }
    }

    fn text(step: Step) -> &'static str {
        match step {
            Step::Make => "made",
            Step::Use => "used",
            Step::UseWithWarning => "used with a warning",
            Step::Refuse(_) => "kept; the request fails",
            Step::Replace(_) => "replaced, even if files are open on it",
            Step::ReplaceUnlessInUse(_) => "replaced unless files are open on it",
        }
    }

    /// Returns the cells of the first table of states on a page.
    fn rows(page: &str) -> Vec<Vec<String>> {
        let table = page
            .lines()
            .skip_while(|line| !line.starts_with("| state |"))
            .skip(2);
        let cells = |line: &str| {
            line.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect()
        };
        table
            .take_while(|line| line.starts_with('|'))
            .map(cells)
            .collect()
    }

    #[test]
    fn the_table_of_states_in_the_documentation_is_that_of_the_code() {
        let page = include_str!("../../../../../docs/smb.md");
        let flags = Config {
            share_smb_mappings: true,
            refuse_other_smb_passwords: true,
            ..Config::default()
        };
        let expected = STATES.map(|state| {
            let (default, with_flags) = (state.step(&Config::default()), state.step(&flags));
            let with_flags = if with_flags == default {
                ""
            } else {
                text(with_flags)
            };
            [name(state), text(default), with_flags].map(str::to_owned)
        });
        let found = rows(page)
            .into_iter()
            .map(|cells| [0, 2, 3].map(|column: usize| cells[column].clone()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
