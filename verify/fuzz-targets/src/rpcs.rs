//! The target for requests to the server, in front of a simulated node.
//!
//! Each call is answered once, with a status that is neither Unknown nor an accidental Internal,
//! and nothing outside the working directories is changed.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use api::{GROUP_VERSIONS, GroupVersion};
use bytes::Bytes;
use dynamic_client::Rpc;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use os_sim::{Description, Sim};
use prost::Message as _;
use prost_reflect::{DynamicMessage, Kind, MessageDescriptor, Value};
use server::{Endpoint, EndpointSpec, Limits, Server, Unfinished};
use storage_ops::{Config, Executor, HostPath, Node};
use tokio::sync::oneshot;
use transport::address::Location;
use transport::memory::{self, Dialer};

use crate::header_filter::runtime;
use crate::input::Input;

const MAX_CALLS: usize = 16;
/// A call that takes longer hangs: the node's clock is simulated.
const HANG_TIMEOUT: Duration = Duration::from_mins(1);
const PRECIOUS: &str = r"C:\outside\precious";

/// Status codes as on the wire.
const UNKNOWN: &str = "2";
const INTERNAL: &str = "13";

/// All RPCs, each with the number of its group-version.
static RPCS: LazyLock<Vec<(usize, Rpc)>> = LazyLock::new(|| {
    let of_row = |(row, group_version): (usize, &GroupVersion)| {
        let rpcs = dynamic_client::rpcs(group_version);
        group_version
            .rpcs
            .iter()
            .map(move |rpc| (row, rpcs[rpc.name].clone()))
    };
    GROUP_VERSIONS.iter().enumerate().flat_map(of_row).collect()
});

static NODE: LazyLock<Description> =
    LazyLock::new(|| Description::from_toml(include_str!("node.toml")).expect("a description"));

/// Calls RPCs one after the other, whose messages are the fuzzer's bytes or built from them.
pub(crate) fn calls(bytes: &[u8]) {
    let sim = Sim::describe(&NODE).expect("a node");
    let before = sim.tree(r"C:\outside").expect("a folder");
    let mut input = Input::new(bytes);
    let runtime = runtime();
    runtime.block_on(async {
        let served = TestServer::on(&sim);
        let mut clients: Vec<Option<SendRequest<Bytes>>> =
            GROUP_VERSIONS.iter().map(|_| None).collect();
        for _ in 0..MAX_CALLS {
            if input.is_empty() {
                break;
            }
            let (row, rpc) = input.one_of(&RPCS);
            let message = message(rpc, &sim, &mut input);
            let client = match clients[*row].take() {
                Some(client) => client,
                None => served.connect(*row).await,
            };
            clients[*row] = Some(call(client, rpc.path, message).await);
        }
        drop(clients);
        assert_eq!(served.stop().await, Unfinished::default());
    });
    sim.invariants().expect("the node is consistent");
    assert_eq!(
        sim.tree(r"C:\outside").ok(),
        Some(before),
        "a file outside the working directories was changed"
    );
    assert_eq!(
        sim.external().read(PRECIOUS).expect("the file exists"),
        b"precious"
    );
    let formatted_again = |disk: u32| sim.volume_on(disk).is_some_and(|volume| volume.formats > 0);
    assert!(
        !formatted_again(2),
        "a volume with a file system was formatted"
    );
    assert!(
        sim.all_volumes().iter().all(|volume| volume.formats <= 1),
        "a volume was formatted twice"
    );
}

/// Returns some of the fuzzer's bytes, or a message whose fields they select.
fn message(rpc: &Rpc, sim: &Sim, input: &mut Input<'_>) -> Vec<u8> {
    if input.byte().is_multiple_of(4) {
        return input.string().to_vec();
    }
    filled(&rpc.request, sim, input, 0).encode_to_vec()
}

fn filled(
    message: &MessageDescriptor,
    sim: &Sim,
    input: &mut Input<'_>,
    depth: u8,
) -> DynamicMessage {
    let mut filled = DynamicMessage::new(message.clone());
    for field in message.fields() {
        let value = match field.kind() {
            Kind::String => Value::String(text(field.name(), sim, input)),
            Kind::Bool => Value::Bool(input.byte().is_multiple_of(2)),
            Kind::Uint32 => Value::U32(*input.one_of(&[1, 2, 3, 0, 260, 3260, 99, u32::MAX])),
            Kind::Int32 => Value::I32(*input.one_of(&[1, 2, 3, 0, -1, i32::MAX])),
            Kind::Int64 if field.name().contains("ize") => Value::I64(size(input)),
            Kind::Int64 => Value::I64(*input.one_of(&[1, 2, 3, 0, -1, i64::MAX])),
            Kind::Enum(of) => {
                Value::EnumNumber(i32::from(input.byte()) % 5 - i32::from(of.values().len() == 0))
            }
            Kind::Message(of) if depth < 3 => {
                Value::Message(self::filled(&of, sim, input, depth + 1))
            }
            _ => continue,
        };
        let value = if field.is_list() {
            Value::List(vec![value])
        } else {
            value
        };
        let _ = filled.try_set_field(&field, value);
    }
    filled
}

fn size(input: &mut Input<'_>) -> i64 {
    let size = *input.one_of(&[0_i64, 1 << 30, 3 << 30, 5 << 30, -1, i64::MAX, 1]);
    size.saturating_add(i64::from(input.byte() % 2))
}

/// Returns a plausible text for a field with this name, or any text.
fn text(field: &str, sim: &Sim, input: &mut Input<'_>) -> String {
    let kubelet = [
        r"C:\var\lib\kubelet\plugins\mine",
        r"\var\lib\kubelet\pods\a",
        r"C:\var\lib\kubelet\pods\b",
        r"c:/var/lib/kubelet/plugins/mine/../../../../../outside",
        r"C:\var\lib\kubelet\plugins\way out",
        r"C:\var\lib\kubelet\plugins\way out\precious",
        r"C:\var\lib\kubelet\plugins\inner\precious",
        r"C:\var\lib\kubelet\plugins",
        r"C:\link\d",
        r"C:\var\lib\kubelet-evil",
        PRECIOUS,
        r"C:\var\lib\kubelet",
    ];
    let others = [
        r"\\fileserver\share",
        "//fileserver/share/sub",
        r"FILESERVER\anna",
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
            sim.volume_on(disk)
                .map_or_else(|| "gone".to_owned(), |volume| volume.name())
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

/// Sends one request and checks its response.
async fn call(client: SendRequest<Bytes>, path: &str, message: Vec<u8>) -> SendRequest<Bytes> {
    let mut client = client.ready().await.expect("an open connection");
    let request = Request::post(format!("http://localhost{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("a request");
    let length = u32::try_from(message.len()).expect("short").to_be_bytes();
    let body = [&[0], &length[..], &message].concat();
    let response = async {
        let (response, mut stream) = client
            .send_request(request, false)
            .expect("an open connection");
        stream
            .send_data(body.into(), true)
            .expect("enough capacity for a message");
        let (head, mut body) = response.await.expect("a response").into_parts();
        let mut messages = Vec::new();
        while let Some(data) = body.data().await {
            let data = data.expect("an open stream");
            body.flow_control()
                .release_capacity(data.len())
                .expect("data that was received");
            messages.extend_from_slice(&data);
        }
        (
            head.headers,
            messages,
            body.trailers()
                .await
                .expect("a stream that ends without an error"),
        )
    };
    let response = tokio::time::timeout(HANG_TIMEOUT, response).await;
    let (head, messages, trailers) =
        response.unwrap_or_else(|_| panic!("{path} was not answered in time"));
    check(path, &head, &messages, trailers.as_ref());
    client
}

fn check(path: &str, head: &HeaderMap, messages: &[u8], trailers: Option<&HeaderMap>) {
    let all = || [Some(head), trailers].into_iter().flatten();
    let statuses: Vec<_> = all()
        .flat_map(|headers| headers.get_all("grpc-status"))
        .collect();
    let [status] = statuses[..] else {
        panic!("{path} has {} statuses", statuses.len())
    };
    let text = all()
        .find_map(|headers| headers.get("grpc-message"))
        .map(|text| String::from_utf8_lossy(text.as_bytes()));
    let text = text.unwrap_or_default();
    if status == "0" {
        let length = messages.get(1..5).map(|length| {
            length
                .iter()
                .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
        });
        assert_eq!(
            length,
            Some(messages.len().wrapping_sub(5)),
            "{path} succeeded without exactly one message"
        );
        return;
    }
    assert!(messages.is_empty(), "{path} failed with a message");
    assert!(!text.is_empty(), "{path} failed without an error text");
    assert!(
        !text.contains("secret-of-anna"),
        "{path} reveals a secret: {text}"
    );
    let undecodable = text.starts_with("failed%20to%20decode");
    assert!(
        status != INTERNAL || undecodable,
        "{path} failed unexpectedly: {text}"
    );
    assert_ne!(status, UNKNOWN, "{path}: {text}");
}

/// A server with in-memory connections.
struct TestServer {
    connect: Vec<Dialer>,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<Unfinished>,
}

impl TestServer {
    fn on(sim: &Sim) -> Self {
        // One is in kubelet's directory and leads out of it; the other is reached through a link.
        let working_dirs = [r"C:\var\lib\kubelet\plugins\inner", r"C:\link"];
        let working_dirs = working_dirs
            .map(|path| HostPath::parse(path).expect("a valid path"))
            .to_vec();
        let config = Config::default().with(|c| c.working_dirs = working_dirs);
        let executor = Arc::new(Executor::new(Arc::new(Node::new(sim.process(), config))));
        let (mut connect, mut endpoints) = (Vec::new(), Vec::new());
        for row in &GROUP_VERSIONS {
            let (dial, endpoint) = memory::endpoint(Location::NamedPipes.address(row.pipe()));
            connect.push(dial);
            endpoints.push(Endpoint::new(EndpointSpec::GroupVersion(row), endpoint));
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let server = Server::new(executor, Limits::default());
            server.serve(endpoints, async { drop(stopped.await) }).await
        });
        Self {
            connect,
            stop,
            serving,
        }
    }

    async fn connect(&self, row: usize) -> SendRequest<Bytes> {
        let client = self.connect[row]
            .connect()
            .expect("the server accepts connections");
        let (client, connection) = h2::client::handshake(client)
            .await
            .expect("the server uses HTTP/2");
        tokio::spawn(async move {
            // An error only means that the connection was closed.
            let _ = connection.await;
        });
        client
    }

    async fn stop(self) -> Unfinished {
        drop(self.stop);
        let stopped = tokio::time::timeout(HANG_TIMEOUT, self.serving).await;
        stopped
            .expect("the server stops in time")
            .expect("the server does not panic")
    }
}
