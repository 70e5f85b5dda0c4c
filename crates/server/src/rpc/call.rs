//! One call: its number, its deadline, its entries in the log and in the metrics, and its status
//! after a panic.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use storage_ops::Call;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tonic::{Code, Status};
use tracing::{Instrument as _, Level, Span};

use crate::admission::connections::ConnectionHandle;
use crate::admission::message_memory::ready_by;
use crate::admission::response_body::{CallGuard, ResponseStream, StallDetector};
use crate::drain::Phase;
use crate::metrics::rpc::{RpcMetrics, code_name};
use crate::rpc::handler::{HandlerFuture, Outcome, RpcHandler};
use crate::rpc::message;
use crate::server_state::ServerState;

/// The response header with the number that a failed call has in the log.
const REQUEST_ID: HeaderName = HeaderName::from_static("csi-proxy-request-id");

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// One RPC of a group-version.
#[derive(Clone, Debug)]
pub(crate) struct Rpc {
    pub(crate) handler: RpcHandler,
    pub(crate) metrics: Arc<RpcMetrics>,
}

/// The connection on which calls arrive, and the state of its server.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) connection: Arc<ConnectionHandle>,
    pub(crate) stall_detector: Arc<StallDetector>,
    /// Whether HTTP/2 keeps the memory of many calls that were open at once.
    pub(crate) has_grown: AtomicBool,
    pub(crate) state: Arc<ServerState>,
    pub(crate) phase: watch::Receiver<Phase>,
    /// The watches of the health service on the connection.
    pub(crate) health_watches: TaskTracker,
}

impl Peer {
    /// Counts one more watch of the health service until the tokens are dropped.
    pub(crate) fn begin_health_watch(&self) -> Result<[TaskTrackerToken; 2], Status> {
        let limit = self.state.limits.health_watches;
        if self.health_watches.len() >= limit {
            self.state.count_refused_health_watch();
            return Err(Status::unavailable(format!(
                "the connection has {limit} watches of the health service, which is the limit; use \
                 Check"
            )));
        }
        Ok([&self.health_watches, &self.state.health_watches].map(TaskTracker::token))
    }
}

/// Begins a call of `rpc`, and returns the future that answers it.
pub(crate) fn answer(
    rpc: &Rpc,
    peer: &Arc<Peer>,
    request: Request<RecvStream>,
    mut response: ResponseStream,
) -> impl Future<Output = ()> + use<> {
    let headers = request.headers();
    let timeout = headers.get(GRPC_TIMEOUT).map(timeout).transpose();
    let deadline = timeout.as_ref().ok().copied().flatten();
    let head = message::check_encoding(headers).and(timeout.map(drop));
    let call = CallRecord::begin(peer, rpc, deadline);
    // At this level, each call logs lines.
    let span = if tracing::enabled!(Level::DEBUG) {
        call.call.span()
    } else {
        Span::none()
    };
    // The call does not keep its headers, which may be 16 KiB.
    let mut body = request.into_body();
    // Each future below borrows what this one owns. A future that owns its arguments has room for
    // them twice, and tokio moves this one several times.
    let answer = async move {
        let outcome = {
            let mut outcome = pin!(call.outcome(&mut body, head));
            poll_fn(|cx| match outcome.as_mut().poll(cx) {
                Poll::Ready(outcome) => Poll::Ready(outcome),
                // The operation is a request of the call until its future is dropped.
                Poll::Pending => response.poll_reset(cx).map(|()| Err(call.cut_off())),
            })
            .await
        };
        match call.end(outcome) {
            Ok((message, guard)) => message::send(message, guard, &mut response),
            Err(headers) => response.send_headers(headers, true),
        }
    };
    answer.instrument(span)
}

/// Turns a panic of the handler into an error. The future that panicked is dropped and not polled
/// again.
async fn catch_panics(mut handler: HandlerFuture<'_>) -> Outcome {
    poll_fn(move |cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(cx)));
        let defect = |_| {
            Poll::Ready(Err(Status::internal(
                "a defect in csi-proxy stopped the call; see the log",
            )))
        };
        polled.unwrap_or_else(defect)
    })
    .await
}

/// Returns how long the caller waits, from the value of the header `grpc-timeout`: up to eight
/// digits and a unit.
fn timeout(value: &HeaderValue) -> Result<Duration, Status> {
    let malformed = || {
        let value = message::quoted(value);
        message::invalid(format!(
            "the header grpc-timeout is {value}; send at most eight digits and one of the units \
             H, M, S, m, u, n"
        ))
    };
    let (unit, digits) = value.as_bytes().split_last().ok_or_else(malformed)?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return Err(malformed());
    }
    let number = digits
        .iter()
        .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    match unit {
        b'H' => Ok(Duration::from_secs(number * 3600)),
        b'M' => Ok(Duration::from_secs(number * 60)),
        b'S' => Ok(Duration::from_secs(number)),
        b'm' => Ok(Duration::from_millis(number)),
        b'u' => Ok(Duration::from_micros(number)),
        b'n' => Ok(Duration::from_nanos(number)),
        _ => Err(malformed()),
    }
}

/// A client starts its clock before the daemon does, and so it may cancel a call this long before
/// the deadline of the daemon. Such a cancellation counts as DeadlineExceeded.
const EARLY: Duration = Duration::from_millis(500);

/// The record of a call in the metrics and the log. It is dropped before its end if the process
/// stops.
struct CallRecord {
    call: Call,
    began: Instant,
    deadline: Option<Duration>,
    rpc: Rpc,
    peer: Arc<Peer>,
    has_ended: bool,
    _open: TaskTrackerToken,
}

impl CallRecord {
    fn begin(peer: &Arc<Peer>, rpc: &Rpc, deadline: Option<Duration>) -> Self {
        rpc.metrics.started();
        let began = Instant::now();
        let call = Call {
            number: peer.state.last_call.fetch_add(1, Ordering::Relaxed) + 1,
            label: rpc.metrics.rpc.path,
            connection: peer.connection.id,
            began: peer.state.since_start(began),
        };
        Self {
            call,
            began,
            deadline,
            rpc: rpc.clone(),
            peer: Arc::clone(peer),
            has_ended: false,
            _open: peer.state.open_calls.token(),
        }
    }

    /// Waits for the request, and runs its operation.
    async fn outcome(
        &self,
        body: &mut RecvStream,
        head: Result<(), Status>,
    ) -> Result<(Bytes, CallGuard), Status> {
        let Peer {
            connection, state, ..
        } = &*self.peer;
        let in_flight = connection.begin_call()?;
        let message = {
            let mut answer = pin!(async {
                let body = state.message_memory.read(body, self.began).await?;
                head?;
                catch_panics((self.rpc.handler.answer)(
                    state, &in_flight, self.call, body,
                ))
                .await
            });
            match self
                .deadline
                .and_then(|time| Some((time, self.began.checked_add(time)?)))
            {
                None => answer.await,
                // An operation that its caller does not wait for must not begin.
                Some((time, deadline)) if deadline <= Instant::now() => {
                    Err(self.deadline_exceeded(time))
                }
                Some((time, deadline)) => ready_by(deadline, answer.as_mut())
                    .await
                    .unwrap_or_else(|| Err(self.deadline_exceeded(time))),
            }
        }?;
        let memory = state.message_memory.reserve(message.len())?;
        Ok((
            message,
            CallGuard {
                _in_flight: in_flight,
                _memory: memory,
            },
        ))
    }

    /// Returns the status of a call whose deadline has passed. It names the object if the call
    /// still has a slot, and so a request of the executor.
    fn deadline_exceeded(&self, time: Duration) -> Status {
        let description = self.peer.state.executor.description(self.call.number);
        let object = description
            .map(|description| format!("cannot {description}: "))
            .unwrap_or_default();
        let change = if self.rpc.handler.is_query {
            ""
        } else {
            "; an operation that has begun to make changes continues"
        };
        // grpc-go sends the remaining time, such as 1.999996 s.
        Status::deadline_exceeded(format!(
            "{object}the caller's deadline of {time:.1?} has passed{change}"
        ))
    }

    /// Returns the status of a call that has no caller any more.
    fn cut_off(&self) -> Status {
        if self.peer.state.end_of_drain.is_cancelled() {
            return Status::unavailable("csi-proxy stopped before the call ended");
        }
        let passed = self.began.elapsed();
        match self
            .deadline
            .filter(|time| passed + EARLY.min(*time / 4) >= *time)
        {
            Some(time) => self.deadline_exceeded(time),
            None => Status::cancelled("the caller cancelled the call"),
        }
    }

    /// Counts and logs the outcome. Returns the message of the response, or the headers of a
    /// response without a message.
    fn end(
        mut self,
        outcome: Result<(Bytes, CallGuard), Status>,
    ) -> Result<(Bytes, CallGuard), HeaderMap> {
        self.has_ended = true;
        match outcome {
            Ok(response) => {
                let duration = self.began.elapsed();
                self.rpc.metrics.ended(Code::Ok, duration);
                tracing::debug!(seconds = duration.as_secs_f64(), "the call succeeded");
                Ok(response)
            }
            Err(status) => {
                self.fail(&status);
                let mut headers = message::failure(&status);
                headers.insert(REQUEST_ID, HeaderValue::from(self.call.number));
                Err(headers)
            }
        }
    }

    /// Counts and logs a call without a message as its response.
    fn fail(&self, status: &Status) {
        let (code, message, duration) = (status.code(), status.message(), self.began.elapsed());
        self.rpc.metrics.ended(code, duration);
        // Drivers and csi-proxyctl query whether an object exists. NotFound is the answer then, not
        // a failure.
        if self.rpc.handler.is_query && code == Code::NotFound {
            self.rpc.metrics.was_answered();
            tracing::debug!(?code, seconds = duration.as_secs_f64(), "{message}");
        } else {
            self.peer.state.failures.add(
                self.call.label,
                self.call.number,
                code_name(code),
                message,
            );
            self.call.span().in_scope(|| log_failure(status, duration));
        }
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        if !self.has_ended {
            self.fail(&self.cut_off());
        }
    }
}

/// Logs a failure at the level that fits its code. Requests are not logged, because some contain
/// secrets.
///
/// The log limits the lines of each statement. Failures that must not compete with others for these
/// lines therefore have a statement of their own, even if it is the same as another one.
fn log_failure(status: &Status, duration: Duration) {
    let (code, message, seconds) = (status.code(), status.message(), duration.as_secs_f64());
    match code {
        Code::Internal | Code::Unknown | Code::DataLoss => {
            tracing::error!(?code, seconds, "{message}");
        }
        // An invalid request says nothing about the node.
        Code::NotFound | Code::Cancelled | Code::AlreadyExists | Code::InvalidArgument => {
            tracing::info!(?code, seconds, "{message}");
        }
        // A refusal may be an attack, and has lines of its own.
        Code::PermissionDenied => tracing::warn!(?code, seconds, "{message}"),
        _ => tracing::warn!(?code, seconds, "{message}"),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use http::HeaderValue;
    use tonic::{Code, Status};
    use tracing::callsite::Identifier;
    use tracing::{Event, Subscriber};
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::{Context, SubscriberExt as _};

    use super::{Outcome, catch_panics, log_failure, timeout};

    fn panics() -> Outcome {
        resume_unwind(Box::new("a deliberate defect"))
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_error_with_a_message() {
        let handler = Box::pin(async {
            tokio::task::yield_now().await;
            panics()
        });
        let status = catch_panics(handler).await.expect_err("it panicked");
        assert_eq!(status.code(), Code::Internal);
        assert_eq!(
            status.message(),
            "a defect in csi-proxy stopped the call; see the log"
        );
    }

    /// Records the statement of each line.
    #[derive(Clone, Default)]
    struct Statements(Arc<Mutex<Vec<Identifier>>>);

    impl<S: Subscriber> Layer<S> for Statements {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.0.lock().unwrap().push(event.metadata().callsite());
        }
    }

    #[test]
    fn a_flood_of_other_failures_leaves_out_no_refusal_and_no_defect() {
        let statements = Statements::default();
        tracing::subscriber::with_default(
            tracing_subscriber::registry().with(statements.clone()),
            || {
                for code in [
                    Code::PermissionDenied,
                    Code::Internal,
                    Code::NotFound,
                    Code::InvalidArgument,
                    Code::Unavailable,
                ] {
                    log_failure(&Status::new(code, "a reason"), Duration::ZERO);
                }
            },
        );
        let statements = statements.0.lock().unwrap();
        assert_eq!(statements.len(), 5);
        assert!(
            !statements[1..].contains(&statements[0]) && !statements[2..].contains(&statements[1])
        );
    }

    #[test]
    fn a_deadline_has_any_unit_and_a_malformed_one_is_refused() {
        let timeout = |text: &str| timeout(&HeaderValue::from_str(text).unwrap());
        for (text, expected) in [
            ("1H", Duration::from_hours(1)),
            ("2M", Duration::from_mins(2)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("99999999n", Duration::from_nanos(99_999_999)),
        ] {
            assert_eq!(timeout(text).unwrap(), expected, "{text}");
        }
        for text in [
            "",
            "S",
            "1",
            "1s",
            "-1S",
            "+1S",
            "123456789S",
            "1 S",
            "1.5S",
            "1\u{e9}",
        ] {
            let status = timeout(text).unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{text}");
            texts::seen!(status.message());
        }
    }
}
