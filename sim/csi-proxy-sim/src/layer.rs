//! The layer between drivers and the daemon: faults of RPCs, the differences of the Go program, and
//! recording.
//!
//! The layer sees HTTP/2 requests and the simulated node, and nothing of the operations. No crate
//! of `crates/` knows of it.

mod answer;
pub(crate) mod known_rpcs;
mod like_go;
mod recorder;
mod relay;
mod tcp;

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use faults::Call;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response, Uri};
use tokio::sync::Notify;
use tonic::Status;
use tonic::body::Body;

use crate::control::{self, Control};
use crate::control_api::fault::Action;
use answer::Answer;
use like_go::Imitation;

pub(crate) use like_go::GoVersion;
pub(crate) use recorder::Recorder;
pub(crate) use relay::{Connections, Layered};
pub(crate) use tcp::serve as serve_tcp;

/// What the layer does to calls.
pub(crate) struct Layer {
    pub(crate) control: Arc<Control>,
    /// The version of the Go program to imitate.
    pub(crate) go_version: Option<GoVersion>,
    pub(crate) recorder: Option<Recorder>,
}

impl Layer {
    /// Answers a request of a driver with the answer of the daemon, unless a fault prevents that.
    /// `cut` ends the connection.
    async fn answer(
        &self,
        request: Request<Incoming>,
        mut daemon: SendRequest<Body>,
        cut: &Notify,
    ) -> Response<Body> {
        let is_active = self.recorder.is_some()
            || self.go_version.is_some()
            || !self.control.faults_of(true).is_empty();
        let Some(rpc) = is_active
            .then(|| known_rpcs::find(request.uri().path()))
            .flatten()
        else {
            let answered = send(&mut daemon, request.map(Body::new), cut).await;
            return answered.map_or_else(Status::into_http, |response| response.map(Body::new));
        };
        let (head, body) = request.into_parts();
        let Ok(body) = body.collect().await else {
            return Status::cancelled("the client has not sent its request").into_http();
        };
        let data = body.to_bytes();
        let message = rpc.request_json(&data);
        let call = rpc.call(&message);
        if rpc.is_of_driver()
            && let Some(status) = self.disturb(&call, false, cut).await
        {
            return status.into_http();
        }
        let version = self.go_version.filter(|_| rpc.is_of_driver());
        let imitation =
            version.map(|version| version.before(&self.control.sim, &rpc.name, &message));
        if let Some(status) = imitation.as_ref().and_then(Imitation::refusal) {
            return status.into_http();
        }
        let request = Request::from_parts(head, Body::new(Full::new(data)));
        let answered = match send(&mut daemon, request, cut).await {
            Ok(response) => Answer::read(response).await,
            Err(status) => Err(status),
        };
        let mut answer = match answered {
            Ok(answer) => answer,
            Err(status) => return status.into_http(),
        };
        if let Some(imitation) = imitation {
            imitation.change(&self.control.sim, &mut answer);
        }
        if let Some(recorder) = &self.recorder {
            recorder.record(rpc, message, &answer);
        }
        let status = if rpc.is_of_driver() {
            self.disturb(&call, true, cut).await
        } else {
            None
        };
        status.map_or_else(|| answer.into_response(), Status::into_http)
    }

    /// Lets the faults of a driver's call happen, before or after the daemon has answered. Returns
    /// the status that the call fails with, if one makes it fail: the faults after that one do not
    /// count the call.
    async fn disturb(&self, call: &Call, after: bool, cut: &Notify) -> Option<Status> {
        let mut faults = self.control.faults_of(true);
        faults.retain(|injected| injected.request.after == after);
        for injected in faults {
            if !injected.fault.chooses(call) {
                continue;
            }
            injected.fault.hit(call);
            let span = match injected.request.action.as_ref()? {
                Action::Status(requested) => return Some(control::status(requested)),
                Action::DelayMilliseconds(span) => Duration::from_millis(*span),
                Action::Hold(_) => Duration::MAX,
                Action::Cut(_) => {
                    cut.notify_one();
                    pending().await
                }
                Action::Crash(_) => {
                    self.control.crash.notify_one();
                    pending().await
                }
                // fault_request refuses the code of a primitive for an RPC.
                Action::Code(_) => continue,
            };
            let wait = injected.wait(span);
            while let Some(left) = wait.left() {
                tokio::time::sleep(left).await;
            }
        }
        None
    }
}

/// Sends a request. Fails if it was not sent, because the daemon takes no more calls; if the
/// connection ends later, the client's ends too.
async fn send(
    to: &mut SendRequest<Body>,
    mut request: Request<Body>,
    cut: &Notify,
) -> Result<Response<Incoming>, Status> {
    let not_sent = |error: hyper::Error| {
        Status::unavailable(format!("csi-proxy takes no more calls: {error}"))
    };
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str());
    // The authority is that of the client's connection.
    let uri = Uri::builder()
        .scheme("http")
        .authority("localhost")
        .path_and_query(path)
        .build();
    *request.uri_mut() = uri.map_err(|error| Status::invalid_argument(error.to_string()))?;
    to.ready().await.map_err(not_sent)?;
    match to.send_request(request).await {
        Err(error) if !error.is_canceled() => {
            cut.notify_one();
            pending().await
        }
        answered => answered.map_err(not_sent),
    }
}
