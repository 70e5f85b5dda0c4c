//! A gRPC server that answers every call with an empty message, built on hyper as tonic is.

use std::convert::Infallible;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};

/// Far longer than any step takes.
pub(crate) const BLOCK_TIME: Duration = Duration::from_mins(1);

/// The response header with the authority that the server received.
pub(crate) const SEEN_AUTHORITY: &str = "seen-authority";

/// Serves one connection until it ends.
pub(crate) async fn serve_stream(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
    let service = service_fn(answer);
    let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
) -> Result<Response<impl hyper::body::Body<Data = Bytes, Error = Infallible>>, Infallible> {
    let authority = request.uri().authority().map_or("", |authority| authority.as_str());
    let authority = HeaderValue::from_str(authority).unwrap();
    let empty_message = Full::new(Bytes::from_static(&[0; 5]));
    let ok =
        async { Some(Ok(HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from_static("0"))]))) };
    let response = Response::builder().header("content-type", "application/grpc").header(SEEN_AUTHORITY, authority);
    Ok(response.body(empty_message.with_trailers(ok)).unwrap())
}
