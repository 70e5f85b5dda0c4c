//! The acceptance: the calls of a driver, from the raw disk to the grown file system.
//!
//! The calls run in this program with the library that the daemon consists of, so that a daemon on
//! the machine is no obstacle. They are checks like those of facts, which the program runs and
//! reports in the same way.

use facts::{DiskKind, Fact, TestNode, VolumeKind};
use os::{Access, NtPath, Open, Options};
use storage_ops::{
    Config, CreateSymlink, DiskNumber, FormatVolume, GetDiskNumberFromVolumeId, GetDiskState,
    GetVolumeIdFromTargetPath, GetVolumeStats, HostPath, IsVolumeFormatted, ListVolumesOnDisk,
    Mkdir, MountVolume, Node, Operation, PartitionDisk, ResizeTarget, ResizeVolume, Rmdir,
    SetDiskState, UnmountVolume, VolumeId, WriteVolumeCache,
};

/// The checks of the acceptance.
pub const ACCEPTANCE: [Fact; 3] = [
    Fact::new("ACCEPTANCE-DISK", |node| new_disk(node, DiskKind::Raw)),
    Fact::new("ACCEPTANCE-DISK-4KN", |node| {
        new_disk(node, DiskKind::FourKn);
    }),
    Fact::new("ACCEPTANCE-GROW", grown_disk),
];

/// csi-proxy's operations on one disk for tests.
struct OwnDisk<'a> {
    node: &'a dyn TestNode,
    operations: Node,
    disk: DiskNumber,
    directory: String,
}

impl<'a> OwnDisk<'a> {
    fn new(node: &'a dyn TestNode, number: u32) -> Self {
        let directory = node.new_directory();
        let working_dirs = vec![HostPath::parse(&directory).expect("a path")];
        let operations = Node::new(
            node.process(),
            Config::default().with(|c| c.working_dirs = working_dirs),
        );
        operations.test_path_lookup();
        Self {
            node,
            operations,
            disk: DiskNumber(number),
            directory,
        }
    }

    /// Runs an operation, after proving that the number still means the disk for tests.
    #[track_caller]
    fn run<O: Operation>(&self, operation: &O) -> O::Output {
        let how = Open::existing(Access::GENERIC_READ, Options::empty());
        let device = self
            .node
            .os()
            .open(&NtPath::disk(self.disk.0), &how)
            .expect("the disk opens");
        assert!(self.node.is_own(&*device), "the disk for tests has gone");
        drop(device);
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
        let volumes = self.run(&ListVolumesOnDisk {
            disk: self.disk,
            partition: 0,
        });
        let [volume] = volumes[..] else {
            panic!("{} volumes", volumes.len())
        };
        assert_eq!(self.run(&GetDiskNumberFromVolumeId { volume }), self.disk);
        volume
    }
}

impl Drop for OwnDisk<'_> {
    /// Prints the fallbacks that were used, as the first lines of the result.
    fn drop(&mut self) {
        for used in self.operations.fallbacks() {
            println!(
                "fallback {} {}",
                used.call,
                used.code
                    .map_or("other".to_owned(), |code| code.to_string())
            );
        }
    }
}

/// A driver stages, publishes, unpublishes and unstages a new disk, and repeats calls as kubelet
/// does.
fn new_disk(node: &dyn TestNode, kind: DiskKind) {
    let own = OwnDisk::new(node, node.disk(kind).number);
    let disk = own.disk;
    for _ in 0..2 {
        own.run(&PartitionDisk { disk });
    }
    own.run(&SetDiskState { disk, online: true });
    let volume = own.volume();
    assert!(
        !own.run(&IsVolumeFormatted { volume }),
        "a new volume is not formatted"
    );
    for _ in 0..2 {
        own.run(&FormatVolume::new(volume));
        assert!(
            own.run(&IsVolumeFormatted { volume }),
            "the volume is formatted"
        );
    }
    let (staging, target) = (own.path("staging"), own.path("target"));
    own.run(&Mkdir {
        path: staging.clone(),
        context: None,
    });
    for _ in 0..2 {
        own.run(&MountVolume {
            volume,
            target: staging.clone(),
        });
    }
    own.run(&CreateSymlink {
        source: staging.clone(),
        target: target.clone(),
    });
    assert_eq!(
        own.run(&GetVolumeIdFromTargetPath {
            target: target.clone()
        }),
        volume
    );
    node.write_file(&format!(r"{}\staging\file", own.directory), b"content");
    own.run(&WriteVolumeCache { volume });
    own.run(&Rmdir {
        path: target,
        context: None,
        force: false,
    });
    own.run(&UnmountVolume {
        volume,
        target: staging.clone(),
    });
    own.run(&Rmdir {
        path: staging,
        context: None,
        force: false,
    });
    for online in [false, true] {
        own.run(&SetDiskState { disk, online });
        assert_eq!(own.run(&GetDiskState { disk }), online);
    }
    assert!(
        own.run(&IsVolumeFormatted {
            volume: own.volume()
        }),
        "the file system is still there"
    );
}

/// The volume of a disk that has grown grows to a size, and then to the end of its disk.
fn grown_disk(node: &dyn TestNode) {
    let own = OwnDisk::new(node, node.volume(VolumeKind::Grown).disk);
    let volume = own.volume();
    let before = own.run(&GetVolumeStats { volume }).total;
    for (size, least) in [
        (before + (512 << 20), before + (448 << 20)),
        (0, before + (2 << 30)),
    ] {
        own.run(&ResizeVolume::new(ResizeTarget::Volume(volume), size));
        let total = own.run(&GetVolumeStats { volume }).total;
        assert!(total > least, "{total} bytes of at least {least}");
    }
}
