//! A gRPC client without generated code: it builds requests from protobuf descriptors and JSON.
//!
//! Tests and the demonstration use it to call every RPC of every group-version from one table, independently of the
//! generated types.

use std::collections::BTreeMap;

use api::GroupVersion;
use bytes::{Buf as _, BufMut as _};
use http::uri::PathAndQuery;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::Value;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Request, Status};

/// One RPC, with the descriptors of its messages.
#[derive(Clone, Debug)]
pub struct Rpc {
    /// The path of the HTTP/2 request, such as `/v1.Disk/ListDiskIDs`.
    pub path: &'static str,
    /// The request message.
    pub request: MessageDescriptor,
    /// The response message.
    pub response: MessageDescriptor,
}

/// Returns the RPCs of a group-version by name.
pub fn rpcs(row: &GroupVersion) -> BTreeMap<&'static str, Rpc> {
    let pool = DescriptorPool::decode(row.descriptors()).expect("the descriptors of the table decode");
    let service = pool.services().next().expect("each descriptor set has a service");
    let rpc = |rpc: &api::Rpc| {
        let method = service
            .methods()
            .find(|method| method.name() == rpc.name)
            .expect("the table lists the methods of the service");
        (rpc.name, Rpc { path: rpc.path, request: method.input(), response: method.output() })
    };
    row.rpcs.iter().map(rpc).collect()
}

impl Rpc {
    /// Builds a request from its JSON form. An unknown field or a value of the wrong type is an error.
    pub fn try_request(&self, json: &Value) -> Result<DynamicMessage, serde_json::Error> {
        DynamicMessage::deserialize(self.request.clone(), json)
    }

    /// Builds a request like [`Self::try_request`], and panics on an error.
    pub fn request(&self, json: &Value) -> DynamicMessage {
        self.try_request(json).unwrap_or_else(|error| panic!("{}: {json}: {error}", self.path))
    }

    /// Calls the RPC and returns the response as JSON, with every field by its name in the `api.proto` file.
    pub async fn call(&self, channel: &Channel, request: &DynamicMessage) -> Result<Value, Status> {
        self.call_with(channel, request, SerializeOptions::new().use_proto_field_name(true)).await
    }

    /// Calls the RPC and returns the response as protobuf's JSON mapping defines it, with every field.
    ///
    /// The mapping has lowerCamelCase names, and 64-bit integers as text.
    pub async fn call_json(&self, channel: &Channel, request: &DynamicMessage) -> Result<Value, Status> {
        self.call_with(channel, request, SerializeOptions::new()).await
    }

    async fn call_with(
        &self,
        channel: &Channel,
        request: &DynamicMessage,
        options: SerializeOptions,
    ) -> Result<Value, Status> {
        let bytes = call(channel, self.path, request.encode_to_vec()).await?;
        let response = DynamicMessage::decode(self.response.clone(), &bytes[..])
            .map_err(|error| Status::internal(format!("cannot decode the response: {error}")))?;
        response
            .serialize_with_options(serde_json::value::Serializer, &options.skip_default_fields(false))
            .map_err(|error| Status::internal(format!("cannot convert the response to JSON: {error}")))
    }
}

/// Calls the RPC at `path` with `request` as the encoded message, which need not be a valid one.
pub async fn call(channel: &Channel, path: &'static str, request: Vec<u8>) -> Result<Vec<u8>, Status> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let response = client.unary(Request::new(request), PathAndQuery::from_static(path), Raw).await?;
    Ok(response.into_inner())
}

/// A codec that leaves messages as bytes.
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining()).to_vec()))
    }
}
