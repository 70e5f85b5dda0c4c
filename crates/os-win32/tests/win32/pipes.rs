//! Named pipes.

use std::fs::OpenOptions;
use std::io;
use std::os::windows::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use csi_proxy_os_win32::pipe::{self, Listener, Owner, Security};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeServer};
use tokio::time::timeout;
use transport::address::Location;
use transport::listener::ClientStream;
use windows_sys::Win32::Foundation::{GENERIC_READ, GENERIC_WRITE};
use windows_sys::Win32::Storage::FileSystem::{READ_CONTROL, WRITE_DAC, WRITE_OWNER};

use crate::skip::skipped_by_wine;

const TIMEOUT: Duration = Duration::from_secs(30);

fn path(test: &str) -> String {
    format!(r"\\.\pipe\csi-proxy-test-{test}-{}", std::process::id())
}

/// Returns the spelling that deployed clients use.
fn doubled(path: &str) -> String {
    format!(r"\\{}", path[2..].replace('\\', r"\\"))
}

fn listener(path: &str) -> Listener {
    Listener::bind(path, Arc::new(Security::administrators().unwrap())).unwrap()
}

/// Answers each byte with the next one, until the client disconnects.
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

/// Connects to the pipe, waiting up to `limit` while all its instances are connected.
async fn connect(path: &str, limit: Duration) -> io::Result<ClientStream> {
    let name = path.strip_prefix(r"\\.\pipe\").expect("the path of a pipe");
    let address = Location::NamedPipes.address(name);
    timeout(limit, transport::listener::connect(&address)).await?
}

async fn ask(path: &str, byte: u8) -> io::Result<u8> {
    let mut client = connect(path, TIMEOUT).await?;
    client.write_u8(byte).await?;
    client.read_u8().await
}

#[tokio::test]
async fn a_client_may_use_either_spelling_of_the_path() {
    let path = path("spelling");
    serve(listener(&path));
    assert_eq!(ask(&path, 1).await.unwrap(), 2);
    // Clients pass this spelling to Windows unchanged.
    let mut client = loop {
        match ClientOptions::new().open(doubled(&path)) {
            Ok(client) => break client,
            Err(error) if error.raw_os_error() == Some(231) => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Err(error) => panic!("{error}"),
        }
    };
    client.write_u8(3).await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), 4);
}

#[tokio::test]
async fn a_pipe_that_no_process_serves_is_not_found() {
    let error = connect(&path("not-served"), TIMEOUT).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[tokio::test]
async fn contract_03_another_instance_is_always_ready() {
    let path = path("next");
    let mut listener = listener(&path);
    let mut held = Vec::new();
    for _ in 0..20 {
        // No server task runs, so each client connects to the instance that the last accept
        // created.
        let client = connect(&path, Duration::ZERO).await.unwrap();
        held.push((client, listener.accept().await.unwrap()));
    }
}

#[tokio::test]
async fn a_client_waits_while_the_only_instance_is_connected() {
    let path = path("busy");
    let mut listener = listener(&path);
    let _first = connect(&path, Duration::ZERO).await.unwrap();
    let error = connect(&path, Duration::from_millis(50)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let (second, accepted) = tokio::join!(connect(&path, TIMEOUT), listener.accept());
    second.unwrap();
    accepted.unwrap();
}

#[tokio::test]
async fn a_client_that_disconnects_before_it_is_accepted_does_not_stop_the_listener() {
    let path = path("gone");
    let mut listener = listener(&path);
    drop(connect(&path, Duration::ZERO).await.unwrap());
    let mut gone = listener.accept().await.unwrap();
    assert!(gone.read_u8().await.is_err());
    serve(listener);
    assert_eq!(ask(&path, 1).await.unwrap(), 2);
}

#[tokio::test]
async fn an_accept_that_is_cancelled_loses_no_client() {
    let path = path("cancelled");
    let mut listener = listener(&path);
    assert!(
        timeout(Duration::from_millis(20), listener.accept())
            .await
            .is_err()
    );
    let mut client = connect(&path, Duration::ZERO).await.unwrap();
    tokio::spawn(count_up(listener.accept().await.unwrap()));
    client.write_u8(5).await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), 6);
}

#[tokio::test]
async fn contract_04_a_name_in_use_is_refused_and_its_owner_is_returned() {
    let path = path("taken");
    let held = listener(&path);
    let owner = pipe::owner(&path).unwrap();
    assert_eq!(
        owner,
        Owner {
            process: std::process::id(),
            program: Some(std::env::current_exe().unwrap())
        }
    );
    match Listener::bind(&path, Arc::new(Security::administrators().unwrap())) {
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        Ok(_) => skipped_by_wine("FILE_FLAG_FIRST_PIPE_INSTANCE is not enforced"),
    }
    drop(held);
}

#[tokio::test]
async fn a_name_is_free_again_after_its_listener_is_dropped() {
    let path = path("free");
    drop(listener(&path));
    assert_eq!(
        pipe::owner(&path).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    drop(listener(&path));
}

#[tokio::test]
async fn a_client_may_not_change_the_descriptor() {
    let path = path("change");
    let mut listener = listener(&path);
    let open = |access| OpenOptions::new().access_mode(access).open(&path);
    // The access of clients, and that to read the descriptor. Each time, the listener creates
    // another instance.
    for access in [GENERIC_READ | GENERIC_WRITE, GENERIC_READ | READ_CONTROL] {
        open(access).unwrap();
        listener.accept().await.unwrap();
    }
    for right in [WRITE_DAC, WRITE_OWNER] {
        match open(GENERIC_READ | GENERIC_WRITE | right) {
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{right:x}"),
            Ok(_) => {
                return skipped_by_wine(
                    "a pipe opens with rights that its descriptor does not grant",
                );
            }
        }
    }
}
