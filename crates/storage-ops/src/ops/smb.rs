//! Operations on SMB global mappings: the node's connections to shares, which all containers use.
//!
//! Windows has one mapping for each share, and one user for each server. All requests for a path on the share use the
//! same mapping: a directory cannot be mapped beside its share. A readable mapping is never removed, because that would
//! break the files that other pods have open.
//!
//! Windows keeps mappings over a restart and stores their credentials. After the restart, a share is connected at its
//! first use, but another share of its server cannot be mapped, not even for the same user.

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
            if let Err(error) = self.disconnect(node, ctx) {
                tracing::warn!(share = self.remote.share(), %error, "a mapping was not removed after its link failed");
            }
        }
        linked
    }
}

/// Whether a mapping can be used.
enum MappingHealth {
    /// The share can be read.
    Healthy,
    /// The share cannot be read at the moment. Files that are open on it may become usable again.
    Unreadable(OsError),
    /// The server refuses the credentials of the mapping, or no longer has the share.
    Refused(OsError),
}

impl NewSmbGlobalMapping {
    /// Maps the share. Returns false if a mapping exists that can be used.
    fn connect(&self, node: &Node, ctx: &OperationContext) -> OperationResult<bool> {
        let share = self.remote.share();
        if let Some(mapping) = find_mapping(node, &share)? {
            match self.health(node) {
                MappingHealth::Healthy => return self.refuse_another_user(node, &share).map(|()| false),
                MappingHealth::Unreadable(code) => {
                    let error = OperationError::of(code, format!("{share} is mapped, but cannot be read"));
                    return Err(OperationError { kind: Kind::FailedPrecondition, ..error });
                }
                MappingHealth::Refused(code) => {
                    tracing::info!(share, %code, "replacing a mapping that the server refuses");
                    remove(node, ctx, &share, &mapping)?;
                }
            }
        }
        // Recorded before the call: the mapping may be created long after the call has timed out.
        node.smb_users().insert(share.clone(), self.username.to_lowercase());
        let created = match self.create(node, ctx, &[]) {
            // Windows may be forbidden to store the credentials, which it needs for a mapping that survives a restart.
            Err(error) if error.code == Some(OsError::NO_SUCH_LOGON_SESSION) && has_domain(&self.username) => {
                self.create(node, ctx, &[("Persistent", Value::Bool(false))])
            }
            outcome => outcome,
        };
        match created {
            Ok(()) => Ok(true),
            Err(error) if error.kind == Kind::StillRunning => Err(error),
            Err(error) => {
                node.smb_users().remove(&share);
                Err(self.with_advice(node, error))
            }
        }
    }

    /// Creates the mapping.
    fn create(&self, node: &Node, ctx: &OperationContext, options: &[(&str, Value)]) -> OperationResult<()> {
        let share = self.remote.share();
        let mut arguments = options.to_vec();
        arguments.push(("RemotePath", Value::Text(share.clone())));
        arguments.push(("RequirePrivacy", Value::Bool(node.config().require_privacy)));
        if !self.username.is_empty() {
            arguments.push(("Credential", Value::Secret(credential(&self.username, &self.password))));
        }
        let create = MethodCall::new(Namespace::Smb, CLASS, "Create", &arguments);
        match call(&node.host, ctx, &create, node.host.timeouts().change)?.code {
            0 => Ok(()),
            code => Err(OperationError::of(OsError(code), format!("Windows did not map {share}"))),
        }
    }

    /// Adds advice to the error of a mapping that was not created, if its code alone does not suggest a remedy.
    fn with_advice(&self, node: &Node, error: OperationError) -> OperationError {
        let advice = match error.code {
            Some(OsError::SESSION_CREDENTIAL_CONFLICT) => format!(
                "Windows allows one user per server at a time, and after a restart it no longer knows the user of a \
                 mapping; {}use the same user for all shares of the server, or another name of the server",
                self.mapped_on_same_server(node),
            ),
            Some(OsError::NO_SUCH_LOGON_SESSION) => {
                r"the user name needs a domain, such as DOMAIN\user; any domain will do for a server without one".into()
            }
            _ => return error,
        };
        OperationError { reason: format!("{}; {advice}", error.reason), ..error }
    }

    /// Returns advice to remove the mappings of other shares of the server that nothing uses; empty if there are none.
    fn mapped_on_same_server(&self, node: &Node) -> String {
        let share = self.remote.share();
        let server = &share[..=share.rfind('\\').unwrap_or_default()];
        let mappings = query(&node.host, Namespace::Smb, &format!("SELECT * FROM {CLASS}")).unwrap_or_default();
        let remotes = mappings.iter().filter_map(|mapping| mapping.text("RemotePath"));
        let others: Vec<_> = remotes.filter(|remote| remote.to_lowercase().starts_with(server)).take(3).collect();
        if others.is_empty() {
            return String::new();
        }
        format!("remove those that no pod uses ({}), ", others.join(", "))
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
        let is_refused = |code: OsError| ErrorClass::MappingRefused.contains(code);
        // Up to three attempts: removing a mapping breaks the open files of other pods, so a single error, which may be
        // transient, is not enough.
        let Err(of_share) = list(true) else { return MappingHealth::Healthy };
        match (of_share, list(false)) {
            (_, Ok(())) => return MappingHealth::Healthy,
            // The user is not allowed to list the share, but the server reports that the directory does not exist.
            (OsError::ACCESS_DENIED, Err(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND)) => {
                return MappingHealth::Healthy;
            }
            _ => {}
        }
        match list(true) {
            Ok(()) => MappingHealth::Healthy,
            Err(code) if is_refused(of_share) && is_refused(code) => MappingHealth::Refused(code),
            // The code because of which the mapping is kept.
            Err(code) => MappingHealth::Unreadable(if is_refused(code) { of_share } else { code }),
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

/// Returns whether a user name has a domain before or after it.
fn has_domain(username: &str) -> bool {
    username.contains(['\\', '@'])
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
