//! WMI: a small pool of connections for each namespace, on threads of their own.
//!
//! COM calls cannot be cancelled, so no caller makes one: it leaves the request with the pool and waits for the
//! answer until its deadline. [`pool`] is that waiting, [`session`] the COM calls, [`value`] their variants.

mod pool;
mod session;
mod value;

use os::{CallStatus, Instance, Namespace, OsResult, Time, Value, Wmi};

use crate::clock::Monotonic;
use pool::{Method, Pool};
use session::Connector;

/// One pool for each namespace; none has a thread or a connection until it is used.
pub(crate) struct Pools {
    cim_v2: Pool<Connector>,
    storage: Pool<Connector>,
    smb: Pool<Connector>,
}

impl Pools {
    pub(crate) fn new(clock: Monotonic) -> Self {
        let pool = |namespace| Pool::new(Connector { namespace, clock }, clock);
        Self { cim_v2: pool(Namespace::CimV2), storage: pool(Namespace::Storage), smb: pool(Namespace::Smb) }
    }

    fn of(&self, namespace: Namespace) -> &Pool<Connector> {
        match namespace {
            Namespace::CimV2 => &self.cim_v2,
            Namespace::Storage => &self.storage,
            Namespace::Smb => &self.smb,
        }
    }
}

impl Wmi for Pools {
    fn query(&self, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        self.of(namespace).query(wql, deadline)
    }

    fn call(
        &self,
        namespace: Namespace,
        path: &str,
        method: &str,
        arguments: &[(&str, Value)],
        deadline: Time,
    ) -> OsResult<CallStatus> {
        let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.of(namespace).call(Method { path: path.to_owned(), name: method.to_owned(), arguments }, deadline)
    }
}
