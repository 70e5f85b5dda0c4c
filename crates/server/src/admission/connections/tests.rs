//! Which connection makes room, and which never does.

use std::future::Future;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{Instant, timeout};

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SILENCE: Duration = Duration::from_mins(2);

fn room_for(open: usize) -> Connections {
    Connections::new(Limits { open, silence: SILENCE, ..Limits::default() })
}

fn connect(connections: &Connections) -> (DuplexStream, AuthorityFilter<DuplexStream>, Connection) {
    let (client, server) = duplex(1024);
    (client, AuthorityFilter::new(server), connections.admit())
}

/// A connection that has spoken.
async fn spoken(connections: &Connections) -> Connection {
    let (mut client, mut server, mut connection) = connect(connections);
    client.write_all(PREFACE).await.unwrap();
    connection.preface(&mut server).await.unwrap();
    connection
}

async fn stays<T: fmt::Debug>(future: impl Future<Output = T>) {
    timeout(SILENCE * 100, future).await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_when_its_time_is_over() {
    let connections = room_for(10);
    let (_client, mut server, mut connection) = connect(&connections);
    let start = Instant::now();
    let error = connection.preface(&mut server).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    assert_eq!(error.to_string(), "the client said nothing for 120 s");
    assert_eq!(start.elapsed().as_secs(), SILENCE.as_secs());
    assert_eq!((connections.counts().closed_silent, connections.counts().made_room_silent), (1, 0));
    drop(connection);
    assert_eq!(connections.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_the_client_said_is_there_to_be_read() {
    let connections = room_for(1);
    let (mut client, mut server, mut connection) = connect(&connections);
    client.write_all(PREFACE).await.unwrap();
    connection.preface(&mut server).await.unwrap();
    let mut preface = [0; 24];
    server.read_exact(&mut preface).await.unwrap();
    assert_eq!(preface, PREFACE);
    stays(connection.make_room()).await;
}

#[tokio::test(start_paused = true)]
async fn half_a_preface_is_silence() {
    let connections = room_for(10);
    let (mut client, mut server, mut connection) = connect(&connections);
    client.write_all(&PREFACE[..23]).await.unwrap();
    assert_eq!(connection.preface(&mut server).await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_without_a_word_ends_the_wait() {
    let connections = room_for(10);
    let (client, mut server, mut connection) = connect(&connections);
    drop(client);
    assert_eq!(connection.preface(&mut server).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test(start_paused = true)]
async fn the_connection_silent_longest_makes_room() {
    let connections = room_for(3);
    let mut used = spoken(&connections).await;
    let (_client, mut server, mut oldest) = connect(&connections);
    let younger = connections.admit();
    let newest = connections.admit();
    let error = oldest.preface(&mut server).await.unwrap_err();
    assert_eq!(error.to_string(), "the client said nothing, and another needed the room");
    assert_eq!(connections.silent(), [younger.id(), newest.id()]);
    assert_eq!(connections.open(), 3);
    drop(oldest);
    assert_eq!(connections.open(), 3);
    assert_eq!(connections.counts().made_room_silent, 1);
    stays(used.make_room()).await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_client_is_told_when_room_is_needed() {
    let connections = room_for(1);
    let (_client, mut server, mut connection) = connect(&connections);
    let waiting = tokio::spawn(async move { connection.preface(&mut server).await.unwrap_err().kind() });
    tokio::task::yield_now().await;
    let start = Instant::now();
    let _other = connections.admit();
    assert_eq!(waiting.await.unwrap(), io::ErrorKind::ConnectionAborted);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn speaking_comes_too_late_for_one_that_was_told_to_go() {
    let connections = room_for(1);
    let (mut client, mut server, mut connection) = connect(&connections);
    client.write_all(PREFACE).await.unwrap();
    let _other = connections.admit();
    assert_eq!(connection.preface(&mut server).await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
}

#[tokio::test(start_paused = true)]
async fn one_that_nobody_has_called_on_goes_before_one_that_somebody_has() {
    let connections = room_for(2);
    let mut used = spoken(&connections).await;
    drop(used.caller().call());
    let mut unused = spoken(&connections).await;
    let mut silent = connections.admit();
    unused.make_room().await;
    drop(unused);
    let counts = connections.counts();
    assert_eq!((counts.unused, counts.idle, counts.silent), (0, 1, 1), "{counts:?}");
    assert_eq!((counts.made_room_idle, counts.made_room_silent), (1, 0), "{counts:?}");
    stays(silent.make_room()).await;
    stays(used.make_room()).await;
}

#[tokio::test(start_paused = true)]
async fn of_idle_ones_the_one_goes_whose_last_call_is_longest_ago() {
    let connections = room_for(3);
    let mut all = [spoken(&connections).await, spoken(&connections).await, spoken(&connections).await];
    for at in [1, 0, 2, 1, 0] {
        drop(all[at].caller().call());
    }
    let _more = (spoken(&connections).await, connections.admit());
    all[2].make_room().await;
    for kept in &mut all[..2] {
        stays(kept.make_room()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_a_call_in_flight_is_never_told_to_go() {
    let connections = room_for(2);
    let (mut one, mut other) = (spoken(&connections).await, spoken(&connections).await);
    let calls = [one.caller().call().unwrap(), one.caller().call().unwrap(), other.caller().call().unwrap()];
    let mut newest = spoken(&connections).await;
    assert_eq!(connections.open(), 3, "a new one is never refused");
    assert_eq!(newest.caller().call().unwrap_err(), Refused::AllBusy);
    assert_eq!(connections.counts().refused_busy, 1);
    let _next = spoken(&connections).await;
    newest.make_room().await;
    assert_eq!(connections.open(), 3, "but the one before it goes");
    for busy in [&mut one, &mut other] {
        stays(busy.make_room()).await;
    }
    let [first, second, third] = calls;
    drop((first, third));
    let _last = connections.admit();
    other.make_room().await;
    stays(one.make_room()).await;
    drop(second);
    assert_eq!(connections.counts().busy, 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_comes_while_its_connection_leaves_is_waited_for() {
    let connections = room_for(1);
    let mut leaving = spoken(&connections).await;
    let _other = connections.admit();
    leaving.make_room().await;
    leaving.quiet().await;
    let call = leaving.caller().call().unwrap();
    stays(leaving.quiet()).await;
    drop(call);
    leaving.quiet().await;
    assert_eq!(connections.counts().leaving, 1);
    drop(leaving);
    assert_eq!((connections.counts().leaving, connections.open()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn where_too_many_take_their_time_to_leave_the_first_of_them_is_hurried() {
    let connections = room_for(1);
    let mut all = Vec::new();
    for _ in 0..LEAVING + 3 {
        all.push(spoken(&connections).await);
    }
    assert_eq!((connections.open(), connections.counts().leaving), (1, LEAVING + 2));
    for hurried in &mut all[..2] {
        hurried.make_room().await.over().await;
    }
    stays(all[2].make_room().await.over()).await;
    all.clear();
    assert_eq!(connections.counts(), Counts { admitted: 67, made_room_idle: 66, ..Counts::default() });
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_connections_stays_within_the_limit_and_the_busy_one_lives() {
    let connections = room_for(10);
    let mut busy = spoken(&connections).await;
    let call = busy.caller().call().unwrap();
    let mut flood = Vec::new();
    for _ in 0..5000 {
        flood.push(spoken(&connections).await);
        assert!(connections.open() <= 10);
    }
    stays(busy.make_room()).await;
    drop((call, flood, busy));
    assert_eq!(connections.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_client_with_many_calls_leaves_some_for_the_others() {
    let connections = Connections::new(Limits { calls: 12, ..Limits::default() });
    let all = [(); 3].map(|()| connections.admit());
    let calls_until_refused = |connection: &Connection| {
        let mut calls = Vec::new();
        while let Ok(call) = connection.caller().call() {
            calls.push(call);
        }
        calls
    };
    let greedy: Vec<_> = all[..2].iter().map(calls_until_refused).collect();
    assert_eq!(greedy.iter().map(Vec::len).collect::<Vec<_>>(), [7, 1]);
    let modest = all[2].caller().call().expect("some are left");
    assert_eq!(all[1].caller().call().unwrap_err(), Refused::TooManyCalls);
    assert_eq!((connections.counts().calls, connections.counts().refused_calls), (9, 3));
    drop((greedy, modest));
    assert_eq!((connections.counts().calls, connections.counts().busy), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlives_its_connection_is_counted_until_its_end() {
    let connections = room_for(2);
    let connection = spoken(&connections).await;
    let call = connection.caller().call().unwrap();
    let caller = connection.caller().clone();
    drop(connection);
    assert_eq!((connections.counts().busy, connections.counts().calls, connections.open()), (0, 1, 0));
    caller.call().unwrap_err();
    drop(call);
    assert_eq!(connections.counts().calls, 0);
}
