//! The SMB group.

use tonic::Code;

use super::{Checked, Expected, Faults, INVALID, NOT_THERE, PRECONDITION, strict, working};
use crate::directory_tree::{Entry, Names, Target};
use crate::reference_model::{Mapping, Model, SHARES, password};

/// A share of the only server there is, and a directory on it; none if the path has another server or share.
struct Remote {
    share: Option<String>,
    below: Names,
}

fn remote(text: &str) -> Checked<Remote> {
    let text = text.replace('/', "\\").to_lowercase();
    let invalid = || Faults::of(INVALID);
    let rest = text.strip_prefix(r"\\").ok_or_else(invalid)?;
    let mut parts = rest.split('\\').filter(|part| !part.is_empty()).map(str::to_owned);
    let (host, share) = (parts.next().ok_or_else(invalid)?, parts.next().ok_or_else(invalid)?);
    let known = host == "files" && SHARES.contains(&share.as_str());
    Ok(Remote { share: known.then_some(share), below: parts.collect() })
}

impl Model {
    pub(super) fn new_smb_global_mapping(
        &mut self,
        path: &str,
        local: &str,
        user: &'static str,
        given: &str,
    ) -> Checked<Expected> {
        let mut faults = Faults::default();
        let remote = faults.note(remote(path));
        let local = if local.is_empty() { None } else { faults.note(strict(local).and_then(working)) };
        let target =
            remote.as_ref().and_then(|remote| Some(Target::Share(remote.share.clone()?, remote.below.clone())));
        if let Some(local) = &local {
            faults.note(self.room_for_link(local, target.as_ref()));
        }
        // A wrong place for the link is found before the share is asked for.
        faults.none()?;
        let Some(share) = remote.and_then(|remote| remote.share) else {
            return Ok(Expected::fails(&[Code::NotFound, Code::PermissionDenied, Code::FailedPrecondition]));
        };
        self.connect(&share, user, given)?;
        if let (Some(local), Some(target)) = (local, target) {
            self.put(&local, Entry::Link(target));
        }
        Ok(Expected::nothing())
    }

    fn connect(&mut self, share: &str, user: &'static str, given: &str) -> Checked<()> {
        if let Some(mapping) = self.mappings.get(share) {
            if !self.network {
                // Others' open files live on until it comes back.
                return Err(Faults::of(&[Code::NotFound, Code::Unavailable]));
            }
            if self.readable(share) {
                let other = mapping.known && mapping.user != user;
                return if other { Err(Faults::of(PRECONDITION)) } else { Ok(()) };
            }
            self.mappings.remove(share);
        }
        let mut faults = Faults::default();
        if !self.network {
            faults.0.extend([Code::NotFound, Code::Unavailable]);
        }
        if self.mappings.values().any(|mapping| mapping.user != user) {
            faults.0.extend(PRECONDITION);
        }
        let changes = self.passwords[user];
        if given != password(user, changes) {
            faults.0.push(Code::PermissionDenied);
        }
        faults.none()?;
        self.mappings.insert(share.to_owned(), Mapping { user, known: true, password: changes });
        Ok(())
    }

    pub(super) fn remove_smb_global_mapping(&mut self, path: &str) -> Checked<Expected> {
        let share = remote(path)?.share;
        match share.and_then(|share| self.mappings.remove(&share)) {
            Some(_) => Ok(Expected::nothing()),
            None => Ok(Expected::fails(NOT_THERE)),
        }
    }
}
