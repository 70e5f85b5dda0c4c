//! The table of the README: how to see a code from an RPC.

use std::time::Duration;

use api::GROUP_VERSIONS;
use csi_proxy_client::EncodedRpc;
use serde_json::{Value, json};

use super::program::Program;

const README: &str = include_str!("../../README.md");

/// Calls an RPC of a version v1 by its name in the table, and returns the code and the message of
/// its error.
async fn fail(program: &Program, rpc: &str, request: Value) -> (String, String) {
    let (group, name) = rpc.split_once('/').expect("a group");
    let row = GROUP_VERSIONS
        .iter()
        .find(|row| row.group.name() == group && row.version == "v1")
        .expect("a version");
    let (name, rpc) = dynamic_client::rpcs(row)
        .remove_entry(name)
        .expect("an RPC");
    let request = prost::Message::encode_to_vec(&rpc.request(&request));
    let driver = program.driver();
    let called = driver.call_encoded(
        EncodedRpc {
            group,
            versions: &["v1"],
            name,
        },
        request,
    );
    match tokio::time::timeout(Duration::from_secs(5), called).await {
        Ok(called) => called
            .map_err(|error| (format!("{:?}", error.kind()), error.message().to_owned()))
            .expect_err(name),
        Err(_) => ("DeadlineExceeded".to_owned(), String::new()),
    }
}

#[tokio::test]
async fn each_row_shows_its_code() {
    let mapping = json!({ "remotePath": r"\\fileserver\share", "username": r"EXAMPLE\user", "password": "password" });
    let table = README
        .lines()
        .skip_while(|line| *line != "| to see | from | do |")
        .skip(2);
    let rows: Vec<Vec<&str>> = table
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.split(" | ").collect())
        .collect();
    assert_eq!(rows.len(), 13);
    for row in rows {
        let [code, rpc, what] = row[..] else {
            panic!("{row:?}")
        };
        let (code, rpc) = (
            code.trim_start_matches("| "),
            rpc.split('`').nth(1).expect("an RPC"),
        );
        let request = match rpc {
            "volume/MountVolume" => {
                json!({ "volumeId": r"\\?\Volume{00000000-0000-0000-0000-000000000000}\" })
            }
            "disk/PartitionDisk" | "disk/GetDiskStats" => json!({ "diskNumber": 1 }),
            "disk/Rescan" => json!({}),
            "smb/NewSmbGlobalMapping" => mapping.clone(),
            "volume/GetVolumeIDFromTargetPath" => {
                json!({ "targetPath": r"C:\var\lib\kubelet\pods" })
            }
            _ if what.contains("`..`") => json!({ "path": r"C:\var\lib\kubelet\..\x" }),
            _ if what.contains("not below") => json!({ "path": r"C:\elsewhere" }),
            _ => json!({ "path": r"C:\var\lib\kubelet\plugins\x" }),
        };
        let program = Program::start(&["-fast"]);
        if let Some(command) = what
            .split('`')
            .nth(1)
            .and_then(|command| command.strip_prefix("ctl "))
        {
            // Every second part is quoted.
            let words = command
                .split('\'')
                .enumerate()
                .flat_map(|(index, part)| match index % 2 {
                    0 => part.split_whitespace().collect(),
                    _ => vec![part],
                });
            let words: Vec<_> = words.collect();
            program.ctl_with_input(&words, "other").ok();
        }
        let (kind, message) = fail(&program, rpc, request).await;
        assert_eq!(
            kind,
            code.split([',', ' ']).next().expect("a code"),
            "{row:?}: {message}"
        );
        for part in code
            .split("with ")
            .skip(1)
            .chain(code.split('`').skip(1).step_by(2))
        {
            assert!(message.contains(part), "{row:?}: {message}");
        }
    }
}
