//! WMI: a small pool of threads for each namespace, each thread with a connection.
//!
//! A COM call cannot be cancelled. Callers therefore submit a request to the pool and wait for the result until their deadline.
//! [`pool`] has the threads and the queue, [`session`] the COM calls of a connection, and [`value`] the conversion of
//! variants.

mod pool;
mod session;
mod value;

use os::{CallStatus, Instance, MethodCall, Namespace, OsResult, Time, Wmi};

use crate::clock::Monotonic;
use pool::{Method, Pool};
use session::Connector;

/// A pool for each namespace. A pool has no thread and no connection until it is used.
pub(crate) struct Pools {
    cim_v2: Pool<Connector>,
    storage: Pool<Connector>,
    iscsi: Pool<Connector>,
    smb: Pool<Connector>,
}

impl Pools {
    pub(crate) fn new(clock: Monotonic) -> Self {
        let pool = |namespace| Pool::new(Connector { namespace, clock }, clock);
        Self {
            cim_v2: pool(Namespace::CimV2),
            storage: pool(Namespace::Storage),
            iscsi: pool(Namespace::Iscsi),
            smb: pool(Namespace::Smb),
        }
    }

    fn pool(&self, namespace: Namespace) -> &Pool<Connector> {
        match namespace {
            Namespace::CimV2 => &self.cim_v2,
            Namespace::Storage => &self.storage,
            Namespace::Iscsi => &self.iscsi,
            Namespace::Smb => &self.smb,
        }
    }
}

impl Wmi for Pools {
    fn query(&self, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        self.pool(namespace).query(wql, deadline)
    }

    fn call(&self, call: &MethodCall<'_>, deadline: Time) -> OsResult<CallStatus> {
        let arguments = call.arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let method = Method { path: call.path.to_owned(), name: call.method.to_owned(), arguments };
        self.pool(call.namespace).call(method, deadline)
    }
}
