//! The Go stubs of the control API that `sim/simtest` publishes are those of its `sim_control.proto`.
//!
//! `BLESS=1` writes them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use csi_proxy_sim::control_api::DESCRIPTORS;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use prost_types::compiler::{CodeGeneratorRequest, CodeGeneratorResponse};

const FILE: &str = "sim_control.proto";

const PLUGINS: [&str; 2] =
    ["google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12", "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2"];

/// Runs a plugin of the protobuf compiler.
fn generate(plugin: &str, request: &[u8]) -> Option<CodeGeneratorResponse> {
    let mut go = Command::new("go");
    let mut process = go
        .args(["run", plugin])
        .current_dir(env::temp_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    process.stdin.take().expect("a pipe").write_all(request).ok()?;
    let output = process.wait_with_output().expect("an end");
    output.status.success().then(|| CodeGeneratorResponse::decode(&*output.stdout).expect("a response"))
}

#[test]
fn the_published_stubs_are_those_of_the_control_api() {
    let set = FileDescriptorSet::decode(DESCRIPTORS).expect("the descriptors");
    let request = CodeGeneratorRequest {
        file_to_generate: vec![FILE.to_owned()],
        parameter: Some("paths=source_relative".to_owned()),
        proto_file: set.file,
        ..CodeGeneratorRequest::default()
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../simtest/simcontrol");
    for plugin in PLUGINS {
        let Some(response) = generate(plugin, &request.encode_to_vec()) else {
            println!("skipped: the_published_stubs_are_those_of_the_control_api: cannot run {plugin} with Go");
            return;
        };
        assert_eq!(response.error, None);
        for file in response.file {
            let path = folder.join(file.name());
            if env::var_os("BLESS").is_some() {
                fs::create_dir_all(&folder).expect("a folder");
                fs::write(&path, file.content()).expect("a file");
            }
            let published = fs::read_to_string(&path).expect("a file");
            assert!(published == file.content(), "{} is old: run this test with BLESS=1", path.display());
        }
    }
}
