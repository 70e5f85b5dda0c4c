//! Operations on SMB global mappings: the node's connections to shares, which all containers use.
//!
//! Windows has one mapping for each share, and one user for each mapping. All requests for a path on the share use the
//! same mapping. A readable mapping is never removed, because that would break the files that other pods have open.

use os::{Access, Instance, MethodCall, Namespace, Open, Options, OsError, OsResult, Secret, Value};

use crate::error::{Kind, OperationError, OperationResult};
use crate::executor::context::OperationContext;
use crate::executor::locks::LockKey;
use crate::executor::operation::{Coalesce, Operation};
use crate::executor::pool_kind::PoolKind;
use crate::node::Node;
use crate::paths::links::{create_link, link_exists};
use crate::paths::working_directories::OPEN_NOFOLLOW;
use crate::types::{HostPath, UncPath};
use crate::windows::error_class::ErrorClass;
use crate::windows::wmi::{call, query, quote};

const CLASS: &str = "MSFT_SmbGlobalMapping";

/// `MSFT_SmbGlobalMapping.Status` of a mapping that is connected.
const STATUS_OK: u32 = 0;

/// Maps a share, unless it is mapped already, and creates a directory link to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewSmbGlobalMapping {
    /// The share, or a directory on it.
    pub remote: UncPath,
    /// The path of the link, in a working directory; its parent must exist. `None` creates no link.
    pub local: Option<HostPath>,
    /// `user` or `domain\user`; empty for the identity of the node.
    pub username: String,
    /// The password of the user.
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
        let mut keys = vec![LockKey::Share(self.remote.share())];
        if let Some(local) = &self.local {
            node.directories.check(local, None)?;
            keys.push(LockKey::Path(local.key()));
        }
        Ok(keys)
    }

    fn run(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        if self.username.contains('\0') || self.password.expose().contains('\0') {
            return Err(OperationError::invalid("the user name or the password contains a NUL character"));
        }
        let (substitute, print) = (self.remote.to_nt(false), self.remote.print_name());
        // Checks the path of the link first, so that no mapping is created for a link that cannot be created.
        let entry = match &self.local {
            Some(local) => Some(node.directories.entry(node.host.os(), local, None, &OPEN_NOFOLLOW)?),
            None => None,
        };
        if let Some(entry) = &entry {
            link_exists(entry, substitute.as_u16str())?;
        }
        let created = self.connect(node, ctx)?;
        let Some(entry) = entry else { return Ok(()) };
        let linked = create_link(&entry, substitute.as_u16str(), &print, || Ok(Options::DIRECTORY), ctx);
        if linked.is_err() && created {
            // No other operation can use the new mapping yet: its share is locked.
            self.disconnect(node, ctx)?;
        }
        linked
    }
}

/// Whether a mapping can be used.
enum MappingHealth {
    /// The share can be read.
    Healthy,
    /// The server cannot be reached at the moment. Files that are open on the share may become usable again.
    Unreachable(OsError),
    /// The server no longer accepts the mapping.
    Broken(OsError),
}

impl NewSmbGlobalMapping {
    /// Maps the share. Returns false if a mapping exists that can be used.
    fn connect(&self, node: &Node, ctx: &OperationContext) -> OperationResult<bool> {
        let share = self.remote.share();
        if let Some(mapping) = find_mapping(node, &share)? {
            // A mapping from before a reboot may be permanently unusable, and cannot be distinguished from one with an
            // unreachable server.
            let is_current = mapping.u32("Status") == Some(STATUS_OK) || node.smb_users().contains_key(&share);
            match self.health(node) {
                MappingHealth::Healthy => return self.refuse_another_user(node, &share).map(|()| false),
                // Open files become usable again when the server is back, unless the mapping is removed.
                MappingHealth::Unreachable(code) if is_current => {
                    return Err(OperationError::of(code, format!("{share} is mapped, but cannot be reached")));
                }
                MappingHealth::Unreachable(code) | MappingHealth::Broken(code) => {
                    tracing::info!(share, %code, "replacing a mapping that cannot be read");
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
        // Recorded before the call: the mapping may be created long after the call has timed out.
        node.smb_users().insert(share.clone(), self.username.to_lowercase());
        let create = MethodCall::new(Namespace::Smb, CLASS, "Create", &arguments);
        let error = match call(&node.host, ctx, &create, timeout) {
            Ok(returned) if returned.code == 0 => return Ok(true),
            Ok(returned) => create_error(OsError(returned.code), &share),
            Err(error) if error.kind == Kind::StillRunning => return Err(error),
            Err(error) => error.code.map_or(error, |code| create_error(code, &share)),
        };
        node.smb_users().remove(&share);
        Err(error)
    }

    fn disconnect(&self, node: &Node, ctx: &OperationContext) -> OperationResult<()> {
        let share = self.remote.share();
        find_mapping(node, &share)?.map_or(Ok(()), |mapping| remove(node, ctx, &share, &mapping))
    }

    /// Reads the share and the requested directory through the existing mapping.
    fn health(&self, node: &Node) -> MappingHealth {
        let list = |share_only: bool| -> OsResult<()> {
            let access = Access::READ_DATA | Access::READ_ATTRIBUTES;
            let directory =
                node.host.os().open(&self.remote.to_nt(share_only), &Open::existing(access, Options::DIRECTORY))?;
            match directory.list(true, &mut [0; 4096]) {
                Err(OsError::NO_MORE_FILES) => Ok(()),
                outcome => outcome,
            }
        };
        // Three attempts: removing a mapping breaks the open files of other pods, so a single error, which may be
        // transient, is not enough.
        let attempts = [true, false, true].map(|share_only| list(share_only).err());
        match attempts {
            _ if attempts.contains(&None) => MappingHealth::Healthy,
            // The user is not allowed to list the share, but the server reports that the directory does not exist.
            [Some(OsError::ACCESS_DENIED), Some(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND), _] => {
                MappingHealth::Healthy
            }
            [.., Some(code)] if ErrorClass::ServerUnreachable.contains(code) => MappingHealth::Unreachable(code),
            [.., code] => MappingHealth::Broken(code.unwrap_or(OsError::GEN_FAILURE)),
        }
    }

    /// Refuses a user other than that of the mapping: Windows would silently grant the access of the first user.
    fn refuse_another_user(&self, node: &Node, share: &str) -> OperationResult<()> {
        let users = node.smb_users();
        match users.get(share) {
            Some(user) if *user != self.username.to_lowercase() && !node.config().share_smb_mappings => {
                Err(OperationError::precondition(format!(
                    "{share} is mapped for another user, and Windows allows one user per share; use the same user for \
                     all volumes of the share on a node, map it by another name of the server, or allow sharing with \
                     -share-smb-mappings"
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
        let mapping =
            find_mapping(node, &share)?.ok_or_else(|| OperationError::not_found("the share is not mapped"))?;
        remove(node, ctx, &share, &mapping)
    }
}

fn find_mapping(node: &Node, share: &str) -> OperationResult<Option<Instance>> {
    let wql = format!("SELECT * FROM {CLASS} WHERE RemotePath = {}", quote(share));
    Ok(query(&node.host, Namespace::Smb, &wql)?.into_iter().next())
}

fn remove(node: &Node, ctx: &OperationContext, share: &str, mapping: &Instance) -> OperationResult<()> {
    let force = [("Force", Value::Bool(true))];
    let remove = MethodCall::new(Namespace::Smb, &mapping.path, "Remove", &force);
    let returned = call(&node.host, ctx, &remove, node.host.timeouts().change)?;
    if returned.code != 0 {
        return Err(OperationError::of(
            OsError(returned.code),
            format!("Windows did not remove the mapping of {share}"),
        ));
    }
    node.smb_users().remove(share);
    Ok(())
}

/// Returns the user and the password in the form that [`CLASS`] expects.
fn credential(username: &str, password: &Secret) -> Secret {
    let username = username.replace('\\', r"\\").replace(':', r"\:");
    Secret::new(format!("{username}:{}", password.expose()))
}

/// Returns the error of a mapping that was not created, with advice if the code alone does not suggest a remedy.
fn create_error(code: OsError, share: &str) -> OperationError {
    let error = OperationError::of(code, share);
    match code {
        OsError::SESSION_CREDENTIAL_CONFLICT => {
            let advice = "Windows allows one user per server at a time; \
                          use the same user for all its shares, or map it by another name of the server";
            OperationError { reason: format!("{}; {advice}", error.reason), ..error }
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::credential;
    use os::Secret;

    #[test]
    fn the_user_of_a_credential_ends_at_the_first_unescaped_colon() {
        let text = credential(r"AZURE\acct:1", &Secret::new(r"p:w\".into()));
        assert_eq!(text.expose(), r"AZURE\\acct\:1:p:w\");
    }
}
