//! SMB global mappings: the node's connections to shares, used by all containers.
//!
//! Windows keeps one mapping for a share and one user for a mapping. A mapping that can be read is shared by all
//! who ask for a path below the share; removing it would break the files that others have open.

use os::{Access, Instance, Namespace, Open, Options, OsError, OsResult, Secret, Value};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::{OperationContext, PoolKind};
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::paths::links::{link_exists, make_link};
use crate::paths::working_directories::OPEN_NOFOLLOW;
use crate::types::HostPath;
use crate::types::UncPath;
use crate::windows::error_class::ErrorClass;
use crate::windows::wmi::{call, query, quote};

const CLASS: &str = "MSFT_SmbGlobalMapping";

/// The `Status` of a mapping that is connected.
const STATUS_OK: u32 = 0;

/// Connects the node to a share, if it is not, and makes a directory link to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewSmbGlobalMapping {
    /// The share, or a directory on it.
    pub remote: UncPath,
    /// Where to make the link: in a working directory; its parent exists. None makes no link.
    pub local: Option<HostPath>,
    /// `user` or `domain\user`; empty for the node's own identity.
    pub username: String,
    /// The user's password.
    pub password: Secret,
}

impl Operation for NewSmbGlobalMapping {
    type Output = ();
    const NAME: &'static str = "NewSmbGlobalMapping";
    const POOL: PoolKind = PoolKind::Remote;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        match &self.local {
            Some(local) => format!("map {} at {local}", self.remote),
            None => format!("map {}", self.remote),
        }
    }

    fn lock_keys(&self, node: &Node) -> OperationResult<Vec<LockKey>> {
        let mut objects = vec![LockKey::Share(self.remote.share())];
        if let Some(local) = &self.local {
            node.directories.check(local, None)?;
            objects.push(LockKey::Path(local.key()));
        }
        Ok(objects)
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        if self.username.contains('\0') || self.password.expose().contains('\0') {
            return Err(OperationError::invalid("the user name or password has a zero character"));
        }
        let (substitute, shown) = (self.remote.to_nt(false), self.remote.shown());
        // Before a connection is made for nothing.
        let place = match &self.local {
            Some(local) => Some(node.directories.entry(node.host.os(), local, None, &OPEN_NOFOLLOW)?),
            None => None,
        };
        if let Some(place) = &place {
            link_exists(place, substitute.as_u16str())?;
        }
        let made = self.connect(node, ctx)?;
        let Some(place) = place else { return Ok(()) };
        let linked = make_link(&place, substitute.as_u16str(), &shown, || Ok(Options::DIRECTORY), ctx);
        if linked.is_err() && made {
            // Nobody else can have begun to use it: its share is locked.
            self.disconnect(node, ctx)?;
        }
        linked
    }
}

/// What looking through a mapping found.
enum Look {
    /// It can be read.
    Readable,
    /// Nothing can be reached just now; what can be open on it may live on.
    OutOfReach(OsError),
    /// The server does not take it for this user's any more.
    Lost(OsError),
}

impl NewSmbGlobalMapping {
    /// Connects the node to the share, and says whether it had not been.
    fn connect(&self, node: &Node, ctx: &OperationContext) -> OperationResult<bool> {
        let share = self.remote.share();
        if let Some(mapping) = mapping_of(node, &share)? {
            // One that has outlived a reboot may be dead for good and look as if its server were.
            let alive = mapping.u32("Status") == Some(STATUS_OK) || node.smb_users().contains_key(&share);
            match self.look(node) {
                Look::Readable => return self.refuse_another_user(node, &share).map(|()| false),
                // Whoever has files open on it gets them back when the server comes back, unless it is removed.
                Look::OutOfReach(code) if alive => return Err(OperationError::of(code, format!("{share} is mapped"))),
                Look::OutOfReach(code) | Look::Lost(code) => {
                    tracing::info!(share, %code, "a mapping that cannot be read is made anew");
                    remove(node, ctx, &share, &mapping)?;
                }
            }
        }
        let mut arguments = vec![
            ("RemotePath", Value::Text(share.clone())),
            ("RequirePrivacy", Value::Bool(node.config().require_privacy)),
        ];
        if !self.username.is_empty() {
            arguments.push(("Credential", Value::Secret(credential(&self.username, &self.password))));
        }
        let timeout = node.host.timeouts().change;
        // Known before it is made: it may be made long after this call has given up waiting.
        node.smb_users().insert(share.clone(), self.username.to_lowercase());
        let made = match call(&node.host, ctx, Namespace::Smb, CLASS, "Create", &arguments, timeout) {
            Ok(returned) if returned.code == 0 => return Ok(true),
            Ok(returned) => refused(OsError(returned.code), &share),
            Err(fault) if fault.kind == Kind::StillRunning => return Err(fault),
            Err(fault) => fault.code.map_or(fault, |code| refused(code, &share)),
        };
        node.smb_users().remove(&share);
        Err(made)
    }

    fn disconnect(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let share = self.remote.share();
        mapping_of(node, &share)?.map_or(Ok(()), |mapping| remove(node, ctx, &share, &mapping))
    }

    /// Looks through the mapping there is, at the share and at the directory asked for.
    fn look(&self, node: &Node) -> Look {
        let list = |share_only: bool| -> OsResult<()> {
            let access = Access::READ_DATA | Access::READ_ATTRIBUTES;
            let directory =
                node.host.os().open(&self.remote.to_nt(share_only), &Open::existing(access, Options::DIRECTORY))?;
            match directory.list(true, &mut [0; 4096]) {
                Err(OsError::NO_MORE_FILES) => Ok(()),
                outcome => outcome,
            }
        };
        // A third look, for a mapping that is removed takes other pods' open files with it: one error, which may have
        // been gone a moment later, is not enough.
        let looks = [true, false, true].map(|share_only| list(share_only).err());
        match looks {
            _ if looks.contains(&None) => Look::Readable,
            // The user may not list the share, and the server says that the directory is missing: so it answers.
            [Some(OsError::ACCESS_DENIED), Some(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND), _] => {
                Look::Readable
            }
            [.., Some(code)] if ErrorClass::ServerUnreachable.contains(code) => Look::OutOfReach(code),
            [.., code] => Look::Lost(code.unwrap_or(OsError::GEN_FAILURE)),
        }
    }

    /// Windows would silently give the second user the first one's access.
    fn refuse_another_user(&self, node: &Node, share: &str) -> OperationResult<()> {
        let users = node.smb_users();
        match users.get(share) {
            Some(user) if *user != self.username.to_lowercase() && !node.config().share_smb_mappings => {
                Err(OperationError::precondition(format!(
                    "{share} is mapped for another user, and Windows knows one user per share; \
                     use the same user for all volumes of this share on a node, or another name for the server"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Removes the mapping of a share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoveSmbGlobalMapping {
    /// The share, or a directory on it.
    pub remote: UncPath,
}

impl Operation for RemoveSmbGlobalMapping {
    type Output = ();
    const NAME: &'static str = "RemoveSmbGlobalMapping";
    const POOL: PoolKind = PoolKind::Remote;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn describe(&self) -> String {
        format!("remove the mapping of {}", self.remote.share())
    }

    fn lock_keys(&self, _node: &Node) -> OperationResult<Vec<LockKey>> {
        Ok(vec![LockKey::Share(self.remote.share())])
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let share = self.remote.share();
        let mapping = mapping_of(node, &share)?.ok_or_else(|| OperationError::not_found("it is not mapped"))?;
        remove(node, ctx, &share, &mapping)
    }
}

fn mapping_of(node: &Node, share: &str) -> OperationResult<Option<Instance>> {
    let wql = format!("SELECT * FROM {CLASS} WHERE RemotePath = {}", quote(share));
    Ok(query(&node.host, Namespace::Smb, &wql)?.into_iter().next())
}

fn remove(node: &Node, ctx: &OperationContext, share: &str, mapping: &Instance) -> OperationResult<()> {
    let force = [("Force", Value::Bool(true))];
    let timeout = node.host.timeouts().change;
    let returned = call(&node.host, ctx, Namespace::Smb, &mapping.path, "Remove", &force, timeout)?;
    if returned.code != 0 {
        return Err(OperationError::of(OsError(returned.code), format!("the mapping of {share} cannot be removed")));
    }
    node.smb_users().remove(share);
    Ok(())
}

/// The user and password in the form the class takes.
fn credential(username: &str, password: &Secret) -> Secret {
    let username = username.replace('\\', r"\\").replace(':', r"\:");
    Secret::new(format!("{username}:{}", password.expose()))
}

/// The server's refusal, with what to do where the words alone do not say it.
fn refused(code: OsError, share: &str) -> OperationError {
    let fault = OperationError::of(code, share);
    match code {
        OsError::SESSION_CREDENTIAL_CONFLICT => {
            let advice = "Windows allows one user per server at a time; \
                          use the same user for all its shares, or another name for the server";
            OperationError { reason: format!("{}; {advice}", fault.reason), ..fault }
        }
        _ => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::credential;
    use os::Secret;

    #[test]
    fn a_credential_is_written_so_that_the_user_ends_at_the_first_bare_colon() {
        let text = credential(r"AZURE\acct:1", &Secret::new(r"p:w\".into()));
        assert_eq!(text.expose(), r"AZURE\\acct\:1:p:w\");
    }
}
