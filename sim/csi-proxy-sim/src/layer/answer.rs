//! The answer to a unary RPC.

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Response};
use tonic::body::Body;
use tonic::{Code, Status};

/// The length of the prefix of a message.
pub(super) const PREFIX: usize = 5;

/// An answer that was read to its end.
pub(super) struct Answer {
    headers: HeaderMap,
    /// The message with its prefix; empty in an answer that has only headers.
    pub(super) data: Bytes,
    trailers: Option<HeaderMap>,
}

impl Answer {
    pub(super) async fn read(response: Response<Incoming>) -> Result<Self, Status> {
        let (head, body) = response.into_parts();
        let body = body
            .collect()
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let trailers = body.trailers().cloned();
        Ok(Self {
            headers: head.headers,
            data: body.to_bytes(),
            trailers,
        })
    }

    /// Returns the status, which is in the trailers, or in the headers of an answer that has only
    /// these.
    pub(super) fn status(&self) -> Status {
        let from = |headers: &HeaderMap| Status::from_header_map(headers);
        let status = self
            .trailers
            .as_ref()
            .and_then(from)
            .or_else(|| from(&self.headers));
        status.unwrap_or_else(|| Status::unknown("the answer has no status"))
    }

    /// Changes the code, and the message if one is given.
    pub(super) fn set_status(&mut self, code: Code, message: Option<&'static str>) {
        let headers = self.trailers.as_mut().unwrap_or(&mut self.headers);
        headers.insert("grpc-status", HeaderValue::from(code as i32));
        if let Some(message) = message {
            headers.insert("grpc-message", HeaderValue::from_static(message));
        }
    }

    /// Makes the answer a success with an empty message.
    pub(super) fn set_empty(&mut self) {
        self.headers.remove("grpc-status");
        self.headers.remove("grpc-message");
        self.data = Bytes::from_static(&[0; PREFIX]);
        self.trailers = Some(HeaderMap::new());
        self.set_status(Code::Ok, None);
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(match self.trailers {
            Some(trailers) => {
                let trailers = std::future::ready(Some(Ok(trailers)));
                Body::new(Full::new(self.data).with_trailers(trailers))
            }
            None => Body::empty(),
        });
        *response.headers_mut() = self.headers;
        response
    }
}
