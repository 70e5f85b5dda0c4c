//! Writes the Go stubs of the control API, which the module for Go imports, to `simcontrol/`, or to
//! the folder that is given. Git keeps them, so that the module can be fetched.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use csi_proxy_simtest::control_api::DESCRIPTORS;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use prost_types::compiler::{CodeGeneratorRequest, CodeGeneratorResponse};

const PLUGINS: [&str; 2] = [
    "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12",
    "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2",
];

fn main() -> Result<(), Box<dyn Error>> {
    let request = CodeGeneratorRequest {
        file_to_generate: vec!["sim_control.proto".to_owned()],
        // The path of the package is that of the folder, and not in the stubs: `cargo xtask address`
        // changes it.
        parameter: Some("paths=source_relative,Msim_control.proto=simtest/simcontrol".to_owned()),
        proto_file: FileDescriptorSet::decode(DESCRIPTORS)?.file,
        ..CodeGeneratorRequest::default()
    };
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("simcontrol");
    let folder = env::args_os().nth(1).map_or_else(default, Into::into);
    fs::create_dir_all(&folder)?;
    for plugin in PLUGINS {
        let mut go = Command::new("go");
        let pipes = go
            .args(["run", plugin])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // The plugin's dependencies are its own, not those of a module in the working directory.
        let mut process = pipes.current_dir(env::temp_dir()).spawn()?;
        process
            .stdin
            .take()
            .expect("a pipe")
            .write_all(&request.encode_to_vec())?;
        let output = process.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("{plugin} ended with {}", output.status).into());
        }
        for file in CodeGeneratorResponse::decode(&*output.stdout)?.file {
            fs::write(folder.join(file.name()), file.content())?;
        }
    }
    Ok(())
}
