//! A service of any type, so that services of several types can be kept in a list.

use std::fmt;
use std::pin::Pin;

use h2::RecvStream;
use http::Request;

use crate::admission::response_body::ResponseStream;

type Answer = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A gRPC service of any type.
pub struct BoxedService {
    name: &'static str,
    answer: Box<dyn Fn(Request<RecvStream>, ResponseStream) -> Answer + Send + Sync>,
}

impl BoxedService {
    /// Creates the service with this full name, such as `grpc.reflection.v1.ServerReflection`.
    pub fn new<A>(
        name: &'static str,
        answer: impl Fn(Request<RecvStream>, ResponseStream) -> A + Send + Sync + 'static,
    ) -> Self
    where
        A: Future<Output = ()> + Send + 'static,
    {
        Self {
            name,
            answer: Box::new(move |request, response| Box::pin(answer(request, response))),
        }
    }

    /// The full name of the service.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Answers a request whose path begins with the name of the service.
    pub fn answer(
        &self,
        request: Request<RecvStream>,
        response: ResponseStream,
    ) -> impl Future<Output = ()> + Send + use<> {
        (self.answer)(request, response)
    }
}

impl fmt::Debug for BoxedService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoxedService").field(&self.name).finish()
    }
}
