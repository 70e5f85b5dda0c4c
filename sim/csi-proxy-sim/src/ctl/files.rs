//! What kubelet and a driver's container do on the file system of the node.

use std::fs;
use std::io::{self, Read as _};

use crate::control_api::{
    FileEntry, FileKind, ListDirectoryRequest, MakeDirectoryRequest, MakeSymlinkRequest, ReadFileRequest,
    ReadLinkRequest, RemoveRequest, StatRequest, WriteFileRequest,
};
use clap::{Arg, ArgMatches, Command};
use serde_json::{Value, json};
use tonic::Status;

use super::{Error, Output, Simulator, answered, argument, response_arg, switch, table_arg};
use csi_proxyctl::args;
use csi_proxyctl::failure::Failure;
use csi_proxyctl::table::{Column, shown};

static COLUMNS: [Column; 4] = [
    Column::text("NAME", |row| shown(&row["name"])),
    Column::text("KIND", |row| shown(&row["kind"])),
    Column::number("BYTES", |row| shown(&row["size_bytes"])),
    Column::text("TARGET", |row| shown(&row["target"])),
];

pub(super) fn commands() -> Vec<Command> {
    let path = || argument("path", "PATH", r"Path on the simulated node, such as C:\var\lib\kubelet");
    vec![
        Command::new("ls").about("Lists a directory of the simulated node").arg(path()).arg(table_arg()),
        Command::new("stat")
            .about("Describes what is at a path, without following links")
            .arg(path())
            .arg(response_arg()),
        Command::new("mkdir").about("Makes a directory and its missing parents, as kubelet does").arg(path()),
        Command::new("cat").about("Prints a file").arg(path()),
        Command::new("write").about("Writes a file").arg(path()).arg(
            Arg::new("file")
                .value_name("FILE")
                .default_value("-")
                .hide_default_value(true)
                .help("File with the content [default: standard input]"),
        ),
        Command::new("readlink").about("Prints the target of a link or mount point").arg(path()),
        Command::new("symlink")
            .about("Makes a symbolic link")
            .arg(argument("target", "TARGET", "What the link leads to"))
            .arg(path().help("Path of the link")),
        Command::new("rm")
            .about("Removes a file, a link or an empty directory")
            .before_help("Links are removed and not followed.")
            .arg(path())
            .arg(switch("recursive", "Also remove what is in a directory").short('r')),
    ]
}

pub(super) async fn run(name: &str, matches: &ArgMatches, mut simulator: Simulator) -> Result<Output, Error> {
    let files = &mut simulator.files;
    let path = args::required(matches, "path").to_owned();
    match name {
        "ls" => {
            let list = answered(files.list_directory(ListDirectoryRequest { path }).await)?;
            Ok(Output::Rows(&COLUMNS, list.entries.into_iter().map(row).collect()))
        }
        "stat" => {
            let found = answered(files.stat(StatRequest { path: path.clone() }).await)?;
            let missing = || Status::not_found(format!("{path} does not exist"));
            Ok(Output::Response(row(found.entry.ok_or_else(missing)?)))
        }
        "cat" => Ok(Output::Bytes(answered(files.read_file(ReadFileRequest { path }).await)?.data)),
        "readlink" => {
            let target = answered(files.read_link(ReadLinkRequest { path }).await)?.target;
            Ok(Output::Bytes(format!("{}\n", terminal_text::escaped(&target)).into_bytes()))
        }
        "mkdir" => done(files.make_directory(MakeDirectoryRequest { path }).await),
        "write" => {
            let data = content(args::required(matches, "file"))?;
            done(files.write_file(WriteFileRequest { path, data }).await)
        }
        "symlink" => {
            let target = args::required(matches, "target").to_owned();
            done(files.make_symlink(MakeSymlinkRequest { path, target }).await)
        }
        _ => {
            let recursive = matches.get_flag("recursive");
            done(files.remove(RemoveRequest { path, recursive }).await)
        }
    }
}

fn done<T>(response: Result<tonic::Response<T>, Status>) -> Result<Output, Error> {
    answered(response).map(|_| Output::done())
}

/// Reads a file, or standard input for `-`.
fn content(path: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path == "-" {
        io::stdin().lock().read_to_end(&mut bytes).map(drop)
    } else {
        fs::read(path).map(|read| bytes = read)
    };
    read.map_err(|error| Failure::Usage(format!("cannot read the content from {path}: {error}")))?;
    Ok(bytes)
}

fn row(entry: FileEntry) -> Value {
    let kind = match entry.kind() {
        FileKind::Directory => "directory",
        FileKind::File => "file",
        FileKind::Symlink => "symlink",
        FileKind::MountPoint => "mount point",
        FileKind::Other | FileKind::Unspecified => "other",
    };
    let size = (entry.kind() == FileKind::File).then_some(entry.size);
    let target = Some(entry.target).filter(|target| !target.is_empty());
    json!({ "name": entry.name, "kind": kind, "size_bytes": size, "target": target })
}
