//! Requests to the whole server, in front of a simulated node.
//!
//! Each call is answered once and with a status that is no accident, and what must not be touched is not.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use api::{GROUP_VERSIONS, GroupVersion};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use os_sim::{Description, Sim};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor, Value};
use server::{Endpoint, EndpointSpec, Limits, Server, Unfinished};
use storage_ops::{Config, Executor, Node};
use tokio::sync::oneshot;
use transport::address::Location;
use transport::memory::{self, Dialer};

use crate::authority::runtime;
use crate::input::Input;

const MOST_CALLS: usize = 16;
/// Far more than anything here takes, on a clock that nobody waits for: what is not over by then hangs.
const HANGS: Duration = Duration::from_mins(1);
const PRECIOUS: &str = r"C:\outside\precious";

/// Statuses by their numbers on the wire.
const UNKNOWN: &str = "2";
const INTERNAL: &str = "13";

/// An RPC with the message it takes.
struct Rpc {
    row: usize,
    path: &'static str,
    request: MessageDescriptor,
}

static RPCS: LazyLock<Vec<Rpc>> = LazyLock::new(|| {
    let of_row = |(row, group_version): (usize, &GroupVersion)| {
        let pool = DescriptorPool::decode(group_version.descriptors()).expect("descriptors");
        let service = pool.services().next().expect("a service");
        let rpc = |rpc: &api::Rpc| {
            let method = service.methods().find(|method| method.name() == rpc.name).expect("the table has it");
            Rpc { row, path: rpc.path, request: method.input() }
        };
        group_version.rpcs.iter().map(rpc).collect::<Vec<_>>()
    };
    GROUP_VERSIONS.iter().enumerate().flat_map(of_row).collect()
});

static NODE: LazyLock<Description> =
    LazyLock::new(|| Description::from_toml(include_str!("node.toml")).expect("a description"));

/// Calls RPCs one after the other, with messages of the fuzzer's bytes or made by them.
pub(crate) fn calls(bytes: &[u8]) {
    let sim = Sim::describe(&NODE).expect("a node");
    let before = sim.tree(r"C:\outside").expect("a folder");
    let mut input = Input::new(bytes);
    let runtime = runtime();
    runtime.block_on(async {
        let served = Served::on(&sim);
        let mut clients: Vec<Option<SendRequest<Bytes>>> = GROUP_VERSIONS.iter().map(|_| None).collect();
        for _ in 0..MOST_CALLS {
            if input.is_empty() {
                break;
            }
            let rpc = &RPCS[usize::from(input.byte()) % RPCS.len()];
            let message = message(rpc, &sim, &mut input);
            let client = match clients[rpc.row].take() {
                Some(client) => client,
                None => served.connect(rpc.row).await,
            };
            clients[rpc.row] = Some(call(client, rpc.path, message).await);
        }
        drop(clients);
        assert_eq!(served.stop().await, Unfinished::default());
    });
    sim.invariants().expect("the node makes sense");
    assert_eq!(sim.tree(r"C:\outside").ok(), Some(before), "nothing outside the working directories is touched");
    assert_eq!(sim.external().read(PRECIOUS).expect("it is there"), b"precious");
    let formatted_again = |disk: u32| sim.volume_on(disk).is_some_and(|volume| volume.formats > 0);
    assert!(!formatted_again(2), "a volume with a file system was formatted");
    assert!(sim.all_volumes().iter().all(|volume| volume.formats <= 1), "a volume was formatted twice");
}

/// The fuzzer's bytes as they are, or a message whose fields they choose.
fn message(rpc: &Rpc, sim: &Sim, input: &mut Input<'_>) -> Vec<u8> {
    if input.byte().is_multiple_of(4) {
        return input.string().to_vec();
    }
    filled(&rpc.request, sim, input, 0).encode_to_vec()
}

fn filled(message: &MessageDescriptor, sim: &Sim, input: &mut Input<'_>, depth: u8) -> DynamicMessage {
    let mut filled = DynamicMessage::new(message.clone());
    for field in message.fields() {
        let value = match field.kind() {
            Kind::String => Value::String(text(field.name(), sim, input)),
            Kind::Bool => Value::Bool(input.byte().is_multiple_of(2)),
            Kind::Uint32 => Value::U32(*input.one_of(&[1, 2, 3, 0, 260, 3260, 99, u32::MAX])),
            Kind::Int32 => Value::I32(*input.one_of(&[1, 2, 3, 0, -1, i32::MAX])),
            Kind::Int64 if field.name().contains("ize") => Value::I64(size(input)),
            Kind::Int64 => Value::I64(*input.one_of(&[1, 2, 3, 0, -1, i64::MAX])),
            Kind::Enum(of) => Value::EnumNumber(i32::from(input.byte()) % 5 - i32::from(of.values().len() == 0)),
            Kind::Message(of) if depth < 3 => Value::Message(self::filled(&of, sim, input, depth + 1)),
            _ => continue,
        };
        let value = if field.is_list() { Value::List(vec![value]) } else { value };
        let _ = filled.try_set_field(&field, value);
    }
    filled
}

fn size(input: &mut Input<'_>) -> i64 {
    let size = *input.one_of(&[0_i64, 1 << 30, 3 << 30, 5 << 30, -1, i64::MAX, 1]);
    size.saturating_add(i64::from(input.byte() % 2))
}

/// A text that may stand in a field of this name, or any.
fn text(field: &str, sim: &Sim, input: &mut Input<'_>) -> String {
    let kubelet = [
        r"C:\var\lib\kubelet\plugins\mine",
        r"\var\lib\kubelet\pods\a",
        r"C:\var\lib\kubelet\pods\b",
        r"c:/var/lib/kubelet/plugins/mine/../../../../../outside",
        r"C:\var\lib\kubelet\plugins\way out",
        r"C:\var\lib\kubelet\plugins\way out\precious",
        r"C:\var\lib\kubelet-evil",
        PRECIOUS,
        r"C:\var\lib\kubelet",
    ];
    let others = [
        r"\\fileserver\share",
        "//fileserver/share/sub",
        "anna",
        "10.0.0.10",
        "iqn.2026-01.io.k8s.csi:chap",
        "initiator",
        "initiator-12",
        "vds",
        "pvc-x",
        "1",
        "2",
        "",
        "\0",
    ];
    match input.byte() % 8 {
        _ if field.contains("password") => "secret-of-anna".to_owned(),
        0 => String::from_utf8_lossy(input.string()).into_owned(),
        1 => (*input.one_of(&others)).to_owned(),
        _ if field.contains("volume") => {
            let disk = u32::from(input.byte() % 5);
            sim.volume_on(disk).map_or_else(|| "gone".to_owned(), |volume| volume.name())
        }
        _ if field.contains("path") && !field.contains("remote") || field == "mount" => {
            (*input.one_of(&kubelet)).to_owned()
        }
        _ if field.contains("disk") || field.contains("number") => {
            (*input.one_of(&["1", "2", "3", "4", "x"])).to_owned()
        }
        _ => (*input.one_of(&others)).to_owned(),
    }
}

/// Sends one request and holds its answer to what a call may count on.
async fn call(client: SendRequest<Bytes>, path: &str, message: Vec<u8>) -> SendRequest<Bytes> {
    let mut client = client.ready().await.expect("the connection lives");
    let request = Request::post(format!("http://localhost{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("a request");
    let length = u32::try_from(message.len()).expect("short").to_be_bytes();
    let body = [&[0], &length[..], &message].concat();
    let answer = async {
        let (response, mut stream) = client.send_request(request, false).expect("the connection lives");
        stream.send_data(body.into(), true).expect("there is room for a message");
        let (head, mut body) = response.await.expect("an answer").into_parts();
        let mut messages = Vec::new();
        while let Some(octets) = body.data().await {
            let octets = octets.expect("the stream lives");
            body.flow_control().release_capacity(octets.len()).expect("it was received");
            messages.extend_from_slice(&octets);
        }
        (head.headers, messages, body.trailers().await.expect("the stream ends in order"))
    };
    let answer = tokio::time::timeout(HANGS, answer).await;
    let (head, messages, trailers) = answer.unwrap_or_else(|_| panic!("{path} has no answer"));
    check(path, &head, &messages, trailers.as_ref());
    client
}

fn check(path: &str, head: &HeaderMap, messages: &[u8], trailers: Option<&HeaderMap>) {
    let all = || [Some(head), trailers].into_iter().flatten();
    let statuses: Vec<_> = all().flat_map(|headers| headers.get_all("grpc-status")).collect();
    let [status] = statuses[..] else { panic!("{path} has {} statuses", statuses.len()) };
    let said =
        all().find_map(|headers| headers.get("grpc-message")).map(|text| String::from_utf8_lossy(text.as_bytes()));
    let said = said.unwrap_or_default();
    if status == "0" {
        let length =
            messages.get(1..5).map(|octets| octets.iter().fold(0, |sum, octet| sum << 8 | usize::from(*octet)));
        assert_eq!(length, Some(messages.len().wrapping_sub(5)), "{path} has one message");
        return;
    }
    assert!(messages.is_empty(), "{path} failed and has a message");
    assert!(!said.is_empty(), "{path} failed without a word");
    assert!(!said.contains("secret-of-anna"), "{path} repeats a secret: {said}");
    let undecodable = said.starts_with("failed%20to%20decode");
    assert!(status != INTERNAL || undecodable, "{path} has a defect: {said}");
    assert_ne!(status, UNKNOWN, "{path}: {said}");
}

/// A server whose connections are in memory.
struct Served {
    connect: Vec<Dialer>,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<Unfinished>,
}

impl Served {
    fn on(sim: &Sim) -> Self {
        let executor = Arc::new(Executor::new(Arc::new(Node::new(sim.process(), Config::default()))));
        let (mut connect, mut endpoints) = (Vec::new(), Vec::new());
        for row in &GROUP_VERSIONS {
            let (dial, endpoint) = memory::endpoint(Location::NamedPipes.address(row.pipe()).expect("a name"));
            connect.push(dial);
            endpoints.push(Endpoint::new(EndpointSpec::GroupVersion(row), endpoint));
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let server = Server::new(executor, Limits::default());
            server.serve(endpoints, async { drop(stopped.await) }).await
        });
        Self { connect, stop, serving }
    }

    async fn connect(&self, row: usize) -> SendRequest<Bytes> {
        let client = self.connect[row].connect().expect("it accepts");
        let (client, connection) = h2::client::handshake(client).await.expect("it speaks HTTP/2");
        tokio::spawn(async move {
            // It ends with the client or the server, whoever goes first.
            let _ = connection.await;
        });
        client
    }

    async fn stop(self) -> Unfinished {
        drop(self.stop);
        let stopped = tokio::time::timeout(HANGS, self.serving).await;
        stopped.expect("it stops").expect("no panic")
    }
}
