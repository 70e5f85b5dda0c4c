//! The container's side of the file system.

use csi_proxy_sim::control_api::{
    FileEntry, FileKind, ListDirectoryRequest, MakeDirectoryRequest, MakeSymlinkRequest, ReadFileRequest,
    ReadLinkRequest, RemoveRequest, StatRequest, WriteFileRequest,
};
use tonic::Code;

use super::program::Program;

const POD: &str = r"C:\var\lib\kubelet\pods\1";

fn at(path: &str) -> String {
    format!(r"{POD}\{path}")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_container_makes_the_node_sees_and_the_other_way_round() {
    let mut program = Program::start("").await;
    let driver = program.driver();
    program.files.make_directory(MakeDirectoryRequest { path: at("volumes") }).await.expect("a directory");
    assert!(driver.filesystem().path_exists(&at("volumes")).await.expect("an answer"));

    driver.filesystem().mkdir(&at("staging")).await.expect("a directory");
    let (path, data) = (at(r"staging\vol_data.json"), b"{}".to_vec());
    program.files.write_file(WriteFileRequest { path: path.clone(), data: data.clone() }).await.expect("a file");
    let read = program.files.read_file(ReadFileRequest { path }).await.expect("a file");
    assert_eq!(read.into_inner().data, data);

    let target = at("staging");
    driver.filesystem().create_symlink(&target, &at("link")).await.expect("a link");
    let read = program.files.read_link(ReadLinkRequest { path: at("link") }).await.expect("a link");
    assert_eq!(read.into_inner().target, target);
    let link = MakeSymlinkRequest { path: at("volumes/mount"), target: target.clone() };
    program.files.make_symlink(link).await.expect("a link");
    assert!(driver.filesystem().is_symlink(&at(r"volumes\mount")).await.expect("an answer"));

    let list = program.files.list_directory(ListDirectoryRequest { path: POD.to_owned() }).await.expect("a list");
    let entry = |name: &str, kind: FileKind, target: &str| FileEntry {
        name: name.to_owned(),
        kind: kind.into(),
        size: 0,
        target: target.to_owned(),
    };
    let expected = [
        entry("link", FileKind::Symlink, &target),
        entry("staging", FileKind::Directory, ""),
        entry("volumes", FileKind::Directory, ""),
    ];
    assert_eq!(list.into_inner().entries, expected);
    let stat = program.files.stat(StatRequest { path: at("staging/VOL_DATA.json") }).await.expect("an answer");
    let entry = stat.into_inner().entry.expect("it exists");
    assert_eq!((entry.name.as_str(), entry.kind(), entry.size), ("vol_data.json", FileKind::File, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_follows_no_link_and_keeps_what_is_in_a_directory_unless_it_is_recursive() {
    let mut program = Program::start("").await;
    let files = &mut program.files;
    files.make_directory(MakeDirectoryRequest { path: at("staging") }).await.expect("a directory");
    files.make_directory(MakeDirectoryRequest { path: at("volumes") }).await.expect("a directory");
    let file = at(r"staging\file");
    files.write_file(WriteFileRequest { path: file.clone(), data: Vec::new() }).await.expect("a file");
    let link = MakeSymlinkRequest { path: at(r"volumes\mount"), target: at("staging") };
    files.make_symlink(link).await.expect("a link");

    let remove = |path: String, recursive| RemoveRequest { path, recursive };
    let refused = files.remove(remove(at("volumes"), false)).await.expect_err("it is not empty");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().ends_with("(145)"), "{refused}");
    files.remove(remove(at(r"volumes\mount"), false)).await.expect("the link is removed");
    files.make_symlink(MakeSymlinkRequest { path: at(r"volumes\mount"), target: at("staging") }).await.expect("a link");
    files.remove(remove(at("volumes"), true)).await.expect("the directory and the link are removed");
    assert!(files.stat(StatRequest { path: file }).await.expect("an answer").into_inner().exists);
    let stat = files.stat(StatRequest { path: at("volumes") }).await.expect("an answer").into_inner();
    assert!(!stat.exists && stat.entry.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_names_the_path_and_the_code_of_windows() {
    let mut program = Program::start("").await;
    let path = at("no");
    let missing = program.files.read_file(ReadFileRequest { path: path.clone() }).await.expect_err("it is missing");
    assert_eq!(missing.code(), Code::NotFound);
    assert!(missing.message().starts_with(&format!("cannot read the file {path}: ")), "{missing}");
    let empty = program.files.make_directory(MakeDirectoryRequest::default()).await.expect_err("no path");
    assert_eq!((empty.code(), empty.message()), (Code::InvalidArgument, "the path is missing"));
}
