//! What a check can ask for on the network and among the services.

/// An SMB server that nothing else uses. It does not accept guests.
#[derive(Clone, Debug)]
pub struct TestServer {
    /// The name or the address.
    pub host: String,
    /// The names of two shares. The first one has the directories `a` and `b`.
    pub shares: [String; 2],
    /// Two users who may read both shares.
    pub users: [TestUser; 2],
}

/// A user of an SMB server.
#[derive(Clone, Debug)]
pub struct TestUser {
    /// The name, without a domain.
    pub name: String,
    /// The password.
    pub password: String,
}

impl TestServer {
    /// Returns the remote path of a share, in lower case.
    pub fn remote(&self, share: usize) -> String {
        format!(r"\\{}\{}", self.host, self.shares[share]).to_lowercase()
    }
}

/// An iSCSI portal.
#[derive(Clone, Debug)]
pub struct TestPortal {
    /// The IP address.
    pub address: String,
    /// The TCP port.
    pub port: u16,
}

/// An iSCSI target that nothing else uses, with one logical unit.
#[derive(Clone, Debug)]
pub struct TestTarget {
    /// Its only portal.
    pub portal: TestPortal,
    /// Its iSCSI qualified name.
    pub iqn: String,
    /// The CHAP user and secret; empty if the target wants none.
    pub chap: (String, String),
}

/// The kinds of iSCSI targets that a check can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// Without authentication.
    Open,
    /// With one-way CHAP.
    Chap,
}

/// The kinds of services that a check can ask for. Each is stopped, starts on demand and is used by
/// nothing else, unless its kind says otherwise. On a simulated node the service has the name of
/// its kind; elsewhere the name of the kind, in upper case, is the end of the variable of the
/// environment that names the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// Starts and stops at once. [`Self::First`] and [`Self::Second`] depend on it.
    Plain,
    /// Depends on [`Self::Plain`].
    First,
    /// Depends on [`Self::Plain`].
    Second,
    /// Depends on [`Self::First`].
    Third,
    /// Takes two seconds to start and two to stop.
    Slow,
    /// Another such service.
    SlowToo,
    /// Disabled.
    Disabled,
    /// Depends on [`Self::Disabled`].
    NeedsDisabled,
    /// Depends on a service that does not exist.
    NeedsMissing,
    /// Stops with an error while it is starting, after a second.
    Failing,
    /// Does not accept the control to stop.
    Unstoppable,
}
