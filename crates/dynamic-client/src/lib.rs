//! A gRPC client without generated code: it builds requests from protobuf descriptors and JSON.
//!
//! csi-proxyctl, the demonstration and tests use it to call every RPC of every group-version from
//! one table, independently of the generated types.

use std::collections::BTreeMap;

use api::{EncodedCodec, GroupVersion};
use http::uri::PathAndQuery;
use prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, FileDescriptor, MessageDescriptor,
    SerializeOptions, ServiceDescriptor,
};
use serde_json::Value;
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
    /// The comment in the `api.proto`.
    pub comment: String,
}

/// Returns the RPCs of a group-version by name.
pub fn rpcs(row: &GroupVersion) -> BTreeMap<&'static str, Rpc> {
    let service = service(row);
    let rpc = |rpc: &api::Rpc| {
        let method = service
            .methods()
            .find(|method| method.name() == rpc.name)
            .expect("the table lists the methods of the service");
        let comment = comment(&method.parent_file(), method.path());
        (
            rpc.name,
            Rpc {
                path: rpc.path,
                request: method.input(),
                response: method.output(),
                comment,
            },
        )
    };
    row.rpcs.iter().map(rpc).collect()
}

fn service(row: &GroupVersion) -> ServiceDescriptor {
    let pool =
        DescriptorPool::decode(row.descriptors()).expect("the descriptors of the table decode");
    pool.services()
        .next()
        .expect("each descriptor set has a service")
}

/// Returns the comment on the service of a group-version.
pub fn service_comment(row: &GroupVersion) -> String {
    let service = service(row);
    comment(&service.parent_file(), service.path())
}

/// Returns the comment on a field in the `api.proto`.
pub fn field_comment(field: &FieldDescriptor) -> String {
    comment(&field.parent_message().parent_file(), field.path())
}

/// Returns the comment at `path`: its paragraphs without line breaks, separated by empty lines.
fn comment(file: &FileDescriptor, path: &[i32]) -> String {
    let mut locations = file
        .file_descriptor_proto()
        .source_code_info
        .iter()
        .flat_map(|info| &info.location);
    let comment = locations.find(|location| location.path == path);
    let comment = comment
        .and_then(|location| location.leading_comments.as_deref())
        .unwrap_or_default();
    let lines: Vec<&str> = comment.lines().map(str::trim).collect();
    let paragraphs: Vec<String> = lines
        .split(|line| line.is_empty())
        .map(|lines| lines.join(" "))
        .collect();
    paragraphs.join("\n\n").trim().to_owned()
}

impl Rpc {
    /// Builds a request from its JSON form. An unknown field or a value of the wrong type is an
    /// error.
    pub fn try_request(&self, json: &Value) -> Result<DynamicMessage, serde_json::Error> {
        DynamicMessage::deserialize(self.request.clone(), json)
    }

    /// Builds a request like [`Self::try_request`], and panics on an error.
    pub fn request(&self, json: &Value) -> DynamicMessage {
        self.try_request(json)
            .unwrap_or_else(|error| panic!("{}: {json}: {error}", self.path))
    }

    /// Calls the RPC and returns the response as JSON, with every field by its name in the
    /// `api.proto` file.
    pub async fn call(&self, channel: &Channel, request: &DynamicMessage) -> Result<Value, Status> {
        let bytes = call(channel, self.path, request.encode_to_vec()).await?;
        self.response_json(&bytes, SerializeOptions::new().use_proto_field_name(true))
            .map_err(Status::internal)
    }

    /// Converts an encoded response to JSON, with every field. The error is a sentence.
    pub fn response_json(
        &self,
        encoded: &[u8],
        options: SerializeOptions,
    ) -> Result<Value, String> {
        let response = DynamicMessage::decode(self.response.clone(), encoded)
            .map_err(|error| format!("cannot decode the response: {error}"))?;
        response
            .serialize_with_options(
                serde_json::value::Serializer,
                &options.skip_default_fields(false),
            )
            .map_err(|error| format!("cannot convert the response to JSON: {error}"))
    }
}

/// Calls the RPC at `path` with `request` as the encoded message, which need not be a valid one.
pub async fn call(
    channel: &Channel,
    path: &'static str,
    request: Vec<u8>,
) -> Result<Vec<u8>, Status> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client
        .ready()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let response = client
        .unary(
            Request::new(request),
            PathAndQuery::from_static(path),
            EncodedCodec,
        )
        .await?;
    Ok(response.into_inner())
}
