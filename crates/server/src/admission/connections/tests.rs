//! Which connection is evicted, and which never is.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{Instant, timeout};

use super::*;
use crate::drain::GOAWAY_GRACE;
use std::fmt;
use std::time::Duration;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SILENCE: Duration = Duration::from_mins(2);

fn at_most(open: usize) -> Connections {
    Connections::new(Limits {
        connections: open,
        silence: SILENCE,
        ..Limits::default()
    })
}

fn connect(connections: &Connections) -> (DuplexStream, HeaderFilter<DuplexStream>, Connection) {
    let (client, server) = duplex(1024);
    (
        client,
        HeaderFilter::new(server, SILENCE),
        connections.admit(None),
    )
}

/// Opens a connection and sends its preface.
async fn with_preface(connections: &Connections) -> Connection {
    let (mut client, mut server, mut connection) = connect(connections);
    client.write_all(PREFACE).await.unwrap();
    connection.preface(&mut server).await.unwrap();
    connection
}

async fn never<T: fmt::Debug>(future: impl Future<Output = T>) {
    timeout(SILENCE * 100, future).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_whole_preface_is_closed_after_the_limit() {
    for sent in [&PREFACE[..0], &PREFACE[..23]] {
        let connections = at_most(10);
        let (mut client, mut server, mut connection) = connect(&connections);
        client.write_all(sent).await.unwrap();
        let start = Instant::now();
        let error = connection.preface(&mut server).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
        assert_eq!(error.to_string(), "no HTTP/2 preface received within 120 s");
        assert_eq!(start.elapsed(), SILENCE);
        assert_eq!(
            (
                connections.counts().closed_silent,
                connections.counts().evicted_silent
            ),
            (1, 0)
        );
        drop(connection);
        assert_eq!(connections.open(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_preface_ends_at_once_if_the_client_disconnects_or_the_connection_is_evicted()
 {
    let connections = at_most(1);
    let (client, mut server, mut connection) = connect(&connections);
    drop(client);
    assert_eq!(
        connection.preface(&mut server).await.unwrap_err().kind(),
        io::ErrorKind::UnexpectedEof
    );
    drop(connection);

    let (_client, mut server, mut connection) = connect(&connections);
    let start = Instant::now();
    let (error, _other) = tokio::join!(connection.preface(&mut server), async {
        tokio::task::yield_now().await;
        connections.admit(None)
    });
    assert_eq!(
        (error.unwrap_err().kind(), start.elapsed()),
        (io::ErrorKind::ConnectionAborted, Duration::ZERO)
    );

    let (mut client, mut server, mut late) = connect(&connections);
    client.write_all(PREFACE).await.unwrap();
    let _other = connections.admit(None);
    assert_eq!(
        late.preface(&mut server).await.unwrap_err().kind(),
        io::ErrorKind::ConnectionAborted,
        "too late"
    );
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_preface_leaves_it_for_the_server_to_read() {
    let connections = at_most(1);
    let (mut client, mut server, mut connection) = connect(&connections);
    client.write_all(PREFACE).await.unwrap();
    connection.preface(&mut server).await.unwrap();
    let mut preface = [0; 24];
    server.read_exact(&mut preface).await.unwrap();
    assert_eq!(preface, PREFACE);
    never(connection.evicted()).await;
}

#[tokio::test(start_paused = true)]
async fn the_longest_silent_connection_is_evicted_first() {
    let connections = at_most(3);
    let mut used = with_preface(&connections).await;
    let (_client, mut server, mut oldest) = connect(&connections);
    let _others = [connections.admit(None), connections.admit(None)];
    let error = oldest.preface(&mut server).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no HTTP/2 preface received, and evicted for another connection"
    );
    assert_eq!(connections.counts().silent, 2);
    assert_eq!(connections.open(), 3);
    drop(oldest);
    assert_eq!(connections.open(), 3);
    assert_eq!(connections.counts().evicted_silent, 1);
    never(used.evicted()).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_had_no_call_is_evicted_before_one_that_has() {
    let connections = at_most(2);
    let mut used = with_preface(&connections).await;
    drop(used.handle().begin_call());
    let mut unused = with_preface(&connections).await;
    let mut silent = connections.admit(None);
    unused.evicted().await;
    drop(unused);
    let counts = connections.counts();
    assert_eq!(
        (counts.unused, counts.idle, counts.silent),
        (0, 1, 1),
        "{counts:?}"
    );
    assert_eq!(
        (counts.evicted_idle, counts.evicted_silent),
        (1, 0),
        "{counts:?}"
    );
    never(silent.evicted()).await;
    never(used.evicted()).await;
}

#[tokio::test(start_paused = true)]
async fn the_least_recently_used_idle_connection_is_evicted_first() {
    let connections = at_most(3);
    let mut all = [
        with_preface(&connections).await,
        with_preface(&connections).await,
        with_preface(&connections).await,
    ];
    for index in [1, 0, 2, 1, 0] {
        drop(all[index].handle().begin_call());
    }
    let _more = connections.admit(None);
    all[2].evicted().await;
    for kept in &mut all[..2] {
        never(kept.evicted()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_dials_evicts_only_connections_of_its_own_process() {
    let connections = at_most(16);
    let (mut used, mut newcomer) = (connections.admit(Some(1)), connections.admit(Some(1)));
    drop(used.handle().begin_call());
    let _flood: Vec<_> = (0..100).map(|_| connections.admit(Some(2))).collect();
    never(used.evicted()).await;
    never(newcomer.evicted()).await;
    assert_eq!(connections.counts().evicted_silent, 86);
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_a_call_in_flight_is_never_evicted() {
    let connections = at_most(2);
    let (mut one, mut other) = (
        with_preface(&connections).await,
        with_preface(&connections).await,
    );
    let calls = [
        one.handle().begin_call().unwrap(),
        one.handle().begin_call().unwrap(),
        other.handle().begin_call().unwrap(),
    ];
    let mut newest = with_preface(&connections).await;
    assert_eq!(connections.open(), 3, "a new connection is never refused");
    assert_eq!(
        newest.handle().begin_call().unwrap_err().message(),
        "too many connections have calls in flight; try again later"
    );
    assert_eq!(connections.counts().refused_connections_busy, 1);
    let _next = with_preface(&connections).await;
    newest.evicted().await;
    assert_eq!(connections.open(), 3, "the connection before it is evicted");
    for busy in [&mut one, &mut other] {
        never(busy.evicted()).await;
    }
    let [first, second, third] = calls;
    drop((first, third));
    let _last = connections.admit(None);
    other.evicted().await;
    never(one.evicted()).await;
    drop(second);
    assert_eq!(connections.counts().busy, 0);
}

#[tokio::test(start_paused = true)]
async fn a_connection_waits_for_a_call_that_arrives_after_its_eviction() {
    let connections = at_most(1);
    let mut leaving = with_preface(&connections).await;
    let _other = connections.admit(None);
    leaving.evicted().await;
    leaving.no_calls().await;
    let call = leaving.handle().begin_call().unwrap();
    never(leaving.no_calls()).await;
    drop(call);
    leaving.no_calls().await;
    drop(leaving);
    assert_eq!((connections.counts().leaving, connections.open()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_begins_after_the_grace_period_is_refused() {
    let connections = at_most(1);
    let leaving = with_preface(&connections).await;
    let _other = connections.admit(None);
    sleep(GOAWAY_GRACE.mul_f32(0.9)).await;
    let call = leaving.handle().begin_call().unwrap();
    sleep(GOAWAY_GRACE.mul_f32(0.2)).await;
    let refused = leaving.handle().begin_call().unwrap_err();
    assert!(refused.message().ends_with("connect again"), "{refused}");
    assert_eq!(
        (
            leaving.calls(),
            connections.counts().refused_connections_busy
        ),
        (1, 1)
    );
    drop(call);
    leaving.no_calls().await;
}

#[tokio::test(start_paused = true)]
async fn an_evicted_connection_counts_again_if_a_call_arrives_on_it() {
    let connections = at_most(3);
    let leaving = with_preface(&connections).await;
    let idle = [
        with_preface(&connections).await,
        with_preface(&connections).await,
        with_preface(&connections).await,
    ];
    assert_eq!((connections.open(), connections.counts().leaving), (3, 1));
    let call = leaving.handle().begin_call().unwrap();
    assert_eq!((connections.open(), connections.counts().leaving), (4, 0));
    let newest = connections.admit(None);
    assert_eq!(
        (connections.open(), connections.counts().leaving),
        (3, 2),
        "two others make room"
    );
    drop((call, idle));
    assert_eq!(
        (connections.open(), connections.counts().leaving),
        (2, 0),
        "it counts until it closes"
    );
    drop((leaving, newest));
    assert_eq!(connections.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn at_the_limit_of_leaving_connections_the_first_of_them_loses_its_grace_period() {
    let connections = at_most(1);
    let mut all = Vec::new();
    for _ in 0..MAX_LEAVING + 3 {
        all.push(with_preface(&connections).await);
    }
    assert_eq!(
        (connections.open(), connections.counts().leaving),
        (1, MAX_LEAVING + 2)
    );
    for revoked in &mut all[..2] {
        revoked.evicted().await.unwrap().revoked().await;
    }
    never(all[2].evicted().await.unwrap().revoked()).await;
    all.clear();
    assert_eq!(
        connections.counts(),
        ConnectionCounts {
            accepted: 67,
            evicted_idle: 66,
            ..ConnectionCounts::default()
        }
    );
}
