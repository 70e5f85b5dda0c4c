//! The calls of the SMB group.

use tonic::Code;

use super::{Checked, Expected, INVALID, NOT_FOUND, PRECONDITION, Violations, changeable, strict};
use crate::directory_tree::{Entry, Names, Target};
use crate::reference_model::{Mapping, Model, SHARES, password};

/// A share of the only server and a path on it. The share is `None` if the server or share is
/// unknown.
struct Remote {
    share: Option<String>,
    below: Names,
}

fn remote(text: &str) -> Checked<Remote> {
    let text = text.replace('/', "\\").to_lowercase();
    let invalid = || Violations::of(INVALID);
    let rest = text.strip_prefix(r"\\").ok_or_else(invalid)?;
    let mut parts = rest
        .split('\\')
        .filter(|part| !part.is_empty())
        .map(str::to_owned);
    let (host, share) = (
        parts.next().ok_or_else(invalid)?,
        parts.next().ok_or_else(invalid)?,
    );
    let known = host == "files" && SHARES.contains(&share.as_str());
    Ok(Remote {
        share: known.then_some(share),
        below: parts.collect(),
    })
}

impl Model {
    pub(super) fn new_smb_global_mapping(
        &mut self,
        path: &str,
        local: &str,
        user: &'static str,
        given: &str,
    ) -> Checked<Expected> {
        let mut violations = Violations::default();
        let remote = violations.collect(remote(path));
        let local = if local.is_empty() {
            None
        } else {
            violations.collect(strict(local).and_then(changeable))
        };
        let target = remote
            .as_ref()
            .and_then(|remote| Some(Target::Share(remote.share.clone()?, remote.below.clone())));
        if let Some(local) = &local {
            violations.collect(self.check_link_path(local, target.as_ref()));
        }
        // The path of the link is checked before the share is connected.
        violations.into_result()?;
        let Some(share) = remote.and_then(|remote| remote.share) else {
            return Ok(Expected::fails(&[
                Code::NotFound,
                Code::PermissionDenied,
                Code::FailedPrecondition,
            ]));
        };
        self.connect(&share, user, given)?;
        if let (Some(local), Some(target)) = (local, target) {
            self.insert(&local, Entry::Link(target));
        }
        Ok(Expected::nothing())
    }

    fn connect(&mut self, share: &str, user: &'static str, given: &str) -> Checked<()> {
        if let Some(mapping) = self.mappings.get(share) {
            if !self.smb_reachable {
                // A mapping with open files survives the outage.
                return Err(Violations::of(PRECONDITION));
            }
            if self.readable(share) {
                let other = mapping.known && mapping.user != user;
                return if other {
                    Err(Violations::of(PRECONDITION))
                } else {
                    Ok(())
                };
            }
            self.mappings.remove(share);
        }
        let mut violations = Violations::default();
        if !self.smb_reachable {
            violations.0.extend(PRECONDITION);
        }
        if self.mappings.values().any(|mapping| mapping.user != user) {
            violations.0.extend(PRECONDITION);
        }
        let changes = self.passwords[user];
        if given != password(user, changes) {
            violations.0.push(Code::PermissionDenied);
        }
        violations.into_result()?;
        self.mappings.insert(
            share.to_owned(),
            Mapping {
                user,
                known: true,
                password: changes,
            },
        );
        Ok(())
    }

    pub(super) fn remove_smb_global_mapping(&mut self, path: &str) -> Checked<Expected> {
        let share = remote(path)?.share;
        match share.and_then(|share| self.mappings.remove(&share)) {
            Some(_) => Ok(Expected::nothing()),
            None => Ok(Expected::fails(NOT_FOUND)),
        }
    }
}
