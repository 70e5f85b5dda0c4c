//! Whether a server accepts connections at all of its endpoints.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many accepts must fail in a row before an endpoint counts as failing. A single failure may
/// concern one connection.
const FAILURES: u32 = 2;

/// Why a server is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// The server does not serve yet.
    Starting,
    /// The server drains, or has stopped.
    Draining,
    /// Endpoints fail to accept connections.
    CannotAccept {
        /// The number of endpoints that fail.
        failing: usize,
        /// The number of all endpoints.
        endpoints: usize,
    },
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starting"),
            Self::Draining => f.write_str("draining"),
            Self::CannotAccept { failing, endpoints } => {
                write!(
                    f,
                    "{failing} of {endpoints} endpoints fail to accept connections; the log has \
                     the errors"
                )
            }
        }
    }
}

/// The readiness of one server.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    has_begun: bool,
    is_draining: bool,
    endpoints: usize,
    failing: usize,
}

impl Readiness {
    pub(crate) fn begin(&self, endpoints: usize) {
        let mut state = self.state();
        (state.has_begun, state.endpoints) = (true, endpoints);
    }

    pub(crate) fn drain(&self) {
        self.state().is_draining = true;
    }

    /// Returns why the server is not ready, if it is not.
    pub(crate) fn check(&self) -> Result<(), NotReady> {
        match *self.state() {
            State {
                is_draining: true, ..
            } => Err(NotReady::Draining),
            State {
                has_begun: false, ..
            } => Err(NotReady::Starting),
            State { failing: 0, .. } => Ok(()),
            State {
                failing, endpoints, ..
            } => Err(NotReady::CannotAccept { failing, endpoints }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether one endpoint accepts.
pub(crate) struct Accepting<'a> {
    readiness: &'a Readiness,
    /// The number of failed accepts in a row.
    failures: u32,
}

impl<'a> Accepting<'a> {
    pub(crate) fn new(readiness: &'a Readiness) -> Self {
        Self {
            readiness,
            failures: 0,
        }
    }

    pub(crate) fn fails(&mut self) {
        self.failures = self.failures.saturating_add(1);
        if self.failures == FAILURES {
            self.readiness.state().failing += 1;
        }
    }

    /// Notes that the endpoint accepts, or waits for a client.
    pub(crate) fn works(&mut self) {
        if self.failures >= FAILURES {
            self.readiness.state().failing -= 1;
        }
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Accepting, NotReady, Readiness};

    #[test]
    fn a_server_is_ready_while_it_serves_and_every_endpoint_accepts() {
        let readiness = Readiness::default();
        assert_eq!(readiness.check(), Err(NotReady::Starting));
        readiness.begin(2);
        let [mut one, mut other] = [Accepting::new(&readiness), Accepting::new(&readiness)];
        one.fails();
        assert_eq!(readiness.check(), Ok(()), "one connection may have failed");
        one.fails();
        one.fails();
        assert_eq!(
            readiness.check(),
            Err(NotReady::CannotAccept {
                failing: 1,
                endpoints: 2
            })
        );
        other.works();
        assert_eq!(
            readiness.check(),
            Err(NotReady::CannotAccept {
                failing: 1,
                endpoints: 2
            })
        );
        one.works();
        one.works();
        assert_eq!(readiness.check(), Ok(()));
        readiness.drain();
        assert_eq!(readiness.check(), Err(NotReady::Draining));
    }
}
