//! One call, whatever it asks for: its number, its deadline, its place in the log and in the metrics.

use std::convert::Infallible;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use crate::admission::connections::Caller;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout};
use tonic::body::Body;
use tonic::codegen::BoxFuture;
use tonic::{Code, Status};
use tracing::{Instrument as _, Level};

use crate::admission::response_body::{Answer, CallGuard, StallDetector};
use crate::metrics::active_count::{ActiveCount, ActiveGuard};
use crate::metrics::rpc_metrics::RpcMetrics;
use crate::metrics::server_state::ServerState;
use crate::rpc::handlers::Service;

/// In the answer to a failed call: its number in the log.
const REQUEST_ID: HeaderName = HeaderName::from_static("csi-proxy-request-id");

/// Numbers the calls of a server and knows how many are open.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    last: AtomicU64,
    pub(crate) open: Arc<ActiveCount>,
}

/// Who calls, and what there is for all who do.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) caller: Caller,
    pub(crate) stall_detector: Arc<StallDetector>,
    pub(crate) load: Arc<ServerState>,
}

/// Answers one call to a known RPC.
pub(crate) async fn answer(
    calls: &Calls,
    metrics: &RpcMetrics,
    service: &dyn Service,
    peer: &Peer,
    request: Request<Incoming>,
) -> Response<Answer> {
    let call = Call::begin(calls, metrics);
    let span = tracing::info_span!("call", id = call.id, rpc = metrics.rpc.path);
    let deadline = deadline(request.headers());
    async {
        let (held, outcome) = match peer.caller.call() {
            Err(refused) => (None, Err(Status::unavailable(refused.to_string()))),
            Ok(in_flight) => {
                let answered = read_and_answer(service, peer, request);
                let outcome = match deadline {
                    None => answered.await,
                    Some(time) => timeout(time, answered).await.unwrap_or_else(|_| Err(too_late(time))),
                };
                (Some(CallGuard::Call { _in_flight: in_flight }), outcome)
            }
        };
        let response = call.end(outcome.unwrap_or_else(Status::into_http));
        response.map(|body| Answer::new(body, held, &peer.stall_detector))
    }
    .instrument(span)
    .await
}

async fn read_and_answer(
    service: &dyn Service,
    peer: &Peer,
    request: Request<Incoming>,
) -> Result<Response<Body>, Status> {
    let (mut head, body) = request.into_parts();
    let (message, _taken) = peer.load.messages.read(body).await?;
    head.extensions.insert(peer.caller.id());
    unless_it_panics(|| service.call(Request::from_parts(head, message))).await
}

/// What is left behind by a panic is dropped at once, so nobody sees it half-changed.
async fn unless_it_panics(
    begin: impl FnOnce() -> BoxFuture<Response<Body>, Infallible>,
) -> Result<Response<Body>, Status> {
    let defect = |_| Status::internal("a defect in csi-proxy stopped the call; the log has more");
    let mut answer = catch_unwind(AssertUnwindSafe(begin)).map_err(defect)?;
    poll_fn(move |cx| match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(Ok(response))) => Poll::Ready(Ok(response)),
        Ok(Poll::Ready(Err(never))) => match never {},
        Err(panic) => Poll::Ready(Err(defect(panic))),
    })
    .await
}

fn too_late(time: Duration) -> Status {
    Status::deadline_exceeded(format!("the caller's {time:?} are over; what has begun to change goes on"))
}

/// How long the caller is going to wait, if it says so: up to eight digits and a unit.
fn deadline(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

/// A call under way. One that is dropped before its end was cancelled by the caller.
struct Call<'a> {
    id: u64,
    began: Instant,
    metrics: &'a RpcMetrics,
    ended: bool,
    _open: ActiveGuard,
}

impl<'a> Call<'a> {
    fn begin(calls: &Calls, metrics: &'a RpcMetrics) -> Self {
        let id = calls.last.fetch_add(1, Ordering::Relaxed) + 1;
        metrics.started();
        Self { id, began: Instant::now(), metrics, ended: false, _open: ActiveCount::up(&calls.open) }
    }

    fn end(mut self, mut response: Response<Body>) -> Response<Body> {
        self.ended = true;
        let took = self.began.elapsed();
        // A success has its status in the trailers, behind the message.
        let failure = Status::from_header_map(response.headers()).filter(|status| status.code() != Code::Ok);
        let Some(status) = failure else {
            self.metrics.ended(Code::Ok, took);
            tracing::debug!(?took, "answered");
            return response;
        };
        self.metrics.ended(status.code(), took);
        log(&status, took);
        response.headers_mut().insert(REQUEST_ID, HeaderValue::from(self.id));
        response
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let took = self.began.elapsed();
            self.metrics.ended(Code::Cancelled, took);
            tracing::info!(id = self.id, rpc = self.metrics.rpc.path, ?took, "the caller cancelled");
        }
    }
}

/// Logs a failure, as loudly as it deserves. Requests are not logged: some have secrets.
fn log(status: &Status, took: Duration) {
    let (code, message) = (status.code(), status.message());
    macro_rules! failed {
        ($level:expr) => {
            tracing::event!($level, ?code, ?took, "{message}")
        };
    }
    match code {
        Code::Internal | Code::Unknown | Code::DataLoss => failed!(Level::ERROR),
        // To be expected: drivers ask for what may not be there.
        Code::NotFound | Code::Cancelled | Code::AlreadyExists => failed!(Level::INFO),
        _ => failed!(Level::WARN),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, Response};
    use tonic::Code;
    use tonic::body::Body;

    use super::{deadline, unless_it_panics};

    fn panics() -> Response<Body> {
        panic!("a defect, made for this test")
    }

    #[tokio::test]
    async fn a_panic_is_an_internal_error_with_a_sentence() {
        let at_once = unless_it_panics(|| {
            panics();
            unreachable!()
        });
        let later = unless_it_panics(|| {
            Box::pin(async {
                tokio::task::yield_now().await;
                Ok(panics())
            })
        });
        for outcome in [at_once.await, later.await] {
            let status = outcome.expect_err("it panicked");
            assert_eq!(status.code(), Code::Internal);
            assert_eq!(status.message(), "a defect in csi-proxy stopped the call; the log has more");
        }
    }

    #[test]
    fn a_deadline_is_read_in_every_unit_and_never_from_nonsense() {
        let of =
            |text: &str| deadline(&HeaderMap::from_iter([("grpc-timeout".parse().unwrap(), text.parse().unwrap())]));
        assert_eq!(deadline(&HeaderMap::new()), None);
        for (text, expected) in [
            ("1H", Duration::from_hours(1)),
            ("2M", Duration::from_mins(2)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("99999999n", Duration::from_nanos(99_999_999)),
        ] {
            assert_eq!(of(text), Some(expected), "{text}");
        }
        for text in ["", "S", "1", "1s", "-1S", "+1S", "123456789S", "1 S", "1é"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
