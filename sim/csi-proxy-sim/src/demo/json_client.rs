//! A client for every RPC of every group-version, with requests and responses as JSON.
//!
//! The messages are built from the descriptors of the `api.proto` files, so the client needs no code for any single
//! RPC. JSON is protobuf's JSON mapping: lowerCamelCase names, 64-bit integers as text.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use api::{GROUP_VERSIONS, GroupVersion};
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::Value;
use tokio::sync::Mutex;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tower::service_fn;
use transport::address::Location;

/// An RPC with the descriptors of its messages. Parses from `disk/v1/ListDiskIDs`.
#[derive(Clone, Debug)]
pub(super) struct Method {
    api: &'static GroupVersion,
    rpc: &'static api::Rpc,
    request: MessageDescriptor,
    response: MessageDescriptor,
}

impl Method {
    /// The name of the RPC, without its group-version.
    pub(super) fn rpc(&self) -> &'static str {
        self.rpc.name
    }

    /// Builds a request. An unknown field or a value of the wrong type is an error.
    pub(super) fn request(&self, json: &Value) -> Result<DynamicMessage, String> {
        DynamicMessage::deserialize(self.request.clone(), json)
            .map_err(|error| format!("{json} is not a request of {self}: {error}"))
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let row = |api: &'static GroupVersion| {
            let rpc = name.strip_prefix(&format!("{}/{}/", api.group.name(), api.version))?;
            Some((api, api.rpcs.iter().find(|row| row.name == rpc)?))
        };
        let (api, rpc) = GROUP_VERSIONS.iter().find_map(row).ok_or_else(|| format!("unknown RPC {name}"))?;
        let pool = DescriptorPool::decode(api.descriptors()).map_err(|error| error.to_string())?;
        let service = pool.get_service_by_name(api.service).ok_or("the service has no descriptor")?;
        let method = service.methods().find(|method| method.name() == rpc.name).ok_or("the RPC has no descriptor")?;
        Ok(Self { api, rpc, request: method.input(), response: method.output() })
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} {}", self.api.group.name(), self.api.version, self.rpc.name)
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

    /// Calls an RPC and returns the response with all its fields, also those with default values.
    pub(super) async fn call(&self, method: &Method, request: DynamicMessage) -> Result<Value, Status> {
        let mut client = tonic::client::Grpc::new(self.channel(method.api).await?);
        client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static(method.rpc.path);
        let codec = DynamicCodec(method.response.clone());
        let response = client.unary(Request::new(request), path, codec).await?.into_inner();
        let options = SerializeOptions::new().skip_default_fields(false);
        response
            .serialize_with_options(serde_json::value::Serializer, &options)
            .map_err(|error| Status::internal(format!("the response has no JSON form: {error}")))
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

/// Encodes any message, and decodes messages of one type.
struct DynamicCodec(MessageDescriptor);

impl Codec for DynamicCodec {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self(self.0.clone())
    }

    fn decoder(&mut self) -> Self {
        Self(self.0.clone())
    }
}

impl Encoder for DynamicCodec {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, message: DynamicMessage, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for DynamicCodec {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        let message = DynamicMessage::decode(self.0.clone(), buffer);
        message.map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
