//! Deleted files, removed mount points and the handles of an ended process.

use os::abi::{FILE_DISPOSITION_DELETE, FILE_DISPOSITION_POSIX};
use os::{Access, FileInfo, Handle, NtPath, Open, Options, Os, OsError, OsResult, U16String};
use os_sim::node;

const GIB: u64 = 1 << 30;
const ROOT: &str = r"C:\var\lib\kubelet\pods";

fn text(text: &str) -> U16String {
    U16String::from_str(text)
}

fn path(win32: &str) -> NtPath {
    NtPath::from_win32(&text(win32))
}

fn existing(
    os: &dyn Os,
    win32: &str,
    access: Access,
    options: Options,
) -> OsResult<Box<dyn Handle>> {
    os.open(&path(win32), &Open::existing(access, options))
}

fn link_itself(os: &dyn Os, win32: &str, access: Access) -> OsResult<Box<dyn Handle>> {
    existing(os, win32, access, Options::REPARSE_POINT)
}

fn dispose(handle: &dyn Handle, flags: u32) -> OsResult<()> {
    handle.set(FileInfo::DispositionEx, &flags.to_le_bytes())
}

#[test]
fn deleting_a_mount_point_does_not_change_the_volume() {
    let node = node()
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(r"C:\m")
        .file(r"C:\m\data", "kept")
        .build();
    let before = node.volume_on(1).unwrap().id;
    let link = link_itself(&node, r"C:\m", Access::DELETE).unwrap();
    dispose(&*link, FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX).unwrap();
    drop(link);
    assert!(!node.external().exists(r"C:\m"));
    assert_eq!(
        node.stale_mounts(),
        [r"C:\m"],
        "the mount manager was not informed"
    );
    node.external().mkdir(r"C:\again").unwrap();
    node.external()
        .set_mount_point(r"C:\again", before)
        .unwrap();
    assert_eq!(node.external().read(r"C:\again\data").unwrap(), b"kept");
}

#[test]
fn handles_are_closed_when_their_process_ends() {
    let file = format!(r"{ROOT}\file");
    let node = node().file(&file, "x").build();
    let process = node.process();
    let deleter = existing(&*process, &file, Access::DELETE, Options::empty()).unwrap();
    deleter.set(FileInfo::Disposition, &[1]).unwrap();
    drop(process);
    assert_eq!(node.open_handles(), 0);
    assert!(
        !node.external().exists(&file),
        "the system closed the handle"
    );
    assert_eq!(
        deleter.set(FileInfo::Disposition, &[0]),
        Err(OsError::INVALID_HANDLE)
    );
}
