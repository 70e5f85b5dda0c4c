//! WMI: a small pool of threads for each namespace, each thread with a connection.
//!
//! A COM call cannot be cancelled. Callers therefore submit a request to the pool and wait for the
//! result until their deadline. [`pool`] has the threads and the queue, [`session`] the COM calls
//! of a connection, and [`value`] the conversion of variants.

mod pool;
mod session;
mod value;

use os::{CallStatus, Instance, MethodCall, Namespace, OsResult, Time, Wmi};

use crate::clock::Monotonic;
use pool::{Method, Pool};
use session::Connector;

/// A pool for each of [`Namespace::ALL`]. A pool has no thread and no connection until it is used.
pub(crate) struct Pools([Pool<Connector>; 4]);

impl Pools {
    pub(crate) fn new(clock: Monotonic) -> Self {
        Self(Namespace::ALL.map(|namespace| Pool::new(Connector { namespace, clock }, clock)))
    }

    fn pool(&self, namespace: Namespace) -> &Pool<Connector> {
        &self.0[namespace as usize]
    }
}

impl Wmi for Pools {
    fn query(&self, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        self.pool(namespace).query(wql, deadline)
    }

    fn call(&self, call: &MethodCall<'_>, deadline: Time) -> OsResult<CallStatus> {
        let arguments = call
            .arguments
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let method = Method {
            path: call.path.to_owned(),
            name: call.method.to_owned(),
            arguments,
        };
        self.pool(call.namespace).call(method, deadline)
    }
}
