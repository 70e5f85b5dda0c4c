//! `top`: what is read from the address of the daemon's HTTP server.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use super::daemon::Sockets;
use super::program::{Run, finished, run};

/// Runs `top` against a server that answers one request, and returns the request too. FOLDER stands
/// for the folder of the sockets.
fn top_of(answer: &'static str, arguments: &[&str]) -> (Run, String) {
    let sockets = Sockets::new();
    let answer = answer.replace("FOLDER", sockets.folder().to_str().expect("UTF-8"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).expect("a request");
            request.push(byte[0]);
        }
        stream.write_all(answer.as_bytes()).expect("it reads");
        String::from_utf8(request).expect("text")
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_csi-proxyctl"));
    command
        .args(["top", "--address", &format!("http://{address}/")])
        .args(arguments);
    // An address alone would select any daemon; with this, it must be that of the folder.
    let run = finished(
        command
            .env("CSI_PROXY_ENDPOINT_DIR", sockets.folder())
            .output()
            .expect("a process"),
    );
    let request = server.join().expect("no panic");
    assert!(
        request
            .to_lowercase()
            .contains(&format!("\r\nhost: {address}\r\n")),
        "{request}"
    );
    (run, request)
}

#[test]
fn top_reads_the_status_page() {
    let page = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\ncsi-proxy statusz\nWarning: x\n\nUp: \
                1 s\nNode: a\u{1b}7\n\
                Endpoints: FOLDER/csi-proxy-*.sock\n";
    let (text, request) = top_of(page, &[]);
    assert!(
        request.starts_with("GET /statusz HTTP/1.1\r\n"),
        "{request}"
    );
    let text = text.ok();
    assert!(
        text.starts_with("Up: 1 s\nNode: a\\u{1b}7\nEndpoints: /"),
        "{text}"
    );
    let json = "HTTP/1.1 200 OK\r\nconnection: \
                close\r\n\r\n{\"calls\": [], \"endpoints\": \"FOLDER/csi-proxy-*.sock\"}";
    let (yaml, request) = top_of(json, &["-o", "yaml"]);
    assert!(
        request.starts_with("GET /statusz?format=json HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(yaml.ok().starts_with("calls: []\nendpoints: "));
}

#[test]
fn another_daemon_at_the_address_is_not_shown() {
    let other = "is the address of another csi-proxy";
    for (page, arguments, why) in [
        (
            "\ncsi-proxy statusz\nWarning: x\n\nUp: 1 s\nEndpoints: /tmp/csi-proxy-*.sock\n",
            &[][..],
            other,
        ),
        (
            "\ncsi-proxy statusz\nWarning: x\n\nUp: 1 s\n",
            &[],
            "it is an older csi-proxy",
        ),
        (
            "{\"endpoints\": \"/tmp/csi-proxy-*.sock\"}",
            &["-o", "json"],
            other,
        ),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{page}").leak();
        let (other, _) = top_of(answer, arguments);
        assert_eq!(
            (other.code, other.stdout.as_str()),
            (Some(3), ""),
            "{page}: {other:?}"
        );
        assert!(other.stderr.contains(why), "{other:?}");
    }
}

#[test]
fn a_refusal_and_another_server_are_errors() {
    let refused = "HTTP/1.1 403 Forbidden\r\nconnection: close\r\n\r\nThis page is for clients on \
                   the node itself.\n";
    let (run_refused, _) = top_of(refused, &[]);
    assert_eq!(run_refused.code, Some(1), "{run_refused:?}");
    assert!(
        run_refused
            .stderr
            .contains("403 Forbidden: This page is for clients on the node itself."),
        "{run_refused:?}"
    );
    for arguments in [&[][..], &["-o", "json"]] {
        let (other, _) = top_of(
            "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello\n\nhello",
            arguments,
        );
        assert!(
            other.code == Some(1) && other.stderr.contains("is not csi-proxy"),
            "{other:?}"
        );
    }
}

#[test]
fn a_daemon_without_the_http_server_is_code_3_and_the_hint_names_the_flag() {
    // The port of a listener that is gone.
    let address = TcpListener::bind("127.0.0.1:0")
        .and_then(|own| own.local_addr())
        .expect("a port")
        .to_string();
    let run = run(&Sockets::new(), &["top", "--address", &address]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("-metrics-bind-address"), "{run:?}");
}
