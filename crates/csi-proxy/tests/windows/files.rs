//! The file system of the node that the daemon runs on.

use std::fs::{self, OpenOptions};
use std::os::windows::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Command;

use api::filesystem::v2alpha1::filesystem_client::FilesystemClient;
use api::filesystem::v2alpha1::{
    MkdirRequest, PathExistsRequest, RmdirContentsRequest, RmdirRequest,
};
use os_win32::system;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::daemon::{Daemon, Scratch, connect, turn};
use crate::skip::skipped;

struct Files {
    client: FilesystemClient<Channel>,
    _daemon: Daemon,
}

impl Files {
    async fn served(working: &Scratch) -> Self {
        let daemon = Daemon::start(&[&format!("-working-dir={}", working.path.display())]);
        Self {
            client: FilesystemClient::new(connect("csi-proxy-filesystem-v2alpha1").await),
            _daemon: daemon,
        }
    }

    async fn mkdir(&mut self, path: &str) -> Result<(), Status> {
        self.client
            .mkdir(MkdirRequest { path: path.into() })
            .await
            .map(drop)
    }

    async fn exists(&mut self, path: &str) -> bool {
        self.client
            .path_exists(PathExistsRequest { path: path.into() })
            .await
            .expect("an answer")
            .into_inner()
            .exists
    }

    async fn rmdir(&mut self, path: &str, force: bool) -> Result<(), Status> {
        self.client
            .rmdir(RmdirRequest {
                path: path.into(),
                force,
            })
            .await
            .map(drop)
    }

    async fn rmdir_contents(&mut self, path: &str) -> Result<(), Status> {
        self.client
            .rmdir_contents(RmdirContentsRequest { path: path.into() })
            .await
            .map(drop)
    }
}

fn read_only(path: &Path) {
    fs::write(path, "content").expect("a file");
    let mut permissions = fs::metadata(path).expect("a file").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(path, permissions).expect("a file");
}

#[tokio::test]
async fn a_directory_is_created_with_its_parents_and_removed_when_it_is_empty() {
    let _turn = turn().await;
    let scratch = Scratch::new("mkdir");
    let mut files = Files::served(&scratch).await;
    let path = scratch.join(r"eins\Größe 容量 😀");
    for _ in 0..2 {
        files.mkdir(&path).await.expect("a directory");
    }
    assert!(Path::new(&path).is_dir());
    assert!(
        files.exists(&path.to_uppercase().replace("SS", "ß")).await,
        "names compare without case"
    );
    assert_eq!(
        files
            .rmdir(&scratch.join("eins"), false)
            .await
            .unwrap_err()
            .code(),
        Code::FailedPrecondition
    );
    files.rmdir(&path, false).await.expect("an empty directory");
    assert_eq!(
        files.rmdir(&path, false).await.unwrap_err().code(),
        Code::NotFound
    );
    files.rmdir(&path, true).await.expect("nothing to remove");
    assert!(!files.exists(&path).await);
}

#[tokio::test]
async fn read_only_files_are_removed_with_their_tree() {
    let _turn = turn().await;
    let scratch = Scratch::new("read-only");
    let mut files = Files::served(&scratch).await;
    let tree = scratch.join("tree");
    for remove_all in [false, true] {
        fs::create_dir_all(format!(r"{tree}\a\b")).expect("a tree");
        for name in [r"file", r"a\file", r"a\b\file"] {
            read_only(&Path::new(&tree).join(name));
        }
        if remove_all {
            files.rmdir(&tree, true).await.expect("a tree");
        } else {
            files.rmdir_contents(&tree).await.expect("a tree");
            assert_eq!(fs::read_dir(&tree).expect("the directory").count(), 0);
        }
    }
    assert!(!Path::new(&tree).exists());
}

#[tokio::test]
async fn a_tree_deeper_than_the_longest_path_is_removed() {
    let _turn = turn().await;
    let scratch = Scratch::new("deep");
    let mut files = Files::served(&scratch).await;
    let tree = scratch.join("tree");
    let deep = format!(
        r"\\?\{tree}{}",
        format!(r"\{}", "a name of some length".repeat(4)).repeat(8)
    );
    assert!(deep.len() > 600);
    fs::create_dir_all(&deep).expect("a deep tree");
    fs::write(format!(r"{deep}\file"), "content").expect("a file");
    files.rmdir(&tree, true).await.expect("a tree");
    assert!(!Path::new(&tree).exists());
}

#[tokio::test]
async fn a_file_that_is_in_use_keeps_its_directory_until_it_is_closed() {
    let _turn = turn().await;
    let scratch = Scratch::new("in-use");
    let mut files = Files::served(&scratch).await;
    let tree = scratch.join("tree");
    fs::create_dir(&tree).expect("a directory");
    let mut exclusive = OpenOptions::new();
    exclusive.write(true).create(true).share_mode(0);
    let file = exclusive.open(format!(r"{tree}\file")).expect("a file");
    let refused = files
        .rmdir(&tree, true)
        .await
        .expect_err("the file is in use");
    assert!(
        refused.message().contains(&tree)
            && refused.message().contains("being used by another process"),
        "{refused:?}"
    );
    assert!(Path::new(&tree).exists());
    drop(file);
    files.rmdir(&tree, true).await.expect("the file is closed");
    assert!(!Path::new(&tree).exists());
}

#[tokio::test]
async fn a_short_name_opens_the_same_directory_and_none_outside_of_the_working_directories() {
    let _turn = turn().await;
    let scratch = Scratch::new("short-names");
    let mut files = Files::served(&scratch).await;
    let long = scratch.join("a name with blanks");
    files.mkdir(&long).await.expect("a directory");
    let Some(short) = short_name(&long) else {
        return skipped("the volume has no short names");
    };
    assert!(files.exists(&scratch.join(&short)).await);
    files
        .rmdir(&scratch.join(&short), false)
        .await
        .expect("the same directory");
    assert!(!files.exists(&long).await);

    let outside = Scratch::new("short-names-outside");
    files
        .mkdir(&outside.join("x"))
        .await
        .expect_err("not a working directory");
    assert!(!Path::new(&outside.join("x")).exists());
}

/// Returns the 8.3 name of a path that is alone in its directory, if it has one besides its name.
fn short_name(path: &str) -> Option<String> {
    let (directory, name) = path.rsplit_once('\\')?;
    let output = Command::new(system::program("cmd.exe").expect("a path"))
        .args(["/c", "dir", "/x", directory])
        .output()
        .expect("cmd.exe");
    let listing = String::from_utf8_lossy(&output.stdout).into_owned();
    let before = listing
        .lines()
        .find_map(|line| line.trim_end().strip_suffix(name))?;
    let short = before.split_whitespace().next_back()?;
    short.contains('~').then(|| short.to_owned())
}
