//! The sessions of an iSCSI target: where they lead, and whether they have a connection.

use std::time::Duration;

use os::Instance;

use crate::error::OperationResult;
use crate::node::iscsi_sessions::DEAD_AFTER;
use crate::node::run::Run;
use crate::provider::msft_iscsi::{connections_of, end_of, is_connected, sessions_of};
use crate::types::{Iqn, TargetPortal};

/// A session with a target.
pub(crate) struct Session {
    /// Its instance of `MSFT_iSCSISession`.
    pub(crate) instance: Instance,
    /// The connections that Windows lists.
    pub(crate) connections: Vec<Instance>,
    /// The portals of the session, as far as they are known.
    pub(crate) portals: Vec<TargetPortal>,
    /// For how long the session is known to have had no connection; `None` if it has one.
    lost_for: Option<Duration>,
}

/// Returns the sessions with the targets of a name, and records whether they have a connection.
///
/// No document says what Windows shows while it tries to connect a session again. A session has no
/// connection if Windows lists none, or says that the session is not connected.
pub(crate) fn sessions(run: Run<'_>, iqn: &Iqn) -> OperationResult<Vec<Session>> {
    let began = run.clock().now();
    let instances = sessions_of(run, iqn)?;
    let connections = instances
        .iter()
        .map(|session| connections_of(run, session))
        .collect::<OperationResult<Vec<_>>>()?;
    let seen: Vec<_> = instances
        .iter()
        .zip(&connections)
        .map(|(session, connections)| {
            let ends = connections.iter().filter_map(end_of).collect();
            let is_lost = connections.is_empty() || is_connected(session) == Some(false);
            (identifier(session), ends, !is_lost)
        })
        .collect();
    let known = run
        .node()
        .iscsi_sessions
        .see(iqn, &seen, began..run.clock().now());
    let sessions = instances.iter().zip(connections).zip(known);
    Ok(sessions
        .map(|((instance, connections), known)| Session {
            instance: instance.clone(),
            connections,
            portals: known.portals,
            lost_for: known.lost_for,
        })
        .collect())
}

/// Returns the identifier of a session.
pub(crate) fn identifier(session: &Instance) -> &str {
    session.text("SessionIdentifier").unwrap_or_default()
}

impl Session {
    /// Returns whether the session has a connection.
    pub(crate) fn is_connected(&self) -> bool {
        self.lost_for.is_none()
    }

    /// Returns whether the session has had no connection for so long that Windows no longer holds
    /// requests to its disks.
    pub(crate) fn is_dead(&self) -> bool {
        self.lost_for.is_some_and(|span| span >= DEAD_AFTER)
    }

    /// Returns whether the session belongs to requests that name `portal`. A portal that is given
    /// by name has all connections to its port, but no session without a connection except one that
    /// was opened by this name: the session of another portal would be ended otherwise, while
    /// Windows tries to connect it again.
    pub(crate) fn is_through(&self, portal: &TargetPortal) -> bool {
        if self.is_connected() {
            return self
                .connections
                .iter()
                .any(|connection| portal.is_end_of(connection));
        }
        let mut known = self.ends().chain(self.portals.iter().cloned());
        known.any(|known| known.is_same(portal))
    }

    /// Returns the portals to which the connections lead that Windows lists.
    fn ends(&self) -> impl Iterator<Item = TargetPortal> {
        self.connections.iter().filter_map(end_of)
    }

    /// Describes where the session leads and its state, as in "through 10.0.0.5:3260, connected".
    /// Has no time that passes: Kubernetes merges events with equal text.
    pub(crate) fn describe(&self) -> String {
        let portal = self.ends().next().or_else(|| self.portals.first().cloned());
        let place = portal.map_or_else(
            || "through a portal that is not known".into(),
            |portal| format!("through {portal}"),
        );
        let state = if self.is_connected() {
            "connected"
        } else if self.is_dead() {
            "dead"
        } else {
            "without a connection"
        };
        format!("{place}, {state}")
    }
}
