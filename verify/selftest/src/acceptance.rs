//! The acceptance: the calls of a driver, from the raw disk to the grown file system, and the pipes of the daemon.
//!
//! The calls run in this program with the library that the daemon consists of, so that a daemon on the machine is no
//! obstacle. They are checks like those of facts, which the program runs and reports in the same way.

use std::fs::OpenOptions;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use api::GROUP_VERSIONS;
use facts::{DiskIdentity, DiskKind, Fact, System, TestNode, VolumeKind, missing};
use storage_ops::{
    Config, CreateSymlink, DiskNumber, FormatVolume, GetDiskNumberFromVolumeId, GetDiskState,
    GetVolumeIdFromTargetPath, GetVolumeStats, HostPath, IsVolumeFormatted, ListVolumesOnDisk, Mkdir, MountVolume,
    Node, Operation, PartitionDisk, ResizeTarget, ResizeVolume, Rmdir, SetDiskState, UnmountVolume, VolumeId,
    WriteVolumeCache,
};

/// The checks of the acceptance.
pub const ACCEPTANCE: [Fact; 4] = [
    Fact::new("ACCEPTANCE-DISK", |node| new_disk(node, DiskKind::Raw)),
    Fact::new("ACCEPTANCE-DISK-4KN", |node| new_disk(node, DiskKind::FourKn)),
    Fact::new("ACCEPTANCE-GROW", grown_disk),
    Fact::new("ACCEPTANCE-DAEMON", daemon),
];

/// csi-proxy's operations on one disk for tests.
struct OwnDisk<'a> {
    node: &'a dyn TestNode,
    operations: Node,
    disk: DiskNumber,
    identity: DiskIdentity,
    directory: String,
}

impl<'a> OwnDisk<'a> {
    fn new(node: &'a dyn TestNode, number: u32) -> Self {
        let identity = DiskIdentity::of(node.os(), number).expect("the identity of the disk");
        let directory = node.new_directory();
        let working_dirs = vec![HostPath::parse(&directory).expect("a path")];
        let operations = Node::new(node.process(), Config::default().with(|c| c.working_dirs = working_dirs));
        operations.test_path_lookup();
        Self { node, operations, disk: DiskNumber(number), identity, directory }
    }

    /// Runs an operation, after proving that the number still means the disk for tests.
    #[track_caller]
    fn run<O: Operation>(&self, operation: &O) -> O::Output {
        let identity = DiskIdentity::of(self.node.os(), self.disk.0);
        assert_eq!(identity.as_ref(), Ok(&self.identity), "the disk for tests has gone");
        match self.operations.run(operation) {
            Ok(output) => output,
            Err(error) => panic!("{:?} {:?} {error}", error.kind(), error.code()),
        }
    }

    fn path(&self, name: &str) -> HostPath {
        HostPath::parse(&format!(r"{}\{name}", self.directory)).expect("a path")
    }

    /// Returns the only volume, after proving that it is on the disk.
    #[track_caller]
    fn volume(&self) -> VolumeId {
        let volumes = self.run(&ListVolumesOnDisk { disk: self.disk, partition: 0 });
        let [volume] = volumes[..] else { panic!("{} volumes", volumes.len()) };
        assert_eq!(self.run(&GetDiskNumberFromVolumeId { volume }), self.disk);
        volume
    }
}

impl Drop for OwnDisk<'_> {
    /// Prints the fallbacks that were used, as the first lines of the result.
    fn drop(&mut self) {
        for used in self.operations.fallbacks() {
            println!("fallback {} {}", used.call, used.code.map_or("other".to_owned(), |code| code.to_string()));
        }
    }
}

/// A driver stages, publishes, unpublishes and unstages a new disk, and repeats calls as kubelet does.
fn new_disk(node: &dyn TestNode, kind: DiskKind) {
    let own = OwnDisk::new(node, node.disk(kind).number);
    let disk = own.disk;
    for _ in 0..2 {
        own.run(&PartitionDisk { disk });
    }
    own.run(&SetDiskState { disk, online: true });
    let volume = own.volume();
    assert!(!own.run(&IsVolumeFormatted { volume }), "a new volume is not formatted");
    for _ in 0..2 {
        own.run(&FormatVolume::new(volume));
        assert!(own.run(&IsVolumeFormatted { volume }), "the volume is formatted");
    }
    let (staging, target) = (own.path("staging"), own.path("target"));
    own.run(&Mkdir { path: staging.clone(), context: None });
    for _ in 0..2 {
        own.run(&MountVolume { volume, target: staging.clone() });
    }
    own.run(&CreateSymlink { source: staging.clone(), target: target.clone() });
    assert_eq!(own.run(&GetVolumeIdFromTargetPath { target: target.clone() }), volume);
    node.write_file(&format!(r"{}\staging\file", own.directory), b"content");
    own.run(&WriteVolumeCache { volume });
    own.run(&Rmdir { path: target, context: None, force: false });
    own.run(&UnmountVolume { volume, target: staging.clone() });
    own.run(&Rmdir { path: staging, context: None, force: false });
    for online in [false, true] {
        own.run(&SetDiskState { disk, online });
        assert_eq!(own.run(&GetDiskState { disk }), online);
    }
    assert!(own.run(&IsVolumeFormatted { volume: own.volume() }), "the file system is still there");
}

/// A volume grows to a size, and then to the end of its disk.
fn grown_disk(node: &dyn TestNode) {
    let own = OwnDisk::new(node, node.volume(VolumeKind::Half).disk);
    let volume = own.volume();
    let before = own.run(&GetVolumeStats { volume }).total;
    let size = before + (512 << 20);
    for (size, least) in [(size, size - (64 << 20)), (0, 3 * before)] {
        own.run(&ResizeVolume::new(ResizeTarget::Volume(volume), size));
        let total = own.run(&GetVolumeStats { volume }).total;
        assert!(total > least, "{total} bytes of at least {least}");
    }
}

/// The daemon beside this program serves all pipes, and a second daemon ends.
fn daemon(node: &dyn TestNode) {
    let program = std::env::current_exe().expect("the path of the program").with_file_name("csi-proxy.exe");
    if !program.exists() {
        missing("csi-proxy.exe beside this program");
    }
    let serves = |pipe: &str| OpenOptions::new().read(true).write(true).open(format!(r"\\.\pipe\{pipe}")).is_ok();
    if GROUP_VERSIONS.iter().any(|version| serves(version.pipe())) {
        missing("pipes that no other program serves");
    }
    let start = || {
        let mut daemon = Command::new(&program);
        daemon.arg(format!("-kubelet-path={}", node.new_directory())).stdin(Stdio::null());
        Running(daemon.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("csi-proxy.exe starts"))
    };
    let _first = start();
    let serves_all = || GROUP_VERSIONS.iter().all(|version| serves(version.pipe()));
    assert!((0..200).any(|_| serves_all() || tick()), "each of the {} pipes opens", GROUP_VERSIONS.len());
    // Wine lets both processes take the name of a pipe.
    if node.system() == System::Windows {
        let mut second = start();
        let mut has_ended = || second.0.try_wait().expect("the state of the process").is_some();
        assert!((0..200).any(|_| has_ended() || tick()), "the second daemon ends");
    }
}

/// Waits for a moment and returns `false`, for the condition of a loop.
fn tick() -> bool {
    thread::sleep(Duration::from_millis(100));
    false
}

/// A process that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
