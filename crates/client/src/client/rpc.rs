//! One call: which version of the RPC to use, when to repeat it, and what its errors mean.

use std::io;
use std::time::Duration;

use api::{GROUP_VERSIONS, Group, GroupVersion};
use http::Uri;
use http::uri::PathAndQuery;
use tokio::time::{Instant, sleep};
use tonic::client::Grpc;
use tonic::codec::Codec;

use super::Client;
use crate::connection::{ConnectionLost, Connections};
use crate::error::{Error, ErrorKind};

/// How long a call waits by default before each repetition. A service that restarts is back within
/// the sum.
pub(crate) const DELAYS: &[Duration] = &[
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
];

/// An RPC, in all versions of its group in which it has the same name and the same messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rpc<'v> {
    pub(crate) group: Group,
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    /// The versions to try, the preferred version first.
    pub(crate) versions: &'v [&'static str],
}

/// Whether an RPC changes the node, and so when it may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Change,
    /// The effect is not known. The call is repeated like a change.
    Unknown,
}

impl Rpc<'_> {
    /// Returns the group-versions to try, and the path of the RPC in each.
    fn candidates(&self) -> impl Iterator<Item = (&'static GroupVersion, &'static str)> {
        self.versions.iter().map(move |version| {
            let version =
                GroupVersion::find(self.group, version).expect("the version is in the table");
            let rpc = version.rpc(self.name).expect("the version has the RPC");
            (version, rpc.path)
        })
    }

    /// Converts a failure to connect to `version`.
    fn cannot_connect(
        self,
        connections: &Connections,
        version: &GroupVersion,
        error: io::Error,
    ) -> Failure {
        let kind = connect_error_kind(&error);
        let message = format!(
            "cannot connect to {}: {error}",
            connections.address(version)
        );
        let error = Error::new(kind, self.name, message).with_source(error);
        Failure {
            may_repeat: kind == ErrorKind::Unavailable,
            error,
        }
    }

    /// Explains why no version of the RPC is served: no daemon is there, or one that does not have
    /// it.
    async fn not_served(self, connections: &Connections) -> Failure {
        let (preferred, _) = self.candidates().next().expect("an RPC has a version");
        let others =
            GroupVersion::of(self.group).filter(|other| !self.versions.contains(&other.version));
        match connections.served(others).await {
            Err(error) => self.cannot_connect(connections, preferred, error),
            Ok(served) if served.is_empty() => {
                let elsewhere = GROUP_VERSIONS
                    .iter()
                    .filter(|other| other.group != self.group);
                if connections
                    .served(elsewhere)
                    .await
                    .is_ok_and(|others| !others.is_empty())
                {
                    let message = format!(
                        "csi-proxy serves other groups here, but not {}: its flag -api-groups \
                         leaves it out, or its pipes are not mounted",
                        self.group.name()
                    );
                    // A daemon that starts opens its pipes one after the other.
                    return Failure {
                        may_repeat: true,
                        error: Error::new(ErrorKind::Unimplemented, self.name, message),
                    };
                }
                let message = format!(
                    "nothing serves {}: csi-proxy does not run on the node, or its pipes are not \
                     mounted here",
                    connections.address(preferred)
                );
                Failure {
                    may_repeat: true,
                    error: Error::new(ErrorKind::Unavailable, self.name, message),
                }
            }
            Ok(served) => {
                let (group, needed) = (self.group.name(), self.versions.join(" or "));
                let served: Vec<&str> = served.iter().map(|version| version.version).collect();
                let (served, name) = (served.join(", "), self.name);
                let message = format!(
                    "the node's csi-proxy serves {group} {served}, but {name} needs {needed}"
                );
                Failure {
                    may_repeat: false,
                    error: Error::new(ErrorKind::Unimplemented, self.name, message),
                }
            }
        }
    }

    /// Converts a status that tonic returned. One with a source is not the daemon's: the connection
    /// is lost.
    fn failed(self, status: tonic::Status) -> Failure {
        let is_read = self.effect == Effect::Read;
        let Some(source) = std::error::Error::source(&status) else {
            let error = Error::from_status(self.name, &status);
            return Failure {
                may_repeat: is_read && error.kind() == ErrorKind::Unavailable,
                error,
            };
        };
        let was_sent = source
            .downcast_ref::<ConnectionLost>()
            .is_none_or(|lost| lost.was_sent);
        let message = match (was_sent, self.effect) {
            (false, _) => "the connection to csi-proxy was closed before the request was sent",
            (true, Effect::Read) => "the connection to csi-proxy broke during the call",
            (true, Effect::Unknown) => {
                "the connection to csi-proxy broke during the call; if it was a change, the node \
                 may or may not have made it"
            }
            (true, Effect::Change) => {
                "the connection to csi-proxy broke during the call; the node may or may not have \
                 made the change, and repeating the call completes it"
            }
        };
        let error = Error::new(ErrorKind::Unavailable, self.name, message).with_source(status);
        Failure {
            may_repeat: is_read || !was_sent,
            error,
        }
    }
}

/// Returns the kind of a failure to connect.
pub(crate) fn connect_error_kind(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => ErrorKind::FailedPrecondition,
        _ => ErrorKind::Unavailable,
    }
}

/// A failed attempt.
struct Failure {
    error: Error,
    may_repeat: bool,
}

/// Calls `rpc` within the deadline, and repeats it if that is safe and may help. `codec` encodes
/// the request.
pub(crate) async fn call<
    Q: Clone + Send + Sync + 'static,
    C: Codec<Encode = Q, Decode: Send + Sync + 'static>,
>(
    client: &Client,
    rpc: Rpc<'_>,
    request: &Q,
    codec: fn() -> C,
) -> Result<C::Decode, Error> {
    let Client {
        connections,
        deadline,
        delays,
    } = client;
    let (started, deadline) = (Instant::now(), *deadline);
    let attempts = async {
        let mut delays = delays.iter().enumerate();
        loop {
            let remaining = deadline.saturating_sub(started.elapsed());
            let Failure { error, may_repeat } =
                match attempt(connections, remaining, rpc, request, codec).await {
                    Ok(response) => return Ok(response),
                    Err(failure) => failure,
                };
            let Some((repetitions, delay)) = delays.next() else {
                return Err(error);
            };
            // A daemon that starts opens its pipes one after the other, so a missing one is looked
            // for again.
            let may_appear = repetitions == 0 && error.kind() == ErrorKind::Unimplemented;
            if !(may_repeat || may_appear) || started.elapsed() + *delay >= deadline {
                return Err(error);
            }
            tracing::debug!(
                repetition = repetitions + 1, ?delay, %error,
                "repeating a call of csi-proxy"
            );
            sleep(*delay).await;
        }
    };
    tokio::time::timeout(deadline, attempts)
        .await
        .unwrap_or_else(|_| {
            let seconds = deadline.as_secs_f64();
            let what = match rpc.effect {
                Effect::Read => "",
                Effect::Change | Effect::Unknown => {
                    "; the node finishes any change that it has begun"
                }
            };
            Err(Error::new(
                ErrorKind::DeadlineExceeded,
                rpc.name,
                format!("no answer within {seconds} s{what}"),
            ))
        })
}

/// Calls the first version of the RPC that is served.
async fn attempt<
    Q: Clone + Send + Sync + 'static,
    C: Codec<Encode = Q, Decode: Send + Sync + 'static>,
>(
    connections: &Connections,
    remaining: Duration,
    rpc: Rpc<'_>,
    request: &Q,
    codec: fn() -> C,
) -> Result<C::Decode, Failure> {
    for (version, path) in rpc.candidates() {
        let connection = match connections.get(version).await {
            Ok(connection) => connection,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(rpc.cannot_connect(connections, version, error)),
        };
        let mut request = tonic::Request::new(request.clone());
        request.set_timeout(remaining);
        let mut grpc = Grpc::with_origin(connection, Uri::from_static("http://csi-proxy"));
        let response = grpc
            .unary(request, PathAndQuery::from_static(path), codec())
            .await;
        return response
            .map(tonic::Response::into_inner)
            .map_err(|status| rpc.failed(status));
    }
    Err(rpc.not_served(connections).await)
}

/// Converts a size, which is signed on the wire.
pub(crate) fn unsigned(rpc: &'static str, size: i64) -> Result<u64, Error> {
    u64::try_from(size).map_err(|_| {
        Error::new(
            ErrorKind::Internal,
            rpc,
            format!("the node answered size {size}"),
        )
    })
}
