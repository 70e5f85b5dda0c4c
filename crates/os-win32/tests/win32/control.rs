//! Control codes, sent to the named pipe file system, which every system has.
//!
//! The results also apply to disks: input and output are passed, and an answer that does not fit is
//! an error with the first bytes in the buffer.

use std::sync::Arc;
use std::time::Duration;

use csi_proxy_os_win32::Windows;
use csi_proxy_os_win32::pipe::{Listener, Security};
use os::abi::ControlCode;
use os::{Access, Handle, NtPath, Open, Options, Os as _, OsError};
use tokio::io::AsyncWriteExt as _;
use tokio::net::windows::named_pipe::{NamedPipeServer, PipeMode, ServerOptions};

use crate::scratch::wide;

/// `FSCTL_PIPE_PEEK`: returns 16 bytes about the data in the pipe, then the data, without removing
/// it.
const PEEK: ControlCode = ControlCode(0x0011_400c);
const PEEK_HEADER: usize = 16;

/// `FSCTL_PIPE_WAIT`: waits until an instance of a pipe is ready for a client.
const WAIT: ControlCode = ControlCode(0x0011_0018);

fn name(test: &str) -> String {
    format!("csi-proxy-test-control-{test}-{}", std::process::id())
}

fn listener(name: &str) -> Listener {
    Listener::bind(
        &format!(r"\\.\pipe\{name}"),
        Arc::new(Security::administrators().unwrap()),
    )
    .unwrap()
}

/// Returns a client's handle of a pipe that has `message`, and the server's end.
async fn pipe_with(
    test: &str,
    message: &[u8],
    access: Access,
) -> (Box<dyn Handle>, NamedPipeServer) {
    let path = format!(r"\\.\pipe\{}", name(test));
    let mut server = ServerOptions::new()
        .pipe_mode(PipeMode::Message)
        .create(&path)
        .unwrap();
    let client = Windows::new()
        .open(
            &NtPath::from_win32(&wide(&path)),
            &Open::existing(access, Options::empty()),
        )
        .unwrap();
    server.connect().await.unwrap();
    server.write_all(message).await.unwrap();
    (client, server)
}

#[tokio::test]
async fn the_answer_is_returned_with_its_length() {
    let (client, _server) = pipe_with("answer", b"hello world", Access::GENERIC_READ).await;
    let mut output = [0xaa; 64];
    assert_eq!(client.control(PEEK, &[], &mut output), Ok(PEEK_HEADER + 11));
    assert_eq!(&output[PEEK_HEADER..PEEK_HEADER + 11], b"hello world");
    assert!(
        output[PEEK_HEADER + 11..].iter().all(|&byte| byte == 0xaa),
        "the rest of the buffer is unchanged"
    );
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_an_error_with_its_first_bytes_in_the_buffer() {
    let (client, _server) = pipe_with("overflow", b"hello world", Access::GENERIC_READ).await;
    for misaligned in 0..8 {
        let mut output = [0; PEEK_HEADER + 4 + 8];
        let output = &mut output[misaligned..][..PEEK_HEADER + 4];
        assert_eq!(client.control(PEEK, &[], output), Err(OsError::MORE_DATA));
        assert_eq!(&output[PEEK_HEADER..], b"hell");
    }
}

/// Returns the input of `WAIT`: the timeout, in units of -100 ns, and the name of the pipe.
fn wait_for(name: &str, timeout: Duration) -> Vec<u8> {
    let ticks = i64::try_from(timeout.as_nanos() / 100).unwrap();
    let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut input = (-ticks).to_le_bytes().to_vec();
    input.extend(u32::try_from(name.len()).unwrap().to_le_bytes());
    input.extend([1, 0]); // TimeoutSpecified; padding
    input.extend(name);
    input
}

#[tokio::test]
async fn the_input_is_passed() {
    let pipes = NtPath::from_win32(&wide(r"\\.\pipe\"));
    let pipes = Windows::new()
        .open(
            &pipes,
            &Open::existing(Access::READ_ATTRIBUTES, Options::empty()),
        )
        .unwrap();
    let name = name("input");
    let ask = |name: &str| pipes.control(WAIT, &wait_for(name, Duration::from_millis(50)), &mut []);
    assert_eq!(ask(&name), Err(OsError::FILE_NOT_FOUND));
    let _listener = listener(&name);
    assert_eq!(ask(&name), Ok(0));
    let path = NtPath::from_win32(&wide(&format!(r"\\.\pipe\{name}")));
    let _client = Windows::new()
        .open(
            &path,
            &Open::existing(Access::GENERIC_READ, Options::empty()),
        )
        .unwrap();
    assert_eq!(
        ask(&name),
        Err(OsError::SEM_TIMEOUT),
        "its only instance is connected"
    );
}
