//! Error texts: what was attempted, on which object.

use crate::setup::{has_code, path, probed, refused, resize, says, secret_text};
use faults::{Fault, FaultAction, When};
use os::OsError;
use storage_ops::{
    AddTargetPortal, Authentication, ConnectTarget, CreateSymlink, DisconnectTarget,
    DiscoverTargetPortal, DiskNumber,
    ErrorKind::{FailedPrecondition, InvalidArgument},
    FormatVolume, GetBiosSerialNumber, GetClosestVolumeIdFromTargetPath, GetDiskNumberByName,
    GetDiskNumberFromVolumeId, GetDiskState, GetDiskStats, GetService, GetTargetDisks,
    GetVolumeIdFromTargetPath, GetVolumeStats, HostPath, Iqn, IsSymlink, IsVolumeFormatted,
    ListDiskIds, ListDiskLocations, ListTargetPortals, ListVolumesOnDisk, Mkdir, MountVolume,
    NewSmbGlobalMapping, Node, Operation, OperationError, PartitionDisk, PathExists,
    RemoveSmbGlobalMapping, RemoveTargetPortal, Rescan, ResizeTarget, ResizeVolume, Rmdir,
    RmdirContents, SecretText, ServiceName, SetDiskState, SetMutualChapSecret, SmbUser,
    StartService, StopService, TargetPortal, UncPath, UnmountVolume, VolumeId, WriteVolumeCache,
};

#[test]
fn a_request_that_cannot_be_parsed_is_refused_with_the_reason() {
    let error = DiskNumber::parse("eins").unwrap_err();
    assert_eq!(error.to_string(), r#""eins" is not a disk number"#);
    let error = error.in_request_of("PartitionDisk");
    assert_eq!(error.kind(), InvalidArgument);
    assert_eq!(
        error.to_string(),
        r#"bad PartitionDisk request: "eins" is not a disk number"#
    );
}

/// Checks that `operation` fails on a node on which every primitive call fails, and that the error
/// begins with `attempt`.
fn fails_to(operation: &impl Operation, attempt: &str) {
    let sentence = failing_with(OsError::IO_DEVICE)
        .run(operation)
        .expect_err(attempt)
        .to_string();
    assert!(
        sentence.starts_with(&format!("cannot {attempt}: ")),
        "{sentence:?} does not begin with {attempt:?}"
    );
    texts::seen!(sentence);
}

fn failing_with(code: OsError) -> Node {
    probed(
        &os_sim::node().build(),
        Fault::each(|_| true, When::Before, FaultAction::Fail(code)),
    )
}

const VOLUME: &str = r"\\?\Volume{12345678-9abc-4def-8123-456789abcdef}\";

#[test]
fn a_path_error_names_the_path() {
    let (a, b) = (path(r"\pods\a"), path(r"\plugins\b"));
    fails_to(
        &PathExists {
            path: a.clone(),
            context: None,
        },
        r"check whether C:\var\lib\kubelet\pods\a exists",
    );
    fails_to(
        &Mkdir {
            path: a.clone(),
            context: None,
        },
        r"create the directory C:\var\lib\kubelet\pods\a",
    );
    fails_to(
        &Rmdir {
            path: a.clone(),
            context: None,
            force: true,
        },
        r"remove C:\var\lib\kubelet\pods\a",
    );
    fails_to(
        &RmdirContents { path: a.clone() },
        r"remove the contents of C:\var\lib\kubelet\pods\a",
    );
    fails_to(
        &IsSymlink { path: a.clone() },
        r"check whether C:\var\lib\kubelet\pods\a is a link or mount point",
    );
    fails_to(
        &CreateSymlink {
            source: b,
            target: a,
        },
        r"create a link to C:\var\lib\kubelet\plugins\b at C:\var\lib\kubelet\pods\a",
    );
}

#[test]
fn a_disk_error_names_the_disk_and_the_requested_state() {
    let disk = DiskNumber(3);
    fails_to(&ListDiskLocations, "list the locations of the disks");
    fails_to(&ListDiskIds, "list the identifiers of the disks");
    fails_to(
        &GetDiskNumberByName {
            name: "pvc-x".into(),
        },
        r#"find the disk named "pvc-x""#,
    );
    fails_to(&GetDiskStats { disk }, "query the size of disk 3");
    fails_to(&GetDiskState { disk }, "query the state of disk 3");
    fails_to(&SetDiskState { disk, online: true }, "bring disk 3 online");
    fails_to(
        &SetDiskState {
            disk,
            online: false,
        },
        "take disk 3 offline",
    );
    fails_to(&PartitionDisk { disk }, "partition disk 3");
    fails_to(&Rescan, "rescan for disks");
}

#[test]
fn a_volume_error_names_the_volume_with_its_target_or_size() {
    let (disk, volume, target) = (
        DiskNumber(3),
        VolumeId::parse(VOLUME).unwrap(),
        path(r"\plugins\v"),
    );
    let at = r"C:\var\lib\kubelet\plugins\v";
    fails_to(
        &ListVolumesOnDisk { disk, partition: 0 },
        "list the volumes on disk 3",
    );
    fails_to(
        &ListVolumesOnDisk { disk, partition: 2 },
        "list the volumes on partition 2 of disk 3",
    );
    let first = ResizeTarget::FirstVolumeOfDisk(disk);
    fails_to(
        &ResizeVolume::new(first, 0),
        "resize the first volume of disk 3 to its maximum",
    );
    fails_to(
        &IsVolumeFormatted { volume },
        &format!("check whether volume {VOLUME} is formatted"),
    );
    fails_to(
        &FormatVolume::new(volume),
        &format!("format volume {VOLUME}"),
    );
    fails_to(
        &MountVolume {
            volume,
            target: target.clone(),
        },
        &format!("mount volume {VOLUME} at {at}"),
    );
    fails_to(
        &UnmountVolume {
            volume,
            target: target.clone(),
        },
        &format!("unmount volume {VOLUME} from {at}"),
    );
    fails_to(
        &resize(volume, 0),
        &format!("resize volume {VOLUME} to its maximum"),
    );
    fails_to(
        &resize(volume, 4096),
        &format!("resize volume {VOLUME} to 4096 bytes"),
    );
    fails_to(
        &GetVolumeStats { volume },
        &format!("query the size of volume {VOLUME}"),
    );
    fails_to(
        &GetDiskNumberFromVolumeId { volume },
        &format!("find the disk of volume {VOLUME}"),
    );
    fails_to(
        &WriteVolumeCache { volume },
        &format!("write the cache of volume {VOLUME}"),
    );
    fails_to(
        &GetVolumeIdFromTargetPath {
            target: target.clone(),
        },
        r"find the volume mounted at C:\var\lib\kubelet\plugins\v",
    );
    fails_to(
        &GetClosestVolumeIdFromTargetPath { target },
        r"find the volume that C:\var\lib\kubelet\plugins\v is on",
    );
}

#[test]
fn an_iscsi_error_names_the_portal_and_the_target() {
    let (portal, iqn) = (
        TargetPortal::parse("10.0.0.5", 0).unwrap(),
        Iqn::parse("iqn.2024-01.test:x").unwrap(),
    );
    fails_to(
        &AddTargetPortal {
            portal: portal.clone(),
        },
        "add the target portal 10.0.0.5:3260",
    );
    fails_to(
        &DiscoverTargetPortal {
            portal: portal.clone(),
        },
        "discover the targets of the portal 10.0.0.5:3260",
    );
    fails_to(
        &RemoveTargetPortal {
            portal: portal.clone(),
        },
        "remove the target portal 10.0.0.5:3260",
    );
    fails_to(&ListTargetPortals, "list the target portals");
    fails_to(
        &ConnectTarget {
            portal: portal.clone(),
            iqn: iqn.clone(),
            authentication: Authentication::None,
            username: SecretText::default(),
            secret: SecretText::default(),
        },
        "connect to the target iqn.2024-01.test:x at 10.0.0.5:3260",
    );
    fails_to(
        &DisconnectTarget {
            portal: portal.clone(),
            iqn: iqn.clone(),
        },
        "disconnect from the target iqn.2024-01.test:x at 10.0.0.5:3260",
    );
    fails_to(
        &GetTargetDisks { portal, iqn },
        "list the disks of the target iqn.2024-01.test:x at 10.0.0.5:3260",
    );
    fails_to(
        &SetMutualChapSecret {
            secret: secret_text("secret-secret"),
        },
        "set the secret for mutual CHAP",
    );
}

#[test]
fn a_mapping_error_names_the_share_and_the_link() {
    let remote = UncPath::parse(r"\\files\one").unwrap();
    let mapping = NewSmbGlobalMapping {
        remote: remote.clone(),
        local: None,
        user: SmbUser::parse("user").unwrap(),
        password: secret_text("pw"),
    };
    fails_to(&mapping, r"map \\files\one");
    fails_to(
        &NewSmbGlobalMapping {
            local: Some(path(r"\plugins\s")),
            ..mapping
        },
        r"map \\files\one at C:\var\lib\kubelet\plugins\s",
    );
    fails_to(
        &RemoveSmbGlobalMapping { remote },
        r"remove the mapping of \\files\one",
    );
}

fn name() -> ServiceName {
    ServiceName::parse("MSiSCSI").unwrap()
}

#[test]
fn a_service_error_names_the_service() {
    fails_to(&GetService { name: name() }, "query the service MSiSCSI");
    fails_to(&StartService { name: name() }, "start the service MSiSCSI");
    fails_to(
        &StopService {
            name: name(),
            force: false,
        },
        "stop the service MSiSCSI",
    );
    fails_to(&GetBiosSerialNumber, "query the BIOS serial number");
}

#[test]
fn a_refused_path_reads_as_it_was_sent() {
    let error = HostPath::parse(r"C:\\a\b..\c?").unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"the path "C:\\a\b..\c?" contains a component that ends with a space or a dot"#
    );
    let error = HostPath::parse("C:\\a\nb").unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"the path "C:\a\u{a}b" contains the character "\u{a}""#
    );
    let error = UncPath::parse(r"\host\share").unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"the remote path "\host\share" does not begin with \\"#
    );
}

#[test]
fn misleading_characters_in_an_error_are_escaped() {
    fails_to(
        &Mkdir {
            path: path("\\pods\\a\u{202e}\u{2028}\u{9b}"),
            context: None,
        },
        r"create the directory C:\var\lib\kubelet\pods\a\u{202e}\u{2028}\u{9b}",
    );
    let reason = OperationError::invalid("the server \u{202e} did not answer");
    assert_eq!(reason.to_string(), r"the server \u{202e} did not answer");
}

#[test]
fn a_feature_that_windows_lacks_is_named_by_its_wmi_class() {
    let sim = os_sim::node().iscsi_portal("10.0.0.5", 3260).build();
    let portal = TargetPortal::parse("10.0.0.5", 0).unwrap();
    for code in [OsError::WBEM_INVALID_CLASS, OsError::WBEM_INVALID_NAMESPACE] {
        let lacking = |primitive| {
            let at = Fault::each(
                move |call| call.primitive.starts_with(primitive),
                When::Before,
                FaultAction::Fail(code),
            );
            probed(&sim, at)
        };
        let kind = FailedPrecondition;
        let errors = [
            (
                refused(&lacking("wmi query"), &ListTargetPortals, kind),
                "MSFT_iSCSITargetPortal",
            ),
            (
                refused(&lacking("wmi query"), &ListDiskLocations, kind),
                "MSFT_Disk",
            ),
            (
                refused(
                    &lacking("wmi call"),
                    &AddTargetPortal {
                        portal: portal.clone(),
                    },
                    kind,
                ),
                "MSFT_iSCSITargetPortal",
            ),
        ];
        for (error, class) in errors {
            let sentence =
                format!("this Windows lacks the feature that provides the WMI class {class}: ");
            says(&error, &sentence);
            has_code(&error, code);
        }
    }
}
