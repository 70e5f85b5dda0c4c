//! What a failure says: what was attempted, on what, in which direction.

use crate::setup::path;
use faults::{Fault, FaultAction, When};
use os::OsError;
use storage_ops::{
    AddTargetPortal, Authentication, ConnectTarget, CreateSymlink, DisconnectTarget, DiscoverTargetPortal, DiskNumber,
    FormatVolume, GetBiosSerialNumber, GetClosestVolumeIdFromTargetPath, GetDiskNumberByName,
    GetDiskNumberFromVolumeId, GetDiskState, GetDiskStats, GetService, GetTargetDisks, GetVolumeIdFromTargetPath,
    GetVolumeStats, Iqn, IsSymlink, IsVolumeFormatted, Kind, ListDiskIds, ListDiskLocations, ListTargetPortals,
    ListVolumesOnDisk, Mkdir, MountVolume, NewSmbGlobalMapping, Node, Operation, PartitionDisk, PathExists, Portal,
    RemoveSmbGlobalMapping, RemoveTargetPortal, Rescan, ResizeFirstVolume, ResizeVolume, Rmdir, RmdirContents, Secret,
    ServiceName, SetDiskState, SetMutualChapSecret, StartService, StopService, UncPath, UnmountVolume, VolumeId,
    WriteVolumeCache,
};

#[test]
fn a_request_that_cannot_be_read_is_refused_with_the_reason() {
    let fault = DiskNumber::parse("eins").unwrap_err();
    assert_eq!(fault.to_string(), r#""eins" is not a disk number"#);
    let error = fault.in_request_of("PartitionDisk");
    assert_eq!(error.kind(), Kind::InvalidArgument);
    assert_eq!(error.to_string(), r#"bad PartitionDisk request: "eins" is not a disk number"#);
}

#[test]
fn a_code_of_windows_tells_the_caller_what_it_can_conclude_and_is_in_the_sentence() {
    for (code, kind) in [
        (OsError::PATH_NOT_FOUND, Kind::NotFound),
        (OsError::DELETE_PENDING, Kind::NotFound),
        (OsError::ACCESS_DENIED, Kind::PermissionDenied),
        (OsError::LOGON_FAILURE, Kind::PermissionDenied),
        (OsError::ALREADY_EXISTS, Kind::AlreadyExists),
        (OsError::INVALID_NAME, Kind::InvalidArgument),
        (OsError::FILENAME_EXCED_RANGE, Kind::InvalidArgument),
        (OsError::SHARING_VIOLATION, Kind::FailedPrecondition),
        (OsError::DISK_FULL, Kind::FailedPrecondition),
        (OsError::IO_DEVICE, Kind::Internal),
        (OsError(4711), Kind::Internal),
    ] {
        let look = IsSymlink { path: path(r"\pods\a") };
        let error = crate::setup::refused(&failing_with(code).0, &look, kind);
        assert_eq!(error.code(), Some(code));
        assert!(error.to_string().ends_with(&code.to_string()), "{error}");
    }
}

/// A node on which nothing works, and the sentences in which operations on it fail.
struct Broken(Node);

impl Broken {
    fn says(&self, operation: &impl Operation, attempt: &str) {
        let sentence = self.0.run(operation).expect_err(attempt).to_string();
        assert!(sentence.starts_with(&format!("cannot {attempt}: ")), "{sentence:?} is not about {attempt:?}");
    }
}

fn broken() -> Broken {
    failing_with(OsError::IO_DEVICE)
}

fn failing_with(code: OsError) -> Broken {
    let all = Fault::each(|_| true, When::Before, FaultAction::Fail(code));
    Broken(crate::setup::probed(&os_sim::node().build(), all))
}

const VOLUME: &str = r"\\?\Volume{12345678-9abc-4def-8123-456789abcdef}\";

#[test]
fn a_failure_of_a_path_names_it() {
    let broken = broken();
    let (a, b) = (path(r"\pods\a"), path(r"\plugins\b"));
    broken.says(&PathExists { path: a.clone(), context: None }, r"look for C:\var\lib\kubelet\pods\a");
    broken.says(&Mkdir { path: a.clone(), context: None }, r"make the directory C:\var\lib\kubelet\pods\a");
    broken.says(&Rmdir { path: a.clone(), context: None, force: true }, r"remove C:\var\lib\kubelet\pods\a");
    broken.says(&RmdirContents { path: a.clone() }, r"empty C:\var\lib\kubelet\pods\a");
    broken.says(&IsSymlink { path: a.clone() }, r"tell whether C:\var\lib\kubelet\pods\a is a link or mount point");
    broken.says(
        &CreateSymlink { source: b, target: a },
        r"make a link to C:\var\lib\kubelet\plugins\b at C:\var\lib\kubelet\pods\a",
    );
}

#[test]
fn a_failure_of_a_disk_names_it_and_the_state_it_was_to_have() {
    let broken = broken();
    let disk = DiskNumber(3);
    broken.says(&ListDiskLocations, "list the locations of disks");
    broken.says(&ListDiskIds, "list the identifiers of disks");
    broken.says(&GetDiskNumberByName { name: "pvc-x".into() }, r#"find the disk "pvc-x""#);
    broken.says(&GetDiskStats { disk }, "read the size of disk 3");
    broken.says(&GetDiskState { disk }, "read the state of disk 3");
    broken.says(&SetDiskState { disk, online: true }, "bring online disk 3");
    broken.says(&SetDiskState { disk, online: false }, "take offline disk 3");
    broken.says(&PartitionDisk { disk }, "partition disk 3");
    broken.says(&Rescan, "look for new disks");
}

#[test]
fn a_name_from_a_request_is_cut_between_two_characters() {
    let broken = broken();
    // The 80th byte is the first half of a letter.
    let name = format!("x{}", "\u{e4}".repeat(200));
    broken.says(&GetDiskNumberByName { name }, &format!("find the disk {:?}", format!("x{}", "\u{e4}".repeat(39))));
}

#[test]
fn a_failure_of_a_volume_names_it_and_where_it_was_to_be_or_how_large() {
    let broken = broken();
    let (disk, volume, target) = (DiskNumber(3), VolumeId::parse(VOLUME).unwrap(), path(r"\plugins\v"));
    let at = r"C:\var\lib\kubelet\plugins\v";
    broken.says(&ListVolumesOnDisk { disk, partition: 0 }, "list the volumes on disk 3");
    broken.says(&ListVolumesOnDisk { disk, partition: 2 }, "list the volumes on partition 2 of disk 3");
    broken.says(&ResizeFirstVolume { disk, size: 0 }, "resize the first volume of disk 3");
    broken.says(&IsVolumeFormatted { volume }, &format!("tell whether volume {VOLUME} is formatted"));
    broken.says(&FormatVolume { volume }, &format!("format volume {VOLUME}"));
    broken.says(&MountVolume { volume, target: target.clone() }, &format!("mount volume {VOLUME} at {at}"));
    broken.says(&UnmountVolume { volume, target: target.clone() }, &format!("unmount volume {VOLUME} from {at}"));
    broken.says(&ResizeVolume { volume, size: 0 }, &format!("resize volume {VOLUME} to its maximum"));
    broken.says(&ResizeVolume { volume, size: 4096 }, &format!("resize volume {VOLUME} to 4096 bytes"));
    broken.says(&GetVolumeStats { volume }, &format!("read the size of volume {VOLUME}"));
    broken.says(&GetDiskNumberFromVolumeId { volume }, &format!("find the disk of volume {VOLUME}"));
    broken.says(&WriteVolumeCache { volume }, &format!("write the cache of volume {VOLUME}"));
    broken.says(
        &GetVolumeIdFromTargetPath { target: target.clone() },
        r"find the volume mounted at C:\var\lib\kubelet\plugins\v",
    );
    broken
        .says(&GetClosestVolumeIdFromTargetPath { target }, r"find the volume that C:\var\lib\kubelet\plugins\v is on");
}

#[test]
fn a_failure_of_iscsi_names_the_portal_and_the_target() {
    let broken = broken();
    let (portal, iqn) = (Portal::parse("10.0.0.5", 0).unwrap(), Iqn::parse("iqn.2024-01.test:x").unwrap());
    broken.says(&AddTargetPortal { portal: portal.clone() }, "add the target portal 10.0.0.5:3260");
    broken.says(&DiscoverTargetPortal { portal: portal.clone() }, "discover the targets of the portal 10.0.0.5:3260");
    broken.says(&RemoveTargetPortal { portal: portal.clone() }, "remove the target portal 10.0.0.5:3260");
    broken.says(&ListTargetPortals, "list the target portals");
    broken.says(
        &ConnectTarget {
            portal: portal.clone(),
            iqn: iqn.clone(),
            authentication: Authentication::None,
            username: String::new(),
            secret: Secret::new(String::new()),
        },
        "connect to the target iqn.2024-01.test:x at 10.0.0.5:3260",
    );
    broken.says(
        &DisconnectTarget { portal: portal.clone(), iqn: iqn.clone() },
        "disconnect from the target iqn.2024-01.test:x at 10.0.0.5:3260",
    );
    broken.says(&GetTargetDisks { portal, iqn }, "list the disks of the target iqn.2024-01.test:x at 10.0.0.5:3260");
    broken.says(&SetMutualChapSecret { secret: Secret::new("secret-secret".into()) }, "set the secret for mutual CHAP");
}

#[test]
fn a_failure_of_a_mapping_names_the_share_and_the_link() {
    let broken = broken();
    let remote = UncPath::parse(r"\\files\one").unwrap();
    let mapping = NewSmbGlobalMapping {
        remote: remote.clone(),
        local: None,
        username: "user".into(),
        password: Secret::new("pw".into()),
    };
    broken.says(&mapping, r"map \\files\one");
    broken.says(
        &NewSmbGlobalMapping { local: Some(path(r"\plugins\s")), ..mapping },
        r"map \\files\one at C:\var\lib\kubelet\plugins\s",
    );
    broken.says(&RemoveSmbGlobalMapping { remote }, r"remove the mapping of \\files\one");
}

#[test]
fn a_failure_of_a_service_names_it_and_what_was_to_become_of_it() {
    let broken = broken();
    let name = || ServiceName::parse("MSiSCSI").unwrap();
    broken.says(&GetService { name: name() }, "read the service MSiSCSI");
    broken.says(&StartService { name: name() }, "start the service MSiSCSI");
    broken.says(&StopService { name: name(), force: false }, "stop the service MSiSCSI");
    broken.says(&GetBiosSerialNumber, "read the BIOS serial number");
}
