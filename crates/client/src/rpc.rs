//! One call: which version of the RPC to use, when to repeat it, and what its errors mean.

use std::io;
use std::time::Duration;

use api::{GROUP_VERSIONS, Group, GroupVersion};
use http::Uri;
use http::uri::PathAndQuery;
use tokio::time::{Instant, sleep};
use tonic::client::Grpc;
use tonic::codec::Codec;

use crate::connection::{ConnectionLost, Connections};
use crate::error::{Error, ErrorKind};

/// How long a call waits before each repetition. A service that restarts is back within the sum.
const DELAYS: [Duration; 4] =
    [Duration::from_millis(20), Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1)];

/// A request message, which determines the RPC that it is for.
pub(crate) trait Request: prost::Message + Clone + 'static {
    /// The response message.
    type Response: prost::Message + Default + 'static;
    /// The RPC.
    const RPC: Rpc<'static>;
}

/// An RPC, in all versions of its group in which it has the same name and the same messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rpc<'v> {
    pub(crate) group: Group,
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    /// The versions, the preferred one first.
    pub(crate) versions: &'v [&'static str],
}

/// Whether an RPC changes the node, and so when it may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Change,
    /// It may be either. It is repeated like a change.
    Unknown,
}

/// Implements [`Request`] for the requests of a group. A line is the effect of an RPC, its name, its messages, and the
/// versions that have it. It does not compile if the messages of the versions differ: equal ones are one type.
macro_rules! rpcs {
    ($group:ident, $module:ident; $(
        $effect:ident $name:ident($request:ident) -> $response:ident, $first:ident $(| $other:ident)*;
    )*) => {$(
        impl $crate::rpc::Request for api::$module::$first::$request {
            type Response = api::$module::$first::$response;
            const RPC: $crate::rpc::Rpc<'static> = $crate::rpc::Rpc {
                group: api::Group::$group,
                name: stringify!($name),
                effect: $crate::rpc::Effect::$effect,
                versions: &[stringify!($first) $(, stringify!($other))*],
            };
        }
        $(
            const _: fn(api::$module::$other::$request) -> api::$module::$first::$request = |same| same;
            const _: fn(api::$module::$other::$response) -> api::$module::$first::$response = |same| same;
        )*
    )*
        /// The RPCs of the group.
        #[cfg(test)]
        pub(crate) const RPCS: &[$crate::rpc::Rpc<'static>] = &[$(<api::$module::$first::$request as $crate::rpc::Request>::RPC),*];
    };
}
pub(crate) use rpcs;

impl Rpc<'_> {
    /// Returns the group-versions to try, and the path of the RPC in each.
    fn candidates(&self) -> impl Iterator<Item = (&'static GroupVersion, &'static str)> {
        self.versions.iter().map(move |version| {
            let version = GroupVersion::find(self.group, version).expect("the version is in the table");
            let rpc = version.rpcs.iter().find(|rpc| rpc.name == self.name).expect("the version has the RPC");
            (version, rpc.path)
        })
    }

    /// Converts a failure to connect to `version`.
    fn cannot_connect(self, connections: &Connections, version: &GroupVersion, error: io::Error) -> Failure {
        let kind = connect_error_kind(&error);
        let message = format!("cannot connect to {}: {error}", connections.address(version));
        let error = Error::new(kind, self.name, message).with_source(error);
        Failure { may_repeat: kind == ErrorKind::Unavailable, error }
    }

    /// Explains why no version of the RPC is served: no daemon is there, or one that does not have it.
    async fn not_served(self, connections: &Connections) -> Failure {
        let (preferred, _) = self.candidates().next().expect("an RPC has a version");
        let others = GroupVersion::of(self.group).filter(|other| !self.versions.contains(&other.version));
        match connections.served(others).await {
            Err(error) => self.cannot_connect(connections, preferred, error),
            Ok(served) if served.is_empty() => {
                let elsewhere = GROUP_VERSIONS.iter().filter(|other| other.group != self.group);
                if connections.served(elsewhere).await.is_ok_and(|others| !others.is_empty()) {
                    let message = format!(
                        "csi-proxy serves other groups here, but not {}: its flag -api-groups leaves it out, or its pipes are not \
                         mounted",
                        self.group.name()
                    );
                    // A daemon that starts opens its pipes one after the other.
                    return Failure {
                        may_repeat: true,
                        error: Error::new(ErrorKind::Unimplemented, self.name, message),
                    };
                }
                let message = format!(
                    "nothing serves {}: csi-proxy does not run on the node, or its pipes are not mounted here",
                    connections.address(preferred)
                );
                Failure { may_repeat: true, error: Error::new(ErrorKind::Unavailable, self.name, message) }
            }
            Ok(served) => {
                let (group, needed) = (self.group.name(), self.versions.join(" or "));
                let served: Vec<&str> = served.iter().map(|version| version.version).collect();
                let (served, name) = (served.join(", "), self.name);
                let message = format!("the node's csi-proxy serves {group} {served}, but {name} needs {needed}");
                Failure { may_repeat: false, error: Error::new(ErrorKind::Unimplemented, self.name, message) }
            }
        }
    }

    /// Converts a status that tonic returned. One with a source is not the daemon's: the connection is lost.
    fn failed(self, status: tonic::Status) -> Failure {
        let is_read = self.effect == Effect::Read;
        let Some(source) = std::error::Error::source(&status) else {
            let error = Error::from_status(self.name, &status);
            return Failure { may_repeat: is_read && error.kind() == ErrorKind::Unavailable, error };
        };
        let was_sent = source.downcast_ref::<ConnectionLost>().is_none_or(|lost| lost.was_sent);
        let message = match (was_sent, self.effect) {
            (false, _) => "the connection to csi-proxy was closed before the request was sent",
            (true, Effect::Read) => "the connection to csi-proxy broke during the call",
            (true, Effect::Unknown) => {
                "the connection to csi-proxy broke during the call; if it was a change, the node may or may not have made it"
            }
            (true, Effect::Change) => {
                "the connection to csi-proxy broke during the call; the node may or may not have made the change, and \
                 repeating the call completes it"
            }
        };
        let error = Error::new(ErrorKind::Unavailable, self.name, message).with_source(status);
        Failure { may_repeat: is_read || !was_sent, error }
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

/// Calls `rpc` within `deadline`, and repeats it if that is safe and may help. `codec` encodes the request.
pub(crate) async fn call<Q: Clone + Send + Sync + 'static, C: Codec<Encode = Q, Decode: Send + Sync + 'static>>(
    connections: &Connections,
    deadline: Duration,
    rpc: Rpc<'_>,
    request: &Q,
    codec: fn() -> C,
) -> Result<C::Decode, Error> {
    let started = Instant::now();
    let attempts = async {
        let mut delays = DELAYS.into_iter().enumerate();
        loop {
            let remaining = deadline.saturating_sub(started.elapsed());
            let Failure { error, may_repeat } = match attempt(connections, remaining, rpc, request, codec).await {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let Some((repetitions, delay)) = delays.next() else { return Err(error) };
            // A daemon that starts opens its pipes one after the other, so a missing one is looked for again.
            let may_appear = repetitions == 0 && error.kind() == ErrorKind::Unimplemented;
            if !(may_repeat || may_appear) || started.elapsed() + delay >= deadline {
                return Err(error);
            }
            sleep(delay).await;
        }
    };
    tokio::time::timeout(deadline, attempts).await.unwrap_or_else(|_| {
        let seconds = deadline.as_secs_f64();
        let what = match rpc.effect {
            Effect::Read => "",
            Effect::Change | Effect::Unknown => "; the node finishes any change that it has begun",
        };
        Err(Error::new(ErrorKind::DeadlineExceeded, rpc.name, format!("no answer within {seconds} s{what}")))
    })
}

/// Calls the first version of the RPC that is served.
async fn attempt<Q: Clone + Send + Sync + 'static, C: Codec<Encode = Q, Decode: Send + Sync + 'static>>(
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
        let response = grpc.unary(request, PathAndQuery::from_static(path), codec()).await;
        return response.map(tonic::Response::into_inner).map_err(|status| rpc.failed(status));
    }
    Err(rpc.not_served(connections).await)
}

/// Converts a size, which is signed on the wire.
pub(crate) fn unsigned(rpc: Rpc<'_>, size: i64) -> Result<u64, Error> {
    u64::try_from(size).map_err(|_| Error::new(ErrorKind::Internal, rpc.name, format!("the node answered size {size}")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use api::GROUP_VERSIONS;

    use super::*;

    /// The group-versions of csi-proxy before 1.0, whose RPCs have other names or messages.
    const NOT_USED: [&str; 10] = [
        "disk-v1beta2",
        "disk-v1beta1",
        "disk-v1alpha1",
        "filesystem-v1beta1",
        "filesystem-v1alpha1",
        "smb-v1beta1",
        "smb-v1alpha1",
        "volume-v1beta2",
        "volume-v1beta1",
        "volume-v1alpha1",
    ];

    fn rpcs() -> impl Iterator<Item = Rpc<'static>> {
        use crate::{disk, filesystem, iscsi, smb, system, volume};
        [disk::RPCS, filesystem::RPCS, iscsi::RPCS, smb::RPCS, system::RPCS, volume::RPCS]
            .into_iter()
            .flatten()
            .copied()
    }

    #[test]
    fn every_rpc_of_every_version_is_offered_or_the_version_is_one_from_before_1_0() {
        for version in &GROUP_VERSIONS {
            let is_used = !NOT_USED.iter().any(|pipe| version.pipe().strip_prefix("csi-proxy-") == Some(pipe));
            for rpc in version.rpcs {
                let offers = |offered: Rpc<'static>| {
                    offered.candidates().any(|(candidate, path)| candidate.pipe() == version.pipe() && path == rpc.path)
                };
                assert_eq!(rpcs().any(offers), is_used, "{}", rpc.path);
            }
        }
    }

    #[test]
    fn the_preferred_version_is_tried_first() {
        for rpc in rpcs() {
            let place = |version: &GroupVersion| GROUP_VERSIONS.iter().position(|entry| entry.pipe() == version.pipe());
            assert!(rpc.candidates().map(|(version, _)| place(version)).is_sorted(), "{rpc:?}");
        }
    }

    #[test]
    fn the_readme_lists_the_versions_in_use() {
        let mut used: BTreeMap<Group, Vec<&str>> = BTreeMap::new();
        for version in &GROUP_VERSIONS {
            let is_used = |rpc: Rpc<'_>| rpc.group == version.group && rpc.versions.contains(&version.version);
            if rpcs().any(is_used) {
                used.entry(version.group).or_default().push(version.version);
            }
        }
        let readme = include_str!("../README.md").split_whitespace().collect::<Vec<_>>().join(" ");
        for (group, versions) in used {
            let (last, others) = versions.split_last().expect("a version");
            let and = if others.is_empty() { "" } else { " and " };
            let sentence = format!("{} {}{and}{last}", group.name(), others.join(", "));
            assert!(readme.contains(&sentence), "{sentence}");
        }
    }
}
