//! A client for every RPC of every group-version, with requests and responses as JSON.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use api::{GROUP_VERSIONS, GroupVersion};
use dynamic_client::Rpc;
use hyper_util::rt::TokioIo;
use prost_reflect::DynamicMessage;
use serde_json::Value;
use tokio::sync::Mutex;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tower::service_fn;
use transport::address::Location;

/// An RPC of a group-version. Parses from `disk/v1/ListDiskIDs`.
#[derive(Clone, Debug)]
pub(super) struct Method {
    api: &'static GroupVersion,
    name: &'static str,
    rpc: Rpc,
}

impl Method {
    /// The name of the RPC, without its group-version.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Builds a request. An unknown field or a value of the wrong type is an error.
    pub(super) fn request(&self, json: &Value) -> Result<DynamicMessage, String> {
        self.rpc.try_request(json).map_err(|error| format!("{json} is not a request of {self}: {error}"))
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let row = |api: &'static GroupVersion| {
            let name = text.strip_prefix(&format!("{}/{}/", api.group.name(), api.version))?;
            let (name, rpc) = dynamic_client::rpcs(api).remove_entry(name)?;
            Some(Self { api, name, rpc })
        };
        GROUP_VERSIONS.iter().find_map(row).ok_or_else(|| format!("unknown RPC {text}"))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} {}", self.api.group.name(), self.api.version, self.name)
    }
}

/// A client of the daemon whose endpoints are at one location.
#[derive(Debug)]
pub(super) struct JsonClient {
    location: Location,
    channels: Mutex<HashMap<&'static str, Channel>>,
}

impl JsonClient {
    /// Returns a client that connects to each endpoint when it is first called.
    pub(super) fn new(location: Location) -> Self {
        Self { location, channels: Mutex::default() }
    }

    /// Calls an RPC and returns the response with all its fields, including those with default values.
    pub(super) async fn call(&self, method: &Method, request: &DynamicMessage) -> Result<Value, Status> {
        method.rpc.call_json(&self.channel(method.api).await?, request).await
    }

    async fn channel(&self, api: &'static GroupVersion) -> Result<Channel, Status> {
        let mut channels = self.channels.lock().await;
        if let Some(channel) = channels.get(api.pipe()) {
            return Ok(channel.clone());
        }
        let unavailable =
            |error: &dyn fmt::Display| Status::unavailable(format!("cannot open {}: {error}", api.pipe()));
        let address = self.location.address(api.pipe()).map_err(|error| unavailable(&error))?;
        let connector = service_fn(move |_| {
            let address = address.clone();
            async move { transport::listener::connect(&address).await.map(TokioIo::new) }
        });
        let endpoint = Endpoint::from_static("http://csi-proxy");
        let channel = endpoint.connect_with_connector(connector).await.map_err(|error| unavailable(&error))?;
        channels.insert(api.pipe(), channel.clone());
        Ok(channel)
    }
}

/// Returns whether the daemon answered the call, as opposed to being unreachable or not knowing the RPC.
pub(super) fn is_answer(status: &Status) -> bool {
    !matches!(status.code(), Code::Cancelled | Code::DeadlineExceeded | Code::Unavailable | Code::Unimplemented)
}
