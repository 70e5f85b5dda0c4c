//! A fact, its source and its check.

use crate::node::TestNode;

/// A check. It panics if the fact does not hold, and calls [`missing`](crate::missing) if the system lacks what it needs.
type Check = fn(&dyn TestNode);

/// How Windows behaves, in one sentence.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// The id, such as `FILE-OPEN-07`. It never changes its meaning.
    pub id: &'static str,
    /// The sentence.
    pub sentence: &'static str,
    /// Where the sentence comes from.
    pub origin: Origin,
    /// The check.
    pub check: Check,
    /// What Wine does instead or lacks, if the check fails there.
    pub wine: Option<&'static str>,
}

/// Where a fact comes from.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// Public sources: keys of [`SOURCES`], each with the place there; or addresses.
    Published(&'static str),
    /// No public source was found. The reason for the assumption, and why the operations are right if it is wrong.
    Assumed(&'static str),
}

impl Fact {
    /// Returns a fact with public sources.
    pub const fn published(id: &'static str, sentence: &'static str, source: &'static str, check: Check) -> Self {
        Self { id, sentence, origin: Origin::Published(source), check, wine: None }
    }

    /// Returns a fact for which no public source was found.
    pub const fn assumed(id: &'static str, sentence: &'static str, reason: &'static str, check: Check) -> Self {
        Self { id, sentence, origin: Origin::Assumed(reason), check, wine: None }
    }

    /// States what Wine does instead, or lacks.
    #[must_use]
    pub const fn wine(self, differs: &'static str) -> Self {
        Self { wine: Some(differs), ..self }
    }
}

/// The keys of the sources, each with what it stands for.
pub const SOURCES: &[(&str, &str)] = &[
    ("WF", "wine-mirror/wine dlls/ntdll/tests/file.c, as of 10.17; the name of the function follows"),
    ("WD", "wine-mirror/wine dlls/ntdll/tests/directory.c"),
    ("WV", "wine-mirror/wine dlls/kernel32/tests/volume.c"),
    ("WK", "wine-mirror/wine dlls/kernel32/tests/file.c"),
    ("WS", "wine-mirror/wine dlls/advapi32/tests/service.c"),
    ("BT", "maharmstone/btrfs src/tests/, a suite that also runs on NTFS; the name of the file follows"),
    ("FF", "microsoft/Windows-driver-samples filesys/fastfat, the FAT file system"),
    ("CL", "microsoft/Windows-driver-samples storage/class/classpnp/src/class.c and storage/class/disk/src/disk.c"),
    ("SDK", "MicrosoftDocs/sdk-api; the name of the page follows, as for the next four"),
    ("W32", "MicrosoftDocs/win32"),
    ("DDI", "MicrosoftDocs/windows-driver-docs-ddi"),
    ("DRV", "MicrosoftDocs/windows-driver-docs"),
    ("PS", "MicrosoftDocs/windows-powershell-docs"),
    (
        "GO",
        "golang/go: at = internal/syscall/windows/at_windows.go, root = os/root_windows_test.go, os = os/os_windows_test.go",
    ),
    ("MW", "microsoft/wmi, branch server2019: classes that were generated from Microsoft's MOF"),
    ("OW", "openstack/os-win"),
    ("HS", "microsoft/hcsshim"),
    ("WIO", "microsoft/go-winio"),
    ("UV", "libuv/libuv src/win/fs.c"),
];
