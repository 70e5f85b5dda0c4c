//! Simulates SMB: servers on the network, and the node's global mappings to their shares.
//!
//! A failed `Create` is an error with its Win32 code and not a return value, as Windows posts it.
//!
//! A mapping does not hold the password. It records how many times the user's password had changed
//! when the mapping was created, which is enough to detect a later change.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use os::{Instance, OsError, OsResult, Returned, Secret, Uuid, Value};
use serde::{Deserialize, Serialize};

use crate::description::quantity;
use crate::files::file_name::upper_case;
use crate::wmi::method_call::{Arguments, Method, created, instance, method, returned, text};
use crate::wmi::wql::ObjectPath;

/// The class of global mappings.
pub const GLOBAL_MAPPING: &str = "MSFT_SmbGlobalMapping";
/// `ERROR_ALREADY_ASSIGNED`: the remote path is already mapped.
pub const ALREADY_ASSIGNED: OsError = OsError(85);

/// The SMB servers and mappings of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Smb {
    /// The servers on the network.
    pub servers: Vec<Server>,
    /// Whether a policy forbids storing credentials.
    pub forbids_stored_credentials: bool,
    /// The node's global mappings.
    mappings: Vec<Mapping>,
}

/// An SMB server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Its name or address.
    pub host: String,
    /// Whether it answers.
    #[serde(default = "quantity::yes")]
    pub reachable: bool,
    /// How long it takes to answer a request.
    #[serde(default, with = "quantity::duration")]
    pub answer_takes: Duration,
    /// Whether it supports encryption.
    #[serde(default = "quantity::yes")]
    pub encryption: bool,
    /// Its shares.
    #[serde(default)]
    pub shares: Vec<Share>,
    /// The accounts that can log on.
    #[serde(default)]
    pub users: Vec<User>,
}

/// A share of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Its name.
    pub name: String,
    /// The identity of its directory tree, which the node assigns.
    #[serde(skip)]
    pub tree: Uuid,
    /// Whether it accepts guests, which are clients without credentials.
    #[serde(default)]
    pub guest: bool,
    /// Whether clients may list its root directory. Clients may always read the attributes of the
    /// root directory.
    #[serde(default = "quantity::yes")]
    pub listable: bool,
}

/// An account of a server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name, with or without a domain.
    pub name: String,
    password: String,
    /// How many times the password was changed.
    #[serde(skip)]
    changes: u64,
}

/// A global mapping. A mapping in a node file is a mapping that Windows restored after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// `\\host\share`, or a directory on it.
    pub remote: String,
    /// The user, or `None` for a guest.
    #[serde(default)]
    pub user: Option<String>,
    /// Whether Windows restores the mapping after a restart, with stored credentials.
    #[serde(skip, default = "quantity::yes")]
    pub persistent: bool,
    /// Whether it requires encryption.
    #[serde(default)]
    pub privacy: bool,
    /// Whether Windows restored the mapping after a restart. The SMB client then logs on with the
    /// stored credentials, but does not compare the user of a new request with the user of the
    /// mapping.
    #[serde(skip, default = "quantity::yes")]
    restored: bool,
    /// How many times the user's password had changed when the mapping was created.
    #[serde(skip)]
    changes: u64,
}

impl User {
    /// Returns an account.
    pub fn new(name: &str, password: &str) -> Self {
        Self {
            name: name.to_owned(),
            password: password.to_owned(),
            changes: 0,
        }
    }

    /// Returns whether a client that logs on as `name` uses this account. If the account has no
    /// domain, the client may name any domain.
    fn is(&self, name: &str) -> bool {
        let bare = name.rsplit('\\').next().unwrap_or(name);
        let own = upper_case(&self.name);
        own == upper_case(name) || !own.contains('\\') && own == upper_case(bare)
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Returns a server that answers without delay and has no shares and no users.
    pub fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            reachable: true,
            answer_takes: Duration::ZERO,
            encryption: true,
            shares: Vec::new(),
            users: Vec::new(),
        }
    }

    fn share(&self, name: &str) -> Option<&Share> {
        self.shares
            .iter()
            .find(|share| upper_case(&share.name) == upper_case(name))
    }

    fn user(&self, name: &str) -> Option<&User> {
        self.users.iter().find(|user| user.is(name))
    }
}

impl Smb {
    /// Returns the mappings.
    pub fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }

    /// Returns whether a server has the mapping's share, and its user with an unchanged password.
    pub(crate) fn accepts(&self, mapping: &Mapping) -> bool {
        let Some((host, share)) = split(&mapping.remote) else {
            return false;
        };
        let Some(server) = self.server(&host) else {
            return false;
        };
        let is_user = |name: &str| {
            server
                .user(name)
                .is_some_and(|user| user.changes == mapping.changes)
        };
        server
            .share(&share)
            .is_some_and(|share| mapping.user.as_deref().map_or(share.guest, is_user))
    }

    /// Adds mappings that Windows restored after a restart.
    pub(crate) fn restore(&mut self, mappings: &[Mapping]) {
        self.mappings.extend_from_slice(mappings);
    }

    /// Returns the name of a share, `host\share` in upper case, by the identity of its directory
    /// tree.
    pub(crate) fn name_of(&self, tree: Uuid) -> Option<String> {
        self.servers.iter().find_map(|server| {
            let share = server.shares.iter().find(|share| share.tree == tree)?;
            Some(upper_case(&format!(r"{}\{}", server.host, share.name)))
        })
    }

    /// Returns the instances of `MSFT_SmbGlobalMapping`.
    pub fn rows(&self) -> Vec<Instance> {
        self.mappings.iter().map(Mapping::instance).collect()
    }

    /// Calls `method` of a mapping or of the class. `open_shares` are the shares, as `host\share`
    /// in upper case, on which files are open.
    ///
    /// On Windows the call takes [`Self::duration`]: call this when that time has passed.
    pub fn call(
        &mut self,
        target: &ObjectPath,
        method: &str,
        arguments: &[(&str, Value)],
        open_shares: &BTreeSet<String>,
    ) -> OsResult<Returned> {
        if !target.is_of(GLOBAL_MAPPING) {
            return Err(OsError::WBEM_INVALID_CLASS);
        }
        let method = Method::find(&METHODS, target, method).ok_or(OsError::WBEM_INVALID_METHOD)?;
        let arguments = method.arguments(arguments)?;
        if method.name == "Create" {
            return self.create(arguments);
        }
        let force = arguments.bool("Force")?.unwrap_or_default();
        let remote = target.text("RemotePath").ok_or(OsError::WBEM_NOT_FOUND)?;
        let position = self.position(remote).ok_or(OsError::WBEM_NOT_FOUND)?;
        if !force
            && split(remote)
                .is_some_and(|(host, share)| open_shares.contains(&format!(r"{host}\{share}")))
        {
            return Err(OsError::OPEN_FILES);
        }
        self.mappings.remove(position);
        Ok(returned(0))
    }

    /// Returns how long a method call takes. `timeout` is how long Windows waits for a server that
    /// does not answer.
    pub fn duration(
        &self,
        method: &str,
        arguments: &[(&str, Value)],
        timeout: Duration,
    ) -> Duration {
        let named = arguments
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("RemotePath"));
        match named {
            Some((_, Value::Text(remote))) if method.eq_ignore_ascii_case("Create") => {
                // The node rejects a path that is already mapped without asking the server.
                if self.position(remote).is_some() {
                    Duration::ZERO
                } else {
                    self.answer_time(remote, timeout)
                }
            }
            _ => Duration::ZERO,
        }
    }

    /// Returns how long the server of `remote` takes to answer, or `timeout` if it does not.
    pub fn answer_time(&self, remote: &str, timeout: Duration) -> Duration {
        let server = split(remote).and_then(|(host, _)| self.server(&host));
        match server {
            None => Duration::ZERO,
            Some(server) if server.reachable => server.answer_takes,
            Some(_) => timeout,
        }
    }

    /// Opens the share of `remote` (`\\host\share`, with or without a path behind it) and returns
    /// the identity of its tree.
    ///
    /// On Windows this takes [`Self::answer_time`].
    pub fn open(&self, remote: &str) -> OsResult<Uuid> {
        let (host, share) = split(remote).ok_or(OsError::BAD_NET_NAME)?;
        let is_on_share =
            |mapping: &Mapping| split(&mapping.remote) == Some((host.clone(), share.clone()));
        // Windows opens a share that is not mapped through any session with its server.
        let session = self.mappings.iter().find(|mapping| is_on_share(mapping));
        let session = session.or_else(|| self.mappings.iter().find(|mapping| mapping.is_to(&host)));
        let guest = self.log_on(&host, session)?;
        let share = self
            .server(&host)
            .and_then(|server| server.share(&share))
            .ok_or(OsError::BAD_NET_NAME)?;
        if guest && !share.guest {
            Err(OsError::LOGON_FAILURE)
        } else {
            Ok(share.tree)
        }
    }

    /// Changes the password of `user` on `host`. Mappings with the old password fail from then on.
    /// Returns false if the server or the user does not exist.
    pub fn rotate(&mut self, host: &str, user: &str, password: &str) -> bool {
        let server = self
            .servers
            .iter_mut()
            .find(|server| server.host.eq_ignore_ascii_case(host));
        let Some(user) =
            server.and_then(|server| server.users.iter_mut().find(|known| known.is(user)))
        else {
            return false;
        };
        password.clone_into(&mut user.password);
        user.changes += 1;
        true
    }

    /// Restarts the node: keeps the persistent mappings, which connect at their first use.
    pub fn reboot(&mut self) {
        self.mappings.retain(|mapping| mapping.persistent);
        self.mappings
            .iter_mut()
            .for_each(|mapping| mapping.restored = true);
    }

    fn create(&mut self, arguments: Arguments<'_>) -> OsResult<Returned> {
        let remote = arguments.text("RemotePath")?.unwrap_or_default().to_owned();
        let privacy = arguments.bool("RequirePrivacy")?.unwrap_or_default();
        let persistent = arguments.bool("Persistent")?.unwrap_or(true);
        let credential = arguments
            .secret("Credential")?
            .filter(|credential| !credential.expose().is_empty());
        let split = credential
            .map(|text| split_credential(text.expose()).ok_or(OsError::INVALID_PARAMETER));
        let (user, password) = split.transpose()?.unzip();
        let mapping = Mapping {
            remote,
            user,
            persistent,
            privacy,
            restored: false,
            changes: 0,
        };
        Ok(created("CreatedMapping", self.map(mapping, password)?))
    }

    fn map(&mut self, mut mapping: Mapping, password: Option<Secret>) -> OsResult<Instance> {
        let (host, share) = split(&mapping.remote).ok_or(OsError::BAD_NET_NAME)?;
        if mapping.remote.ends_with('\\') {
            return Err(OsError::INVALID_PARAMETER);
        }
        let user = mapping.user.as_deref();
        let is_stored = mapping.persistent && user.is_some();
        if user.is_some_and(|user| !user.contains('\\'))
            || is_stored && self.forbids_stored_credentials
        {
            return Err(OsError::NO_SUCH_LOGON_SESSION);
        }
        if let Some(position) = self.position(&mapping.remote) {
            let is_same = self.mappings[position].is_of(user);
            return Err(if is_same {
                ALREADY_ASSIGNED
            } else {
                OsError::SESSION_CREDENTIAL_CONFLICT
            });
        }
        let server = self
            .server(&host)
            .filter(|server| server.reachable)
            .ok_or(OsError::BAD_NETPATH)?;
        if mapping.privacy && !server.encryption {
            return Err(OsError::NETWORK_ACCESS_DENIED);
        }
        let mut sessions = self
            .mappings
            .iter()
            .filter(|mapping| mapping.is_to(&host))
            .peekable();
        let has_session = sessions.peek().is_some();
        if sessions.any(|session| !session.is_of(user) || session.is_above(&mapping.remote)) {
            return Err(OsError::SESSION_CREDENTIAL_CONFLICT);
        }
        let changes = match user.zip(password) {
            None => 0,
            Some((name, password)) => {
                let known = server.user(name).ok_or(OsError::LOGON_FAILURE)?;
                if known.password != password.expose() {
                    // If a session of the user is open, the node itself compares the password.
                    return Err(if has_session {
                        OsError::INVALID_PASSWORD
                    } else {
                        OsError::LOGON_FAILURE
                    });
                }
                known.changes
            }
        };
        let found = server.share(&share).ok_or(OsError::BAD_NET_NAME)?;
        if user.is_none() && !found.guest {
            return Err(OsError::LOGON_FAILURE);
        }
        mapping.changes = changes;
        let created = mapping.instance();
        self.mappings.push(mapping);
        Ok(created)
    }

    /// Logs on to `host` as the user of `session`. Returns whether the logon is as a guest.
    fn log_on(&self, host: &str, session: Option<&Mapping>) -> OsResult<bool> {
        let server = self
            .server(host)
            .filter(|server| server.reachable)
            .ok_or(OsError::BAD_NETPATH)?;
        let Some((mapping, name)) =
            session.and_then(|mapping| Some((mapping, mapping.user.as_deref()?)))
        else {
            return Ok(true);
        };
        let user = server.user(name).ok_or(OsError::LOGON_FAILURE)?;
        if user.changes == mapping.changes {
            Ok(false)
        } else {
            Err(OsError::LOGON_FAILURE)
        }
    }

    fn server(&self, host: &str) -> Option<&Server> {
        self.servers
            .iter()
            .find(|server| upper_case(&server.host) == upper_case(host))
    }

    fn position(&self, remote: &str) -> Option<usize> {
        self.mappings
            .iter()
            .position(|mapping| upper_case(&mapping.remote) == upper_case(remote))
    }
}

impl Mapping {
    fn is_to(&self, host: &str) -> bool {
        split(&self.remote).is_some_and(|(own, _)| own == host)
    }

    /// Returns whether the SMB client considers `user` to be the user of the mapping.
    fn is_of(&self, user: Option<&str>) -> bool {
        let known = self.user.as_deref().filter(|_| !self.restored);
        known.map(upper_case) == user.map(upper_case)
    }

    /// Returns whether `remote` is a directory below the mapped path.
    fn is_above(&self, remote: &str) -> bool {
        upper_case(remote)
            .strip_prefix(&upper_case(&self.remote))
            .is_some_and(|rest| rest.starts_with('\\'))
    }

    fn instance(&self) -> Instance {
        let path = ObjectPath::object(GLOBAL_MAPPING, "RemotePath", &self.remote);
        let properties = [
            ("RemotePath", text(&self.remote)),
            ("RequirePrivacy", Value::Bool(self.privacy)),
        ];
        instance(&path, properties)
    }
}

pub(crate) static METHODS: [Method; 2] = [
    method(
        GLOBAL_MAPPING,
        "Create",
        "RemotePath Credential Persistent RequirePrivacy",
    ),
    method(GLOBAL_MAPPING, "Remove", "Force"),
];

/// Splits a credential into the user and the password: `\\` and `\:` stand for a backslash and a
/// colon in the name of the user, and the first other colon ends the name.
fn split_credential(text: &str) -> Option<(String, Secret)> {
    let mut user = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            ':' => return Some((user, Secret::new(text[at + 1..].to_owned()))),
            '\\' => match characters.next()? {
                (_, escaped @ ('\\' | ':')) => user.push(escaped),
                _ => return None,
            },
            _ => user.push(character),
        }
    }
    None
}

/// Returns the host and share of a UNC path in upper case.
fn split(remote: &str) -> Option<(String, String)> {
    let upper = upper_case(remote);
    let mut parts = upper.strip_prefix(r"\\")?.split('\\');
    let host = parts.next()?;
    let share = parts.next()?;
    (!host.is_empty() && !share.is_empty()).then(|| (host.to_owned(), share.to_owned()))
}
