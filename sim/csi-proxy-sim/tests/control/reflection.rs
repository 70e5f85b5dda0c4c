//! gRPC reflection on each socket, compared with the descriptors of the API.

use std::collections::BTreeMap;

use api::{Group, GroupVersion};
use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use server::EndpointSpec;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_reflection::pb;

use super::program::Program;

/// The files that define the services, by the full name of the service.
type Services = BTreeMap<String, FileDescriptorProto>;

/// Returns the services of encoded sets of files.
fn services_of<'a>(sets: impl IntoIterator<Item = &'a [u8]>) -> Services {
    let files = sets.into_iter().flat_map(|set| FileDescriptorSet::decode(set).expect("descriptors").file);
    let services = |file: FileDescriptorProto| {
        let names: Vec<_> =
            file.service.iter().map(|service| format!("{}.{}", file.package(), service.name())).collect();
        names.into_iter().map(move |name| (name, file.clone()))
    };
    files.flat_map(services).collect()
}

/// Defines a module whose `services` asks one version of the reflection service for all services, and `unknown` for a
/// symbol that does not exist. The versions have the same messages in different packages.
macro_rules! client {
    ($version:ident) => {
        mod $version {
            use tokio::sync::mpsc;
            use tokio_stream::wrappers::ReceiverStream;
            use tonic_reflection::pb::$version::ServerReflectionRequest;
            use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
            use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
            use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;

            use super::*;

            /// Sends the requests one after the other, each when the one before it is answered.
            async fn ask(
                channel: &Channel,
                next: impl Fn(usize, &[MessageResponse]) -> Option<MessageRequest>,
            ) -> Result<Vec<MessageResponse>, Status> {
                let (requests, receiver) = mpsc::channel(1);
                let mut client = ServerReflectionClient::new(channel.clone());
                let answers = client.server_reflection_info(ReceiverStream::new(receiver)).await?;
                let (mut answers, mut all) = (answers.into_inner(), Vec::new());
                while let Some(request) = next(all.len(), &all) {
                    let request = ServerReflectionRequest { host: String::new(), message_request: Some(request) };
                    requests.send(request).await.expect("the stream is open");
                    let answer = answers.message().await?.expect("an answer");
                    all.push(answer.message_response.expect("an answer has content"));
                }
                Ok(all)
            }

            pub(super) async fn services(channel: &Channel) -> Services {
                let names = |answers: &[MessageResponse]| match &answers[0] {
                    MessageResponse::ListServicesResponse(list) => {
                        list.service.iter().map(|service| service.name.clone()).collect::<Vec<_>>()
                    }
                    other => panic!("{other:?}"),
                };
                let answers = ask(channel, |number, answers| match number.checked_sub(1) {
                    None => Some(MessageRequest::ListServices(String::new())),
                    Some(index) => names(answers).into_iter().nth(index).map(MessageRequest::FileContainingSymbol),
                });
                let answers = answers.await.expect("answers");
                let file = |answer: &MessageResponse| match answer {
                    MessageResponse::FileDescriptorResponse(files) => {
                        FileDescriptorProto::decode(files.file_descriptor_proto[0].as_slice()).expect("a file")
                    }
                    other => panic!("{other:?}"),
                };
                names(&answers).into_iter().zip(answers[1..].iter().map(file)).collect()
            }

            pub(super) async fn unknown(channel: &Channel) -> Code {
                let symbol =
                    |number, _: &[_]| (number == 0).then(|| MessageRequest::FileContainingSymbol("v1.X".into()));
                match ask(channel, symbol).await.as_deref() {
                    Err(status) => status.code(),
                    Ok([MessageResponse::ErrorResponse(error)]) => Code::from_i32(error.error_code),
                    Ok(other) => panic!("{other:?}"),
                }
            }
        }
    };
}

client!(v1);
client!(v1alpha);

#[tokio::test(flavor = "multi_thread")]
async fn each_socket_lists_the_services_on_it_and_describes_them_as_the_api_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = Program::start_with(folder, &["-groupless-pipes".to_owned()]).await;
    let health = || [tonic_health::pb::FILE_DESCRIPTOR_SET];
    let endpoints = EndpointSpec::of(&Group::ALL, true).into_iter().map(|spec| {
        let sets = spec.group_versions().map(GroupVersion::descriptors);
        (spec.name(), services_of(sets.chain(health())))
    });
    let control =
        (csi_proxy_sim::control_api::ENDPOINT.to_owned(), services_of([csi_proxy_sim::control_api::DESCRIPTORS]));
    let sockets: BTreeMap<_, _> = endpoints.chain([control]).collect();
    let found = std::fs::read_dir(program.sockets()).expect("the sockets").count();
    assert_eq!(found, sockets.len(), "sockets in {}", program.sockets().display());

    for (socket, mut expected) in sockets {
        expected.extend(services_of([pb::v1::FILE_DESCRIPTOR_SET, pb::v1alpha::FILE_DESCRIPTOR_SET]));
        let channel = program.channel(&socket).await;
        assert_eq!(v1::services(&channel).await, expected, "{socket}");
        assert_eq!(v1alpha::services(&channel).await, expected, "{socket}");
        assert_eq!([v1::unknown(&channel).await, v1alpha::unknown(&channel).await], [Code::NotFound; 2]);
    }
}
