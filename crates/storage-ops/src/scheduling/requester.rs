//! Who requests an operation.

use std::time::Duration;

use tracing::{Span, field};

use crate::scheduling::quotas::ConnectionId;

/// The call that requests an operation. The executor reports it unchanged in
/// [`Executor::activity`](crate::Executor::activity).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of the call. A lock and a shared result name the call by this number.
    pub number: u64,
    /// What the caller names the call.
    pub label: &'static str,
    /// The connection over which the call came.
    pub connection: ConnectionId,
    /// When the call began, by a clock of the caller.
    pub began: Duration,
}

impl Call {
    /// Returns the current span, or a new one that adds the call to each line of the log.
    ///
    /// A span costs three allocations. A call therefore has none until the log gets a line, or
    /// another thread goes on with the call: most calls are reads that succeed at once and log
    /// nothing. The first use of a fallback in such a read is logged without its call.
    pub fn span(&self) -> Span {
        let current = Span::current();
        if !current.is_none() {
            return current;
        }
        tracing::info_span!(
            "call",
            id = self.number,
            rpc = self.label,
            object = field::Empty
        )
    }
}

/// Who requests an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requester {
    /// The connection whose quota limits the threads of the operation.
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) call: Option<Call>,
}

impl Requester {
    pub(crate) fn span(&self) -> Span {
        self.call.map_or_else(Span::current, |call| call.span())
    }
}

impl From<ConnectionId> for Requester {
    fn from(connection: ConnectionId) -> Self {
        Self {
            connection: Some(connection),
            call: None,
        }
    }
}

impl From<Call> for Requester {
    fn from(call: Call) -> Self {
        Self {
            connection: Some(call.connection),
            call: Some(call),
        }
    }
}
