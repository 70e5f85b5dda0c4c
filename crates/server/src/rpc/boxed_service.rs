//! A gRPC service whose type is hidden, so that services of several types can be kept in a list.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;

use http::{Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::server::NamedService;
use tower_service::Service;

type Answer = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// A gRPC service of any type, such as one that tonic has generated.
pub struct BoxedService {
    name: &'static str,
    answer: Box<dyn Fn(Request<Incoming>) -> Answer + Send + Sync>,
}

impl BoxedService {
    /// Hides the type of `service`.
    pub fn new<S>(service: S) -> Self
    where
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
        S: NamedService + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        let answer = move |request| -> Answer {
            let answered = service.clone().call(request);
            Box::pin(async { answered.await.unwrap_or_else(|never| match never {}) })
        };
        Self { name: S::NAME, answer: Box::new(answer) }
    }

    /// The full name of the service, such as `grpc.reflection.v1.ServerReflection`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Answers a request whose path begins with the name of the service.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        (self.answer)(request).await
    }
}

impl fmt::Debug for BoxedService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoxedService").field(&self.name).finish()
    }
}
