//! Named pipes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use csi_proxy_os_win32::pipe::{self, Listener, Owner, Security};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeServer};

use crate::scratch::skipped_by_wine;

const PATIENCE: Duration = Duration::from_secs(30);

fn path(test: &str) -> String {
    format!(r"\\.\pipe\csi-proxy-test-{test}-{}", std::process::id())
}

/// The spelling that the clients in the field have.
fn doubled(path: &str) -> String {
    format!(r"\\{}", path[2..].replace('\\', r"\\"))
}

fn listener(path: &str) -> Listener {
    Listener::bind(path, Arc::new(Security::administrators().unwrap())).unwrap()
}

/// Answers each byte with the next one, until the client goes.
async fn count_up(mut server: NamedPipeServer) -> io::Result<()> {
    while let Ok(byte) = server.read_u8().await {
        server.write_u8(byte + 1).await?;
    }
    Ok(())
}

fn serve(mut listener: Listener) {
    tokio::spawn(async move {
        loop {
            tokio::spawn(count_up(listener.accept().await.unwrap()));
        }
    });
}

async fn ask(path: &str, byte: u8) -> io::Result<u8> {
    let mut client = pipe::connect(path, PATIENCE).await?;
    client.write_u8(byte).await?;
    client.read_u8().await
}

#[tokio::test]
async fn a_client_may_use_either_spelling_of_the_path() {
    let path = path("spelling");
    serve(listener(&doubled(&path)));
    assert_eq!(ask(&path, 1).await.unwrap(), 2);
    assert_eq!(ask(&doubled(&path), 3).await.unwrap(), 4);
    // As clients in other languages open it: the path goes to the system as it is written.
    ClientOptions::new().open(&path).unwrap();
    loop {
        match ClientOptions::new().open(doubled(&path)) {
            Ok(_) => break,
            Err(error) if error.raw_os_error() == Some(231) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_pipe_that_nobody_serves_is_not_found() {
    let error = pipe::connect(&path("nobody"), PATIENCE).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[tokio::test]
async fn contract_03_there_is_always_another_instance_waiting() {
    let path = path("next");
    let mut listener = listener(&path);
    let mut held = Vec::new();
    for _ in 0..20 {
        // Without a server task: each connect finds the instance that the last accept has left behind.
        let client = pipe::connect(&path, Duration::ZERO).await.unwrap();
        held.push((client, listener.accept().await.unwrap()));
    }
}

#[tokio::test]
async fn while_the_only_instance_is_taken_a_client_waits_as_long_as_it_has_patience() {
    let path = path("busy");
    let mut listener = listener(&path);
    let _first = pipe::connect(&path, Duration::ZERO).await.unwrap();
    let error = pipe::connect(&path, Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.raw_os_error(), Some(231));
    let (second, accepted) = tokio::join!(pipe::connect(&path, PATIENCE), listener.accept());
    second.unwrap();
    accepted.unwrap();
}

#[tokio::test]
async fn clients_that_say_nothing_are_in_nobodys_way() {
    let path = path("silent");
    serve(listener(&path));
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(pipe::connect(&path, PATIENCE).await.unwrap());
    }
    assert_eq!(ask(&path, 7).await.unwrap(), 8);
    drop(silent);
    assert_eq!(ask(&path, 8).await.unwrap(), 9);
}

#[tokio::test]
async fn a_client_that_goes_before_it_is_accepted_costs_nothing() {
    let path = path("gone");
    let mut listener = listener(&path);
    drop(pipe::connect(&path, Duration::ZERO).await.unwrap());
    let mut gone = listener.accept().await.unwrap();
    assert!(gone.read_u8().await.is_err());
    serve(listener);
    assert_eq!(ask(&path, 1).await.unwrap(), 2);
}

#[tokio::test]
async fn an_accept_that_was_given_up_loses_no_client() {
    let path = path("cancelled");
    let mut listener = listener(&path);
    assert!(tokio::time::timeout(Duration::from_millis(20), listener.accept()).await.is_err());
    let mut client = pipe::connect(&path, Duration::ZERO).await.unwrap();
    tokio::spawn(count_up(listener.accept().await.unwrap()));
    client.write_u8(5).await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), 6);
}

#[tokio::test]
async fn contract_04_a_name_that_is_taken_is_refused_and_its_owner_is_known() {
    let path = path("taken");
    let held = listener(&path);
    let owner = pipe::owner(&path).unwrap();
    assert_eq!(owner, Owner { process: std::process::id(), program: Some(std::env::current_exe().unwrap()) });
    match Listener::bind(&path, Arc::new(Security::administrators().unwrap())) {
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        Ok(_) => skipped_by_wine("FILE_FLAG_FIRST_PIPE_INSTANCE does not keep others from the name"),
    }
    drop(held);
}

#[tokio::test]
async fn a_name_is_free_again_when_its_listener_is_gone() {
    let path = path("free");
    drop(listener(&path));
    assert_eq!(pipe::owner(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    drop(listener(&path));
}
