//! Invalid input: every field of every RPC, filled with values that no client should send.
//!
//! The fields are read from the descriptors. A field without a rule here fails the test.

use std::sync::LazyLock;

use api::GROUP_VERSIONS;
use prost::Message as _;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, ReflectMessage as _, Value};
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::daemon::{Daemon, HANG_TIMEOUT};
use super::good_input;
use dynamic_client::Rpc;

const UNKNOWN_VOLUME: &str = r"\\?\Volume{00000000-0000-0000-0000-000000000000}\";
const OUTSIDE: &str = r"C:\elsewhere\x";
const LAST_NUMBER: &str = "4294967295";

/// Texts that are invalid for at least one field.
static STRINGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let kubelet = |rest: &str| format!(r"C:\var\lib\kubelet\{rest}");
    let mut all = vec![
        "x".repeat(1 << 20),
        "\\".repeat(1 << 20),
        "é".repeat(1 << 19),
    ];
    let bad = [
        "..",
        "a:b",
        "NUL",
        "CON.txt",
        "a\0b",
        "a\nb",
        "a/b",
        "a?",
        "a*",
        "a|b",
        "a.",
        "a ",
        r"a\..\..\..\x",
    ];
    all.extend(bad.map(kubelet));
    let texts = [
        "",
        " ",
        "..",
        "-1",
        "not-a-guid",
        "a\0b",
        "NUL",
        "C:",
        r"pv1\foo",
        r"C:relative",
        r"\\host\share\x",
        r"\\host",
        r"\\?\C:\var\lib\kubelet\x",
        r"\\.\PhysicalDrive0",
        r"\\?\Volume{not-a-guid}\",
        r"\\?\Volume{00000000-0000-0000-0000-000000000000}",
        UNKNOWN_VOLUME,
        OUTSIDE,
        LAST_NUMBER,
        "4294967296",
        "99999999999999999999",
        "1.0",
        "0x1",
        "' OR ''='",
        "$(calc.exe)",
    ];
    all.extend(texts.map(str::to_owned));
    all
});

/// The required code of the answer. `None`: the value is valid for this field, or is refused for
/// another reason than its form.
type Expected = Option<Code>;

/// Returns the required answer if `field` of the RPC `rpc` is `text`.
fn string(rpc: &str, field: &str, text: &str) -> Expected {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let too_long = text.len() > 1024;
    let invalid = |when: bool| when.then_some(Code::InvalidArgument);
    match field {
        "path" | "target_path" | "source_path" | "mount" | "local_path" => {
            let restricted =
                !["IsSymlink", "IsMountPoint"].contains(&rpc) && !rpc.starts_with("Get");
            match text {
                "" if field == "local_path" => None,
                OUTSIDE if restricted => Some(Code::PermissionDenied),
                OUTSIDE if rpc.starts_with("GetClosest") => None,
                OUTSIDE => Some(Code::NotFound),
                // RPCs that accept loose paths take a slash as a separator.
                _ if text.ends_with("a/b") => invalid(!is_loose(rpc)),
                _ => Some(Code::InvalidArgument),
            }
        }
        "volume_id" => match text {
            LAST_NUMBER if rpc == "ResizeVolume" => Some(Code::NotFound),
            // Nothing is mounted at the target, which is an empty directory.
            UNKNOWN_VOLUME if ["UnmountVolume", "DismountVolume"].contains(&rpc) => None,
            UNKNOWN_VOLUME => Some(Code::NotFound),
            _ => Some(Code::InvalidArgument),
        },
        "diskID" | "disk_id" if text == LAST_NUMBER => Some(Code::NotFound),
        "diskID" | "disk_id" | "iqn" => Some(Code::InvalidArgument),
        "disk_name" if text.trim().is_empty() || too_long || text.contains('\0') => {
            Some(Code::InvalidArgument)
        }
        "remote_path" => invalid(text != r"\\host\share\x"),
        "username" | "password" | "chap_username" | "chap_secret" => {
            let blank = field == "username" && text == " ";
            invalid(too_long || text.contains('\0') || blank)
        }
        "MutualChapSecret" => invalid(!(12..=16).contains(&text.len()) || text.contains('\0')),
        "target_address" => {
            let plain = |c: char| c.is_ascii_alphanumeric() || ".-:_%[]".contains(c);
            invalid(
                digits && too_long
                    || !text.chars().all(plain)
                    || text.is_empty()
                    || text.len() > 255,
            )
        }
        "name" if text.contains(['/', '\\']) || text.contains(char::is_control) => {
            Some(Code::InvalidArgument)
        }
        "name" if text.is_empty() || text.len() > 512 => Some(Code::InvalidArgument),
        "disk_name" | "name" => Some(Code::NotFound),
        _ => panic!("{rpc}: no rule for the text {field}"),
    }
}

/// Whether an RPC accepts paths without a drive and with forward slashes.
fn is_loose(rpc: &str) -> bool {
    let strict = [
        "PathExists",
        "Mkdir",
        "Rmdir",
        "RmdirContents",
        "CreateSymlink",
        "LinkPath",
        "NewSmbGlobalMapping",
    ];
    !strict.contains(&rpc)
}

/// Returns the invalid values of one field, with the required answers.
fn bad_values(rpc: &str, field: &FieldDescriptor) -> Vec<(Value, Expected)> {
    let invalid = |value: Value| (value, Some(Code::InvalidArgument));
    match (field.name(), field.kind()) {
        (name, Kind::String) => STRINGS
            .iter()
            .map(|text| (Value::String(text.clone()), string(rpc, name, text)))
            .collect(),
        ("disk_number" | "partition_number", Kind::Uint32) => {
            vec![(Value::U32(u32::MAX), Some(Code::NotFound))]
        }
        ("target_port", Kind::Uint32) => {
            vec![invalid(Value::U32(65_536)), invalid(Value::U32(u32::MAX))]
        }
        ("size" | "size_bytes", Kind::Int64) => {
            vec![invalid(Value::I64(-1)), invalid(Value::I64(i64::MIN))]
        }
        (_, Kind::Enum(_)) => [-1, 3, 99, i32::MIN, i32::MAX]
            .map(|number| invalid(Value::EnumNumber(number)))
            .into(),
        (_, Kind::Bool) => Vec::new(),
        (name, kind) => panic!("{rpc}: no rule for {name}, {kind:?}"),
    }
}

/// Returns every request that differs from a valid one in one value, with a description.
fn requests(rpc: &str, good: &DynamicMessage) -> Vec<(String, DynamicMessage, Expected)> {
    let mut all = Vec::new();
    for field in good.descriptor().fields() {
        let Kind::Message(_) = field.kind() else {
            for (value, expected) in bad_values(rpc, &field) {
                let mut bad = good.clone();
                bad.set_field(&field, value.clone());
                all.push((format!("{} = {value:.80?}", field.name()), bad, expected));
            }
            continue;
        };
        let mut bad = good.clone();
        bad.clear_field(&field);
        all.push((
            format!("no {}", field.name()),
            bad,
            Some(Code::InvalidArgument),
        ));
        let inner = good
            .get_field(&field)
            .as_message()
            .expect("a message")
            .clone();
        for (what, inner, expected) in requests(rpc, &inner) {
            let mut bad = good.clone();
            bad.set_field(&field, Value::Message(inner));
            all.push((what, bad, expected));
        }
    }
    all
}

fn assert_refused(what: &str, code: Code, outcome: Result<Vec<u8>, Status>) {
    let Err(status) = outcome else {
        panic!("{what}: it was accepted")
    };
    let message = status.message();
    assert_eq!(status.code(), code, "{what}: {message}");
    let one_line = !message.is_empty() && !message.contains(['\n', '\r', '\0']);
    assert!(one_line && message.len() < 400, "{what}: {message:?}");
    assert!(
        !message.contains("panicked") && !message.contains("defect"),
        "{what}: {message}"
    );
    let (_, reason) = message.split_once(" request: ").unwrap_or(("", message));
    let without_values: Vec<&str> = reason.split('"').step_by(2).collect();
    texts::seen!(without_values.join("\"...\""));
}

async fn send(
    what: &str,
    channel: &Channel,
    rpc: &Rpc,
    request: Vec<u8>,
) -> Result<Vec<u8>, Status> {
    let answer = timeout(
        HANG_TIMEOUT,
        dynamic_client::call(channel, rpc.path, request),
    )
    .await;
    answer.unwrap_or_else(|_| panic!("{what}: no answer"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_input_is_refused_with_a_message_and_changes_nothing() {
    let mut refused = 0;
    for row in &GROUP_VERSIONS {
        let sim = good_input::node();
        let daemon = Daemon::on(&sim);
        let channel = daemon.channel(row.pipe()).await;
        let before = sim.snapshot();
        let rpcs = dynamic_client::rpcs(row);
        for case in good_input::cases(row, &sim) {
            let rpc = &rpcs[case.rpc];
            for (what, request, expected) in requests(case.rpc, &rpc.request(&case.request)) {
                let Some(code) = expected else { continue };
                let what = format!("{}: {what}", rpc.path);
                assert_refused(
                    &what,
                    code,
                    send(&what, &channel, rpc, request.encode_to_vec()).await,
                );
                refused += 1;
            }
        }
        assert_eq!(
            sim.snapshot(),
            before,
            "{row:?}: {}",
            before.difference(&sim.snapshot())
        );
    }
    assert!(refused > 4000, "only {refused} requests were made");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_messages_are_refused() {
    let sim = good_input::node();
    let daemon = Daemon::on(&sim);
    let before = sim.snapshot();
    for row in &GROUP_VERSIONS {
        let channel = daemon.channel(row.pipe()).await;
        for rpc in dynamic_client::rpcs(row).values() {
            // Field 1 cut off before its byte; a text that is not UTF-8; a field number of 0.
            for bytes in [&b"\x0a\x01"[..], b"\x0a\x01\xff", b"\x02\x00"] {
                if bytes == b"\x0a\x01\xff"
                    && rpc
                        .request
                        .get_field(1)
                        .is_none_or(|field| field.kind() != Kind::String)
                {
                    continue;
                }
                let what = format!("{}: {}", rpc.path, bytes.escape_ascii());
                assert_refused(
                    &what,
                    Code::InvalidArgument,
                    send(&what, &channel, rpc, bytes.to_vec()).await,
                );
            }
        }
    }
    assert_eq!(sim.snapshot(), before);
}
