//! gRPC reflection on each socket, compared with the descriptors of the API.

use std::collections::BTreeMap;

use api::{Group, GroupVersion};
use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use server::EndpointSpec;
use tonic::transport::Channel;
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;
use tonic_reflection::pb;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};

use super::program::Program;

/// The files that define the services, by the full name of the service.
type Services = BTreeMap<String, FileDescriptorProto>;

/// Returns the services of encoded sets of files.
fn services_of<'a>(sets: impl IntoIterator<Item = &'a [u8]>) -> Services {
    let files = sets
        .into_iter()
        .flat_map(|set| FileDescriptorSet::decode(set).expect("descriptors").file);
    let services = |file: FileDescriptorProto| {
        let names: Vec<_> = file
            .service
            .iter()
            .map(|service| format!("{}.{}", file.package(), service.name()))
            .collect();
        names.into_iter().map(move |name| (name, file.clone()))
    };
    files.flat_map(services).collect()
}

/// Sends requests to a version of the reflection service. The versions have the same messages in
/// different packages.
async fn ask(
    channel: &Channel,
    version: &str,
    requests: Vec<MessageRequest>,
) -> Vec<MessageResponse> {
    let message = |request| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(request),
    };
    let requests = tokio_stream::iter(requests.into_iter().map(message).collect::<Vec<_>>());
    let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo")
        .parse()
        .expect("a path");
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.expect("a connection");
    let answers = client
        .streaming(Request::new(requests), path, ProstCodec::default())
        .await;
    let mut answers: Streaming<ServerReflectionResponse> = answers.expect("a stream").into_inner();
    let mut all = Vec::new();
    while let Some(answer) = answers.message().await.expect("an answer") {
        all.push(answer.message_response.expect("an answer has content"));
    }
    all
}

/// Asks for all services.
async fn services(channel: &Channel, version: &str) -> Services {
    let list = ask(
        channel,
        version,
        vec![MessageRequest::ListServices(String::new())],
    )
    .await;
    let [MessageResponse::ListServicesResponse(list)] = &list[..] else {
        panic!("{list:?}")
    };
    let names: Vec<String> = list
        .service
        .iter()
        .map(|service| service.name.clone())
        .collect();
    let requests = names
        .iter()
        .cloned()
        .map(MessageRequest::FileContainingSymbol)
        .collect();
    let files = ask(channel, version, requests)
        .await
        .into_iter()
        .map(|answer| match answer {
            MessageResponse::FileDescriptorResponse(files) => {
                FileDescriptorProto::decode(files.file_descriptor_proto[0].as_slice())
                    .expect("a file")
            }
            other => panic!("{other:?}"),
        });
    names.into_iter().zip(files).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_socket_lists_the_services_on_it_and_describes_them_as_the_api_does() {
    let program = Program::start(&["-groupless-pipes"]);
    let health = || [tonic_health::pb::FILE_DESCRIPTOR_SET];
    let endpoints = EndpointSpec::of(&Group::ALL, true).into_iter().map(|spec| {
        let sets = spec.group_versions().map(GroupVersion::descriptors);
        (spec.name(), services_of(sets.chain(health())))
    });
    let control = (
        csi_proxy_sim::control_api::ENDPOINT.to_owned(),
        services_of([csi_proxy_sim::control_api::DESCRIPTORS]),
    );
    let sockets: BTreeMap<_, _> = endpoints.chain([control]).collect();
    let found = std::fs::read_dir(program.sockets())
        .expect("the sockets")
        .count();
    assert_eq!(
        found,
        sockets.len(),
        "sockets in {}",
        program.sockets().display()
    );

    for (socket, mut expected) in sockets {
        expected.extend(services_of([
            pb::v1::FILE_DESCRIPTOR_SET,
            pb::v1alpha::FILE_DESCRIPTOR_SET,
        ]));
        let channel = program.channel(&socket).await;
        for version in ["v1", "v1alpha"] {
            assert_eq!(services(&channel, version).await, expected, "{socket}");
        }
    }
}
