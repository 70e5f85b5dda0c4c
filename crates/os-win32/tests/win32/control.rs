//! Control codes, sent to a device that every system has: the named pipe file system.
//!
//! What matters for disks is what is shown here: bytes arrive, bytes come back, what did not fit is an error that
//! leaves the rest readable, and the access in a code is checked.

use std::sync::Arc;
use std::time::Duration;

use csi_proxy_os_win32::Windows;
use csi_proxy_os_win32::pipe::{Listener, Security};
use os::abi::ControlCode;
use os::{Access, Handle, NtPath, Open, Options, Os as _, OsError};
use tokio::io::AsyncWriteExt as _;
use tokio::net::windows::named_pipe::{NamedPipeServer, PipeMode, ServerOptions};

use crate::scratch::wide;

/// Answers what the pipe holds, without taking it: 16 bytes about it, then the data.
const PEEK: ControlCode = ControlCode(0x0011_400c);
const ABOUT: usize = 16;

/// Waits until a pipe has an instance to connect to.
const WAIT: ControlCode = ControlCode(0x0011_0018);

fn name(test: &str) -> String {
    format!("csi-proxy-test-control-{test}-{}", std::process::id())
}

fn listener(name: &str) -> Listener {
    Listener::bind(&format!(r"\\.\pipe\{name}"), Arc::new(Security::administrators().unwrap())).unwrap()
}

/// A client's handle of a pipe that holds `message` for it, and the server's end.
async fn holding(test: &str, message: &[u8], access: Access) -> (Box<dyn Handle>, NamedPipeServer) {
    let path = format!(r"\\.\pipe\{}", name(test));
    let mut server = ServerOptions::new().pipe_mode(PipeMode::Message).create(&path).unwrap();
    let client =
        Windows::new().open(&NtPath::from_win32(&wide(&path)), &Open::existing(access, Options::empty())).unwrap();
    server.connect().await.unwrap();
    server.write_all(message).await.unwrap();
    (client, server)
}

#[tokio::test]
async fn the_answer_comes_back_with_its_length() {
    let (client, _server) = holding("answer", b"hello world", Access::GENERIC_READ).await;
    let mut output = [0xaa; 64];
    assert_eq!(client.control(PEEK, &[], &mut output), Ok(ABOUT + 11));
    assert_eq!(&output[ABOUT..ABOUT + 11], b"hello world");
    assert!(output[ABOUT + 11..].iter().all(|&byte| byte == 0xaa), "no more than that is written");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_an_error_and_its_begin_is_there() {
    let (client, _server) = holding("overflow", b"hello world", Access::GENERIC_READ).await;
    for misaligned in 0..8 {
        let mut output = [0; ABOUT + 4 + 8];
        let output = &mut output[misaligned..][..ABOUT + 4];
        assert_eq!(client.control(PEEK, &[], output), Err(OsError::MORE_DATA));
        assert_eq!(&output[ABOUT..], b"hell");
    }
}

#[tokio::test]
async fn the_access_in_a_code_is_checked() {
    let (client, _server) = holding("access", b"hello world", Access::GENERIC_WRITE).await;
    assert_eq!(client.control(PEEK, &[], &mut [0; 64]), Err(OsError::ACCESS_DENIED));
}

/// What `WAIT` takes: how long, in units of -100 ns, and the pipe's name.
fn wait_for(name: &str, patience: Duration) -> Vec<u8> {
    let ticks = i64::try_from(patience.as_nanos() / 100).unwrap();
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut input = (-ticks).to_le_bytes().to_vec();
    input.extend(u32::try_from(name.len()).unwrap().to_le_bytes());
    input.extend([1, 0]); // the time is given; padding
    input.extend(name);
    input
}

#[tokio::test]
async fn the_question_arrives() {
    let pipes = NtPath::from_win32(&wide(r"\\.\pipe\"));
    let pipes = Windows::new().open(&pipes, &Open::existing(Access::READ_ATTRIBUTES, Options::empty())).unwrap();
    let name = name("question");
    let ask = |name: &str| pipes.control(WAIT, &wait_for(name, Duration::from_millis(50)), &mut []);
    assert_eq!(ask(&name), Err(OsError::FILE_NOT_FOUND));
    let _listener = listener(&name);
    assert_eq!(ask(&name), Ok(0));
    let path = NtPath::from_win32(&wide(&format!(r"\\.\pipe\{name}")));
    let _client = Windows::new().open(&path, &Open::existing(Access::GENERIC_READ, Options::empty())).unwrap();
    assert_eq!(ask(&name), Err(OsError::SEM_TIMEOUT), "its one instance is taken");
}
