//! Services of tonic on a server that speaks HTTP/2 itself.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::RecvStream;
use http::{Request, Response};
use http_body::{Body, Frame};
use server::{BoxedService, ResponseStream};
use tonic::server::NamedService;
use tower::Service;

/// Returns the service that `make` creates at the first call, in the form that the server calls.
pub(crate) fn boxed<S>(make: impl FnOnce() -> S + Send + 'static) -> BoxedService
where
    S: Service<Request<RequestBody>, Response = Response<tonic::body::Body>, Error = Infallible>,
    S: NamedService + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    let service = LazyLock::new(make);
    BoxedService::new(S::NAME, move |request, mut response| {
        let answer = service.clone().call(request.map(RequestBody));
        async {
            let answer = tokio::select! {
                answer = answer => answer.unwrap_or_else(|never| match never {}),
                () = response.reset() => return,
            };
            send(answer, response).await;
        }
    })
}

/// Sends a response until its end, or until the client has reset it.
async fn send(answer: Response<tonic::body::Body>, mut response: ResponseStream) {
    let (head, body) = answer.into_parts();
    response.send_headers(head.headers, body.is_end_stream());
    let mut body = pin!(body);
    loop {
        let frame = tokio::select! {
            frame = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)) => frame,
            () = response.reset() => return,
        };
        match frame.and_then(Result::ok).map(Frame::into_data) {
            None => return,
            Some(Ok(data)) => {
                response.ready().await;
                response.send(data);
            }
            Some(Err(frame)) => response.send_trailers(frame.into_trailers().unwrap_or_default()),
        }
    }
}

/// The body of a request.
pub(crate) struct RequestBody(RecvStream);

impl Body for RequestBody {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let data = ready!(self.0.poll_data(cx));
        if let Some(Ok(data)) = &data {
            // Fails only on a stream that has ended.
            let _ = self.0.flow_control().release_capacity(data.len());
        }
        Poll::Ready(data.map(|data| data.map(Frame::data)))
    }
}
