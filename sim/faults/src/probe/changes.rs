//! The calls that can change the node, and the programs in production that make the same calls.

/// Stands for a program if no public one is known to make a call in the same form.
const NOBODY: &str = "nobody known";

/// A form in which csi-proxy calls a primitive that can change the node.
struct Change {
    /// The name of the primitive, as in [`Call::primitive`](super::Call::primitive).
    primitive: &'static str,
    /// The call of Windows, with the parameters on which its outcome depends.
    form: &'static str,
    /// A program in production that makes this call, with its repository and file, or [`NOBODY`].
    program: &'static str,
    /// What csi-proxy does differently, and what it does if the call fails.
    difference: &'static str,
}

const fn change(
    primitive: &'static str,
    form: &'static str,
    program: &'static str,
    difference: &'static str,
) -> Change {
    Change { primitive, form, program, difference }
}

const GO_DISK: &str = "the Go program, `pkg/wmi/disk.go`";
const GO_ISCSI: &str = "the Go program, `pkg/wmi/iscsi.go`";
const GO_SMB: &str = "the Go program, `pkg/wmi/smb.go`";
const GO_VOLUME: &str = "the Go program, `pkg/os/volume/api.go`";
const GO_VOLUME_1_0: &str = "the Go program 1.0.2, `pkg/os/volume/api.go`";
const GO_ROOT: &str = "`os.Root` of Go, golang/go `src/internal/syscall/windows/at_windows.go`";
const GO_SERVICES: &str = "containerd and others with golang/sys `windows/svc/mgr/service.go`";
const RUST_FS: &str = "`std::fs` of Rust, rust-lang/rust `library/std/src/sys/fs/windows.rs`";
const IMAGE_MOUNTER: &str = "ArsenalRecon/Arsenal-Image-Mounter `Managed Source/Arsenal.ImageMounter/API.cs`";

const NONE: &str = "";
const FALLBACK: &str = "called only as a fallback";
const HELD_DISK: &str = "a handle without rights to the data of the disk stays open meanwhile";
const HELD_DIRECTORY: &str = "the directory stays open meanwhile, without sharing deletion; after 32, closed";

/// All forms.
const CHANGES: [Change; 42] = [
    change(
        "open_child",
        "`NtCreateFile` of a directory: `FILE_CREATE`, `FILE_DIRECTORY_FILE`",
        "containerd with microsoft/hcsshim `internal/safefile/safeopen.go`",
        "with `FILE_OPEN_REPARSE_POINT` too, as `os.Root` of Go creates links",
    ),
    change(
        "open_child",
        "`NtCreateFile` of a link: `FILE_CREATE`, `FILE_OPEN_REPARSE_POINT`, `FILE_DELETE_ON_CLOSE`",
        NOBODY,
        "then without `FILE_DELETE_ON_CLOSE`, as `os.Root` of Go",
    ),
    change(
        "control FSCTL_SET_REPARSE_POINT",
        "`IO_REPARSE_TAG_SYMLINK` for the handle that has created the file or directory",
        GO_ROOT,
        "for a handle with `FILE_DELETE_ON_CLOSE`, nobody known; then for one without",
    ),
    change(
        "set DispositionEx",
        "`FILE_DISPOSITION_ON_CLOSE` alone, which keeps the new link",
        NOBODY,
        "then the link is created without `FILE_DELETE_ON_CLOSE`",
    ),
    change(
        "set DispositionEx",
        "`FILE_DISPOSITION_DELETE`, `POSIX_SEMANTICS`, `IGNORE_READONLY_ATTRIBUTE`",
        RUST_FS,
        "deletion is shared only after 32; after 1, 50 or 87, `FileDispositionInfo`, as Rust and Go",
    ),
    change("set Disposition", "`DeleteFile`", RUST_FS, NONE),
    change(
        "set Basic",
        "no read-only attribute, before `FileDispositionInfo`",
        GO_ROOT,
        "`FILE_ATTRIBUTE_NORMAL` on the same handle; Go opens another one and keeps the other attributes",
    ),
    change("set_volume_mount_point", "`SetVolumeMountPointW`", GO_VOLUME, HELD_DIRECTORY),
    change("delete_volume_mount_point", "`DeleteVolumeMountPointW`", GO_VOLUME, HELD_DIRECTORY),
    change("wmi call MSFT_Partition.AddAccessPath", "`AccessPath`", GO_VOLUME_1_0, FALLBACK),
    change("wmi call MSFT_Partition.RemoveAccessPath", "`AccessPath`", GO_VOLUME_1_0, FALLBACK),
    change(
        "flush",
        "`FlushFileBuffers` of a volume",
        "`sync` of uutils/coreutils, `src/uu/sync/src/sync.rs`",
        "then `MSFT_Volume.Flush`, as the Go program",
    ),
    change("wmi call MSFT_Volume.Flush", "", "the Go program, `pkg/wmi/volume.go`", FALLBACK),
    change(
        "control DISK_SET_DISK_ATTRIBUTES",
        "offline and read-only at once; `Version` 40; `Persist`",
        "ArsenalRecon/Arsenal-Image-Mounter `Unmanaged Source/aim_ll/aimcmd.cpp`",
        "with `Persist`, nobody known; then `MSFT_Disk.Online` and so on, as the Go program",
    ),
    change(
        "control DISK_UPDATE_PROPERTIES",
        "",
        "Ceph for Windows, cloudbase/wnbd `libwnbd/libwnbd.cpp`",
        "on handles without rights too; when a partition grows, then `MSFT_Disk.Refresh`",
    ),
    change(
        "control FSCTL_EXTEND_VOLUME",
        "the number of sectors, for the device of the volume",
        "veracrypt/VeraCrypt `src/ExpandVolume/ExpandVolume.c`",
        "open for writing too; only to complete an interrupted growth, which the Go program does not",
    ),
    change(
        "reenumerate",
        "`CM_Reenumerate_DevNode` of each storage port",
        IMAGE_MOUNTER,
        "of adapters of others, nobody known; `UpdateHostStorageCache` in any case, as the Go program",
    ),
    change("wmi call MSFT_StorageSetting.UpdateHostStorageCache", "", GO_DISK, NONE),
    change("wmi call MSFT_Disk.Initialize", "`PartitionStyle` 2 (GPT)", GO_DISK, HELD_DISK),
    change(
        "wmi call MSFT_Disk.CreatePartition",
        "`UseMaximumSize`, `GptType` of basic data, no drive letter, not hidden, not active",
        "the Go program, `pkg/os/disk/api.go`",
        HELD_DISK,
    ),
    change("wmi call MSFT_Disk.Refresh", "", GO_DISK, NONE),
    change("wmi call MSFT_Disk.Online", "", GO_DISK, FALLBACK),
    change("wmi call MSFT_Disk.Offline", "", GO_DISK, FALLBACK),
    change(
        "wmi call MSFT_Disk.SetAttributes",
        "`IsReadOnly` false",
        "openstack/os-win `os_win/utils/storage/diskutils.py`",
        FALLBACK,
    ),
    change("wmi call MSFT_Partition.Online", "", "the Go program, `pkg/wmi/volume.go`", NONE),
    change(
        "wmi call MSFT_Partition.Resize",
        "`Size`",
        "the Go program, `pkg/wmi/volume.go`",
        "the disk stays open for reading meanwhile, shared with everyone",
    ),
    change(
        "wmi call MSFT_Volume.Format",
        "`FileSystem` NTFS, not `Full`, `Force`",
        GO_VOLUME,
        "without a label, as the Go program 1.1; newer ones pass an empty label",
    ),
    change("wmi call MSFT_SmbGlobalMapping.Create", "`RemotePath`, `RequirePrivacy`, `Credential`", GO_SMB, NONE),
    change(
        "wmi call MSFT_SmbGlobalMapping.Create",
        "the same and `Persistent` false",
        NOBODY,
        "called only as a fallback, after 1312",
    ),
    change("wmi call MSFT_SmbGlobalMapping.Remove", "`Force` true", GO_SMB, NONE),
    change(
        "wmi call MSFT_SmbGlobalMapping.Remove",
        "`Force` false",
        NOBODY,
        "none: the mapping stays, which the Go program does not remove in these cases",
    ),
    change("wmi call MSFT_iSCSITargetPortal.New", "address and port", GO_ISCSI, NONE),
    change("wmi call MSFT_iSCSITargetPortal.Remove", "address and port", GO_ISCSI, NONE),
    change(
        "wmi call MSFT_iSCSITargetPortal.Update",
        "address and port",
        NOBODY,
        "the Go program lists the targets without it",
    ),
    change(
        "wmi call MSFT_iSCSITarget.Connect",
        "`NodeAddress`, address, port, `AuthenticationType`, `ChapUsername`, `ChapSecret`",
        GO_ISCSI,
        "an empty user or secret is left out",
    ),
    change("wmi call MSFT_iSCSITarget.Disconnect", "`SessionIdentifier`", GO_ISCSI, NONE),
    change("wmi call MSFT_iSCSISession.Unregister", "", GO_ISCSI, NONE),
    change("wmi call MSFT_iSCSISession.SetCHAPSecret", "`ChapSecret`", GO_ISCSI, NONE),
    change("service start", "`StartServiceW`", GO_SERVICES, NONE),
    change("service stop", "`ControlService` with `SERVICE_CONTROL_STOP`", GO_SERVICES, NONE),
    change(
        "set_volatile_text",
        "`RegCreateKeyExW` with `REG_OPTION_VOLATILE`, `RegSetValueExW`",
        "containerd with microsoft/hcsshim `internal/regstate/regstate.go`",
        "for setting values only; after an error, the record is missing",
    ),
    change(
        "delete_registry_value",
        "`RegDeleteKeyValueW`",
        NOBODY,
        "`RegDeleteValueW` of the open key is common; after an error, the record stays",
    ),
];

/// Returns whether the table has the primitive.
pub(super) fn is_listed(primitive: &str) -> bool {
    CHANGES.iter().any(|change| change.primitive == primitive)
}

/// Returns the table of all calls that can change the node, in Markdown.
pub fn change_table() -> String {
    let head = "| primitive | call | in production | difference |\n|---|---|---|---|\n";
    let line = |Change { primitive, form, program, difference }: &Change| {
        format!("| `{primitive}` | {form} | {program} | {difference} |\n")
    };
    CHANGES.iter().map(line).fold(head.to_owned(), |table, line| table + &line)
}

#[cfg(test)]
mod tests {
    use super::change_table;

    #[test]
    fn the_documentation_has_the_table_of_all_changes() {
        let page = include_str!("../../../../docs/windows.md");
        assert!(page.contains(&change_table()), "docs/windows.md must contain:\n{}", change_table());
    }
}
