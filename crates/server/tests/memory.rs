//! How much memory connections hold, whatever was sent on them. This is a test binary by itself
//! because it counts the allocations of its whole process.
#![cfg(unix)]

#[path = "sockets/daemon.rs"]
mod daemon;
#[path = "sockets/frames.rs"]
mod frames;

use daemon::{Daemon, until};
use frames::{CONTINUATION, Client, DATA, HEADERS, frame};
use os::MAX_OBJECTS;
use peak_alloc::PeakAlloc;
use server::Limits;
use storage_ops::{AddTargetPortal, Config, DiscoverTargetPortal, Node, PoolKind, TargetPortal};
use tokio::io::AsyncWriteExt as _;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const PIPE: &str = "csi-proxy-disk-v1";
const LIST_DISK_IDS: &str = "/v1.Disk/ListDiskIDs";
const CALLS: &str = r#"grpc_code="OK",grpc_method="ListDiskIDs",grpc_service="v1.Disk""#;
const KIB: usize = 1024;

/// Maximum memory of a connection on which one call has been made, and of one on which anything has
/// been sent.
const ORDINARY: usize = 42 * KIB;
const ANY: usize = 400 * KIB;
/// Maximum memory of a connection after any number of ordinary calls, one after the other. Of
/// these, 28 KiB are the buffers that h2 allocates for every connection.
const OFTEN: usize = 45 * KIB;
/// Maximum memory of a connection on which 16 calls were open at once, the most that keep an idle
/// connection open.
const SIXTEEN: usize = 64 * KIB;
/// Maximum memory of a connection with an unfinished header block of 32 KiB.
const UNFINISHED: usize = ORDINARY + 32 * KIB;

/// Ends calls that were begun, with an empty message.
async fn end(client: &mut Client, streams: &[u32]) {
    for stream in streams {
        client.write(DATA, 0x1, *stream, &[0; 5]).await;
    }
}

/// Reads the responses of calls.
async fn read_responses(client: &mut Client, streams: &[u32]) {
    let mut ended = 0;
    while ended < streams.len() {
        let frame = client.read().await;
        assert!(
            frame.kind != HEADERS || !frame.payload.is_empty(),
            "a response has headers"
        );
        ended += usize::from(matches!(frame.kind, HEADERS | DATA) && frame.flags & 0x1 != 0);
    }
}

/// Returns how many calls have been handled.
fn handled(daemon: &Daemon) -> usize {
    let metrics = daemon.server.metrics().render();
    let mut lines = metrics
        .lines()
        .filter(|line| line.starts_with("grpc_server_handled_total") && line.contains(CALLS));
    lines.next().map_or(0, |line| {
        line.rsplit(' ')
            .next()
            .and_then(|count| count.parse().ok())
            .expect("a number")
    })
}

/// Opens a connection and makes it as large as it can become: with as many calls at once as it may
/// have, a full header table and a large header block.
async fn grown(daemon: &Daemon) -> Client {
    let handled = handled(daemon);
    let mut client = Client::at(daemon, PIPE).await;
    // The server holds all responses at the same time.
    client.set_window(0).await;
    let streams = usize::try_from(Limits::default().streams).expect("few streams");
    let mut open = Vec::new();
    for _ in 0..streams {
        open.push(client.begin(LIST_DISK_IDS).await);
    }
    until(|| daemon.server.connections().counts().calls == streams).await;
    end(&mut client, &open).await;
    until(|| self::handled(daemon) == handled + streams).await;
    client.set_window(1 << 16).await;
    read_responses(&mut client, &open).await;
    for _ in 0..150 {
        let (stream, mut head) = client.head(LIST_DISK_IDS, b"x", "1H");
        // A field that is added to the header table.
        head.extend(b"\x40\x02xy\x01v");
        client.write(HEADERS, 0x4, stream, &head).await;
        end(&mut client, &[stream]).await;
        read_responses(&mut client, &[stream]).await;
    }
    until(|| daemon.server.connections().counts().calls == 0).await;
    client
}

/// Opens a connection with as many calls at once as it may have, whose frames arrive in one write.
async fn in_one_write(daemon: &Daemon) -> Client {
    let mut client = Client::at(daemon, PIPE).await;
    client.set_window(0).await;
    // An unknown field, of 510 octets in all.
    let mut message = vec![0, 0, 0, 1, 0xf9, 0x7a, 0xf6, 0x03];
    message.resize(510, 0);
    let (mut heads, mut bodies, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..Limits::default().streams {
        let (stream, head) = client.head(LIST_DISK_IDS, b"x", "1H");
        heads.extend(frame(HEADERS, 0x4, stream, &head));
        bodies.extend(frame(DATA, 0, stream, &message[..255]));
        bodies.extend(frame(DATA, 0x1, stream, &message[255..]));
        open.push(stream);
    }
    heads.extend(bodies);
    client
        .stream
        .write_all(&heads)
        .await
        .expect("the server reads");
    until(|| daemon.server.connections().counts().transferring() == open.len()).await;
    client.set_window(1 << 16).await;
    read_responses(&mut client, &open).await;
    until(|| daemon.server.connections().counts().calls == 0).await;
    client
}

/// Opens a connection and sends requests that HTTP/2 resets, and reads none of the resets.
async fn with_resets(daemon: &Daemon) -> Client {
    let mut client = used_once(daemon).await;
    for _ in 0..900 {
        let (stream, _) = client.head(LIST_DISK_IDS, b"x", "1H");
        // Only `:method`.
        client.write(HEADERS, 0x5, stream, &[0x83]).await;
    }
    client
}

/// Opens a connection and sends requests with long headers that are refused, and reads none of the
/// errors.
async fn with_errors(daemon: &Daemon) -> Client {
    let mut client = Client::at(daemon, PIPE).await;
    for name in ["content-type", "grpc-encoding"] {
        for _ in 0..64 {
            let (stream, mut head) = client.head(LIST_DISK_IDS, b"x", "1H");
            head.extend([0, u8::try_from(name.len()).expect("short")]);
            head.extend(name.as_bytes());
            // 15,000 octets.
            head.extend(b"\x7f\x99\x74");
            head.resize(head.len() + 15_000, 0xff);
            client.write(HEADERS, 0x4, stream, &head).await;
            end(&mut client, &[stream]).await;
        }
    }
    client
}

/// Opens a connection that keeps as many calls as are kept, and no more.
async fn used_by_sixteen(daemon: &Daemon) -> Client {
    let mut client = Client::at(daemon, PIPE).await;
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(client.begin(LIST_DISK_IDS).await);
    }
    until(|| daemon.server.connections().counts().calls == 16).await;
    end(&mut client, &open).await;
    read_responses(&mut client, &open).await;
    until(|| daemon.server.connections().counts().calls == 0).await;
    client
}

async fn used_once(daemon: &Daemon) -> Client {
    let mut client = Client::at(daemon, PIPE).await;
    client
        .call(LIST_DISK_IDS, b"x")
        .await
        .expect("it is answered");
    until(|| daemon.server.connections().counts().calls == 0).await;
    client
}

/// Opens a connection and makes many calls on it, each with a deadline of its own.
async fn used_often(daemon: &Daemon) -> Client {
    let mut client = used_once(daemon).await;
    for call in 0..300 {
        let (stream, mut head) = client.head(LIST_DISK_IDS, b"x", "1H");
        if call == 0 {
            // Uses the header table as the server allows it.
            head.splice(0..0, [0x3f, 0xe1, 0x07]);
        }
        head.extend(b"\x40\x0cgrpc-timeout\x06");
        head.extend(format!("{:05}m", 99_999 - call).as_bytes());
        client.write(HEADERS, 0x4, stream, &head).await;
        end(&mut client, &[stream]).await;
        read_responses(&mut client, &[stream]).await;
    }
    until(|| daemon.server.connections().counts().calls == 0).await;
    client
}

/// Opens a connection that fills the header table with paths, each in a large header block of its
/// own.
async fn with_paths(daemon: &Daemon) -> Client {
    let mut client = used_once(daemon).await;
    for call in 0..120_u8 {
        let (stream, mut block) = client.head(LIST_DISK_IDS, b"x", "1H");
        // In place of the path, one that is added to the header table.
        let path = block
            .windows(5)
            .position(|name| name == b":path")
            .expect("a path")
            - 2;
        block.splice(
            path..path + 8 + LIST_DISK_IDS.len(),
            [0x44, 2, b'/', b'!' + call % 90],
        );
        // A field that fills the block.
        block.extend(b"\x00\x01z\x7f\x99\xf1\x01");
        block.resize(block.len() + 31_000, b'y');
        // A call without a body, in two frames.
        let (first, rest) = block.split_at(1 << 14);
        client.write(HEADERS, 0x1, stream, first).await;
        client.write(CONTINUATION, 0x4, stream, rest).await;
        read_responses(&mut client, &[stream]).await;
    }
    until(|| daemon.server.connections().counts().calls == 0).await;
    client
}

async fn unfinished(daemon: &Daemon) -> Client {
    let mut client = used_once(daemon).await;
    client.begin_block(32 * KIB - 100).await;
    client
}

/// Asserts how much memory `COUNT` connections hold.
async fn assert_held(
    what: &str,
    maximum: usize,
    minimum: usize,
    open: impl AsyncFn(&Daemon) -> Client,
) {
    const COUNT: usize = 8;
    let sim = os_sim::node().build();
    let daemon = Daemon::on(&sim);
    // What the first connection allocates for all.
    drop(grown(&daemon).await);
    until(|| daemon.server.connections().open() == 0).await;
    let before = MEMORY.current_usage();
    let held = || MEMORY.current_usage().saturating_sub(before) / COUNT;
    let mut clients = Vec::new();
    for _ in 0..COUNT {
        clients.push(open(&daemon).await);
    }
    until(|| held() >= minimum).await;
    println!("{what}: {} bytes", held());
    assert!(held() <= maximum, "{what}: {} bytes each", held());
    drop(clients);
    until(|| daemon.server.connections().open() == 0).await;
    assert_eq!(daemon.executor.running(), 0);
    let (serving, folder) = daemon.stop();
    serving.await.expect("no panic");
    drop(folder);
}

/// Asserts how much memory is held when many connections have grown and only few may stay open.
async fn assert_total() {
    const OPEN: usize = 8;
    let sim = os_sim::node().build();
    let limits = Limits {
        connections: OPEN,
        ..Limits::default()
    };
    let daemon = Daemon::limited(limits, &sim);
    drop(grown(&daemon).await);
    until(|| daemon.server.connections().open() == 0).await;
    let before = MEMORY.current_usage();
    let mut clients = Vec::new();
    for _ in 0..3 * OPEN {
        clients.push(grown(&daemon).await);
        assert!(daemon.server.connections().open() <= OPEN);
    }
    until(|| daemon.server.connections().counts().leaving == 0).await;
    let held = MEMORY.current_usage().saturating_sub(before);
    println!("all: {held} bytes");
    assert!(held <= OPEN * ANY, "{held} bytes");
    assert!(
        held >= OPEN * ORDINARY,
        "the connections that are left have grown: {held} bytes"
    );
}

/// Asserts how much memory an operation takes that lists as many objects as WMI returns.
fn assert_longest_list() {
    let portal = TargetPortal {
        address: "10.0.0.10".to_owned(),
        port: 3260,
    };
    let node = os_sim::node()
        .service("MSiSCSI", "iSCSI")
        .running()
        .iscsi_portal("10.0.0.10", 3260);
    // Names of the largest length, 223 octets.
    let sim = (0..MAX_OBJECTS)
        .fold(node, |node, number| {
            node.target(&format!("iqn.2026-01.test:{number:0206}"))
        })
        .build();
    let node = Node::new(sim.process(), Config::default());
    node.run(&AddTargetPortal {
        portal: portal.clone(),
    })
    .expect("it is added");
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let found = node.run(&DiscoverTargetPortal { portal });
    let held = MEMORY.peak_usage() - before;
    println!("the longest list: {held} bytes");
    assert_eq!(found.expect("the targets").len(), MAX_OBJECTS);
    assert!(held <= PoolKind::Iscsi.operation_memory(), "{held} bytes");
}

#[tokio::test]
async fn the_memory_of_connections_is_bounded_whatever_was_sent_on_them() {
    assert_held("used once", ORDINARY, 1, used_once).await;
    assert_held("used often", OFTEN, 1, used_often).await;
    assert_held("grown", ANY, 1, grown).await;
    assert_held("sixteen calls at once", SIXTEEN, 1, used_by_sixteen).await;
    assert_held("with calls in one write", ANY, 1, in_one_write).await;
    assert_held("with resets that it does not read", ANY, 1, with_resets).await;
    assert_held("with errors that it does not read", ANY, 1, with_errors).await;
    assert_held("with paths in its header table", ANY, 1, with_paths).await;
    assert_held(
        "with an unfinished header block",
        UNFINISHED,
        32 * KIB,
        unfinished,
    )
    .await;
    assert_total().await;
    assert_longest_list();
}
