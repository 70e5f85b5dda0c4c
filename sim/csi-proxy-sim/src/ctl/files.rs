//! What kubelet and a driver's container do on the file system of the node.

use std::fs;
use std::io::{self, Read as _};

use clap::{Args, Subcommand};
use command_line::failure::Failure;
use command_line::table::{Column, shown};
use serde_json::{Value, json};
use tonic::Status;

use super::{Error, Output, Simulator};
use crate::control_api::{
    FileEntry, FileKind, ListDirectoryRequest, MakeDirectoryRequest, MakeSymlinkRequest,
    ReadFileRequest, ReadLinkRequest, RemoveRequest, RenameRequest, StatRequest, WriteFileRequest,
};

static COLUMNS: [Column; 4] = [
    Column::text("NAME", |row| shown(&row["name"])),
    Column::text("KIND", |row| shown(&row["kind"])),
    Column::number("BYTES", |row| shown(&row["size_bytes"])),
    Column::text("TARGET", |row| shown(&row["target"])),
];

#[derive(Subcommand)]
pub(super) enum Task {
    /// Lists a directory of the simulated node
    Ls(Object),
    /// Describes the file, directory or link at a path
    Stat(Object),
    /// Makes a directory and its missing parents, as kubelet does
    Mkdir(Object),
    /// Prints a file
    Cat(Object),
    /// Writes a file
    Write {
        #[command(flatten)]
        object: Object,
        /// File with the content [default: standard input]
        #[arg(default_value = "-", hide_default_value = true)]
        file: String,
    },
    /// Prints the target of a link or mount point
    Readlink(Object),
    /// Makes a symbolic link
    Symlink {
        /// Target of the link
        target: String,
        /// Path of the link
        path: String,
    },
    /// Renames a file or directory
    Mv {
        /// Path of the file or directory
        path: String,
        /// New path
        new_path: String,
    },
    /// Removes a file, a link or an empty directory
    #[command(before_help = "Links are removed and not followed.")]
    Rm {
        #[command(flatten)]
        object: Object,
        /// Also remove the contents of a directory
        #[arg(short, long)]
        recursive: bool,
    },
}

#[derive(Args)]
pub(super) struct Object {
    /// Path on the simulated node, such as C:\var\lib\kubelet
    path: String,
}

impl Task {
    pub(super) async fn run(self, Simulator { mut files, .. }: Simulator) -> Result<Output, Error> {
        match self {
            Self::Ls(Object { path }) => {
                let list = files
                    .list_directory(ListDirectoryRequest { path })
                    .await?
                    .into_inner();
                return Ok(Output::Rows(
                    &COLUMNS,
                    list.entries.into_iter().map(row).collect(),
                ));
            }
            Self::Stat(Object { path }) => {
                let found = files
                    .stat(StatRequest {
                        path: path.clone(),
                        follow: false,
                    })
                    .await?
                    .into_inner()
                    .entry;
                let found =
                    found.ok_or_else(|| Status::not_found(format!("{path} does not exist")))?;
                return Ok(Output::Response(row(found)));
            }
            Self::Cat(Object { path }) => {
                return Ok(Output::Bytes(
                    files
                        .read_file(ReadFileRequest { path })
                        .await?
                        .into_inner()
                        .data,
                ));
            }
            Self::Readlink(Object { path }) => {
                let target = files
                    .read_link(ReadLinkRequest { path })
                    .await?
                    .into_inner()
                    .target;
                return Ok(Output::Bytes(
                    format!("{}\n", terminal_text::escaped(&target)).into_bytes(),
                ));
            }
            Self::Mkdir(Object { path }) => {
                drop(files.make_directory(MakeDirectoryRequest { path }).await?);
            }
            Self::Write {
                object: Object { path },
                file,
            } => {
                let data = content(&file)?;
                files.write_file(WriteFileRequest { path, data }).await?;
            }
            Self::Symlink { target, path } => drop(
                files
                    .make_symlink(MakeSymlinkRequest { path, target })
                    .await?,
            ),
            Self::Mv { path, new_path } => {
                drop(files.rename(RenameRequest { path, new_path }).await?);
            }
            Self::Rm {
                object: Object { path },
                recursive,
            } => {
                files.remove(RemoveRequest { path, recursive }).await?;
            }
        }
        Ok(Output::DONE)
    }
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
