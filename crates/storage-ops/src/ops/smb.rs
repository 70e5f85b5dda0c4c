//! Operations on SMB global mappings: the node's connections to shares, which all containers use.
//!
//! Windows has one mapping for each share, and one user for each server. All requests for a path on
//! the share use the same mapping: a directory cannot be mapped beside its share. A readable
//! mapping is never removed, because that would break the files that other pods have open.
//!
//! Windows keeps mappings over a restart and stores their credentials. After the restart, a share
//! is connected at its first use, but another share of its server cannot be mapped, not even for
//! the same user.
//!
//! `mapping_state` has the states of a mapping, and what a request does in each; docs/smb.md
//! explains them.

mod global_mapping;
mod mapping_state;
mod own_node;
mod remedy;

use std::iter;

use global_mapping::{CLASS, Resolved, remove};
use mapping_state::{MappingState, Refusal, Step};
use os::{Instance, MethodCall, Namespace, OsError, Value};

use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::executor::operation::{Coalesce, Operation};
use crate::node::Node;
use crate::node::run::Run;
use crate::node::smb_mapping_record::Origin;
use crate::paths::links::{LinkKind, check_kind, create_link, existing_link};
use crate::paths::opening::OPEN_NOFOLLOW;
use crate::provider::wmi::call;
use crate::readings::share::{self, Unreadable};
use crate::scheduling::{LockKey, PoolKind, Resource};
use crate::types::{HostPath, SecretText, SmbUser, UncPath};

/// Maps a share, unless it is mapped already, and creates a directory link to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NewSmbGlobalMapping {
    /// The share, or a directory on it.
    pub remote: UncPath,
    /// The path of the link, in a working directory; its parent must exist. `None` creates no link.
    pub local: Option<HostPath>,
    /// The user; `None` for the identity of the node.
    pub user: Option<SmbUser>,
    /// The password of the user.
    pub password: SecretText,
}

impl Operation for NewSmbGlobalMapping {
    type Output = ();
    const NAME: &'static str = "NewSmbGlobalMapping";
    const POOL: PoolKind = PoolKind::Remote;
    const COALESCE: Coalesce = Coalesce::InFlight;

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Server(self.remote.server()))
    }

    fn describe(&self) -> String {
        match &self.local {
            Some(local) => format!("map {} at {local}", self.remote),
            None => format!("map {}", self.remote),
        }
    }

    fn check_allowed(&self, node: &Node) -> OperationResult<()> {
        match &node.config().smb_servers {
            Some(servers) if !servers.iter().any(|server| server.is_that_of(&self.remote)) => {
                Err(OperationError::not_listed(
                    "-smb-servers",
                    format_args!("the server {}", self.remote.server()),
                ))
            }
            _ => match &self.local {
                Some(local) => node.directories.check_entry(local, None),
                None => Ok(()),
            },
        }
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        let share = LockKey::Share(self.remote.share());
        let link = self
            .local
            .iter()
            .map(|local| LockKey::Path(local.entry_key()));
        iter::once(share).chain(link).collect()
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        if self.user.is_none() {
            own_node::refuse(run, &self.remote.server())?;
        }
        let (substitute, print) = (self.remote.to_nt(false), self.remote.print_name());
        // Checks the path of the link first, so that no mapping is created for a link that cannot
        // be created.
        let entry = match &self.local {
            Some(local) => Some(
                run.node()
                    .directories
                    .entry(run.os(), local, &OPEN_NOFOLLOW)?,
            ),
            None => None,
        };
        if let Some(entry) = &entry
            && let Some(kind) = existing_link(entry, substitute.as_u16str())?
        {
            check_kind(kind, LinkKind::Directory)?;
        }
        let is_new = self.connect(run)?;
        let Some(entry) = entry else { return Ok(()) };
        let linked = run.begin_mutation().and_then(|()| {
            let kind = LinkKind::Directory;
            create_link(run.windows(), &entry, substitute.as_u16str(), &print, kind)
        });
        if linked.is_err() && is_new {
            // No other operation can use the new mapping yet, because its share is locked, but pods
            // can by older links.
            if let Err(error) = self.disconnect(run) {
                tracing::warn!(
                    share = self.remote.share(), %error,
                    "a mapping was not removed after its link failed"
                );
            }
        }
        linked
    }
}

impl NewSmbGlobalMapping {
    /// Maps the share. Returns whether it was not mapped before.
    fn connect(&self, run: Run<'_>) -> OperationResult<bool> {
        let share = self.remote.share();
        let mapping = global_mapping::find(run, &share)?;
        let state = self.state(run, mapping.as_ref())?;
        if state == MappingState::OtherPassword {
            run.node().smb_mappings.count_password_difference();
        }
        let step = state.step(run.node().config());
        let lacks_privacy = mapping
            .as_ref()
            .is_some_and(|mapping| mapping.bool("RequirePrivacy") == Some(false));
        if matches!(step, Step::Use | Step::UseWithWarning)
            && lacks_privacy
            && run.node().config().require_privacy
        {
            tracing::warn!(
                share,
                "the existing mapping of the share is used, although it does not require \
                 encryption; csi-proxy's flag -require-privacy decides on new mappings"
            );
        }
        match step {
            Step::Make => self.make(run).map(|()| true),
            Step::Use => Ok(false),
            Step::UseWithWarning => {
                tracing::warn!(
                    share,
                    user = self.user_name(),
                    "the request's password differs from the one the share was mapped with; the \
                     existing mapping is used, because Windows does not check the password again"
                );
                Ok(false)
            }
            Step::Refuse(refusal) => {
                self.log_refusal(refusal, &share);
                Err(remedy::refusal(refusal, &share))
            }
            Step::Replace(code) => self.replace(run, mapping, code, true),
            Step::ReplaceUnlessInUse(code) => self.replace(run, mapping, code, false),
        }
    }

    /// Logs the refusal of a user or password with the user, whom the error does not name.
    fn log_refusal(&self, refusal: Refusal, share: &str) {
        let user = self.user_name();
        match refusal {
            Refusal::OtherUser => {
                tracing::warn!(share, user, "refused another user for a mapped share");
            }
            Refusal::OtherPassword => {
                tracing::warn!(share, user, "refused another password for a mapped share");
            }
            Refusal::Unreadable(_) => {}
        }
    }

    /// Replaces a mapping that cannot be used because of `code`. Returns that the share was mapped
    /// before.
    fn replace(
        &self,
        run: Run<'_>,
        mapping: Option<Instance>,
        code: OsError,
        force: bool,
    ) -> OperationResult<bool> {
        let share = self.remote.share();
        tracing::info!(share, %code, "replacing a mapping that cannot be used");
        if let Some(mapping) = mapping {
            remove(run, &share, &mapping, force)
                .map_err(|error| remedy::kept(code, &share, error))?;
        }
        self.make(run).map(|()| false)
    }

    /// Returns the state of the mapping of the share, and records that the mapping is used if it
    /// can be read.
    fn state(&self, run: Run<'_>, mapping: Option<&Instance>) -> OperationResult<MappingState> {
        if mapping.is_none() {
            return Ok(MappingState::NotMapped);
        }
        let share = self.remote.share();
        let origin = run.node().smb_mappings.origin(run.windows(), &share)?;
        let is_older = origin == Origin::BeforeStartOfWindows;
        let read = match share::read(run, &self.remote) {
            Err(Unreadable::ShareMissing(_)) if !is_older => {
                share::wait_for_share(run, &self.remote)?
            }
            read => read,
        };
        match read {
            Ok(()) => run.node().smb_mappings.find(run.windows(), &share, &origin),
            Err(Unreadable::CredentialsRefused(code)) => {
                return Ok(MappingState::CredentialsRefused(code));
            }
            Err(Unreadable::ShareMissing(code) | Unreadable::Refused(code)) if is_older => {
                return Ok(MappingState::FromBeforeStart(code));
            }
            Err(Unreadable::ShareMissing(code)) => return Ok(MappingState::ShareGone(code)),
            Err(Unreadable::Refused(code) | Unreadable::Other(code)) => {
                return Ok(MappingState::Unreadable(code));
            }
        }
        let user = self.user_name().to_lowercase();
        if matches!(origin, Origin::SinceStartOfWindows(Some(other)) if other != user) {
            return Ok(MappingState::OtherUser);
        }
        let differs = run
            .node()
            .smb_mappings
            .password_differs(&share, &self.password);
        Ok(if differs {
            MappingState::OtherPassword
        } else {
            MappingState::Readable
        })
    }

    /// Makes the mapping and records its user.
    fn make(&self, run: Run<'_>) -> OperationResult<()> {
        let share = self.remote.share();
        // Recorded before the call: the mapping may be created long after the call has timed out.
        let user = self.user_name().to_lowercase();
        run.node()
            .smb_mappings
            .make(run.windows(), &share, &user, &self.password);
        let error = match self.create_or_resolve_conflict(run) {
            Err(error) if error.kind != ErrorKind::StillRunning => error,
            outcome => return outcome,
        };
        run.node().smb_mappings.forget(run.windows(), &share);
        Err(remedy::of_creation(&self.remote.server(), error))
    }

    /// Creates the mapping. If another user's mappings of the server prevent that, tries again
    /// without those that can be removed.
    fn create_or_resolve_conflict(&self, run: Run<'_>) -> OperationResult<()> {
        let error = match self.create_storable(run) {
            Err(error) if is_conflict(&error) => error,
            outcome => return outcome,
        };
        let Resolved {
            has_removed,
            remaining,
        } = global_mapping::resolve_conflict(run, &self.remote)?;
        let error = match has_removed.then(|| self.create_storable(run)) {
            None => error,
            Some(Err(error)) if is_conflict(&error) => error,
            Some(outcome) => return outcome,
        };
        Err(remedy::of_conflict(&error, &remaining))
    }

    /// Creates a mapping that survives a restart of Windows, or one that does not if Windows cannot
    /// store the credentials, as a policy may forbid.
    fn create_storable(&self, run: Run<'_>) -> OperationResult<()> {
        let has_domain = self.user_name().contains(['\\', '@']);
        match self.create(run, &[]) {
            Err(error) if error.code == Some(OsError::NO_SUCH_LOGON_SESSION) && has_domain => {
                self.create(run, &[("Persistent", Value::Bool(false))])
            }
            outcome => outcome,
        }
    }

    /// Creates the mapping.
    fn create(&self, run: Run<'_>, options: &[(&str, Value)]) -> OperationResult<()> {
        let share = self.remote.share();
        let mut arguments = options.to_vec();
        arguments.push(("RemotePath", Value::Text(share.clone())));
        arguments.push((
            "RequirePrivacy",
            Value::Bool(run.node().config().require_privacy),
        ));
        if let Some(user) = &self.user {
            arguments.push(("Credential", Value::Secret(user.credential(&self.password))));
        }
        let create = MethodCall::new(Namespace::Smb, CLASS, "Create", &arguments);
        match call(run, &create, run.timeouts().change)?.code {
            0 => Ok(()),
            code => Err(OperationError::of(
                OsError(code),
                format!("Windows did not map {share}"),
            )),
        }
    }

    /// Removes the mapping again, unless files are open on it.
    fn disconnect(&self, run: Run<'_>) -> OperationResult<()> {
        let share = self.remote.share();
        global_mapping::find(run, &share)?
            .map_or(Ok(()), |mapping| remove(run, &share, &mapping, false))
    }

    /// Returns the name of the user; empty for the identity of the node.
    fn user_name(&self) -> &str {
        self.user.as_ref().map_or("", SmbUser::as_str)
    }
}

/// Returns whether mappings of another user prevent the mapping.
fn is_conflict(error: &OperationError) -> bool {
    error.code == Some(OsError::SESSION_CREDENTIAL_CONFLICT)
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

    fn resource(&self) -> Option<Resource> {
        Some(Resource::Server(self.remote.server()))
    }

    fn describe(&self) -> String {
        format!("remove the mapping of {}", self.remote.share())
    }

    fn lock_keys(&self) -> Vec<LockKey> {
        vec![LockKey::Share(self.remote.share())]
    }

    async fn run(&self, run: Run<'_>) -> OperationResult<()> {
        let share = self.remote.share();
        let mapping = global_mapping::find(run, &share)?
            .ok_or_else(|| OperationError::not_found("the share is not mapped"))?;
        remove(run, &share, &mapping, true)
    }
}
