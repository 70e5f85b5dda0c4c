//! Tests of every documented code of SMB, iSCSI, the storage provider and disks, as a failed call
//! and as a return value: its words, its kind and its remedy.
//!
//! The kinds are written here from contract 7 and not from the tables of the code: what blames a
//! network, a server, credentials, media, a policy or the state of the node is never `Internal`,
//! which an alert reports as a defect of csi-proxy.

use std::ops::RangeInclusive;
use std::time::Duration;

use faults::{Fault, FaultAction, When};
use os::OsError;
use os_sim::Sim;
use storage_ops::{
    AddTargetPortal, Authentication, Config, DiscoverTargetPortal, ErrorKind, FormatVolume,
    GetVolumeStats, IsVolumeFormatted, Node, Operation,
};

use ErrorKind::{
    AlreadyExists, Busy, FailedPrecondition, Internal, InvalidArgument, NotFound, PermissionDenied,
    StillRunning,
};

use crate::iscsi;
use crate::setup::{
    GIB, MOUNT, PARTITION, both, failing, map, mount, node_on, ntfs, partitioned_disk, probed,
    raw_disk, refused, resize, volume_on,
};
use crate::smb_states;

const CREATE: &str = "wmi call MSFT_SmbGlobalMapping.Create";
const CONNECT: &str = "wmi call MSFT_iSCSITarget.Connect";
const FORMAT: &str = "wmi call MSFT_Volume.Format";

/// The codes that Microsoft's pages name for SMB connections and logons.
const SMB: [RangeInclusive<u32>; 49] = [
    5..=5,
    8..=8,
    50..=72,
    84..=86,
    88..=88,
    384..=384,
    1130..=1130,
    1201..=1203,
    1205..=1206,
    1208..=1208,
    1210..=1210,
    1212..=1212,
    1214..=1215,
    1219..=1220,
    1222..=1222,
    1225..=1226,
    1229..=1229,
    1231..=1240,
    1244..=1245,
    1255..=1256,
    1265..=1265,
    1272..=1272,
    1311..=1312,
    1326..=1332,
    1341..=1341,
    1351..=1351,
    1355..=1355,
    1380..=1380,
    1384..=1385,
    1394..=1398,
    1450..=1450,
    1453..=1453,
    1460..=1460,
    1786..=1790,
    1792..=1793,
    1807..=1809,
    1816..=1816,
    1907..=1909,
    1935..=1935,
    1937..=1937,
    2102..=2102,
    2138..=2138,
    2202..=2202,
    2242..=2242,
    2250..=2250,
    2401..=2402,
    2404..=2404,
    0x8004_1001..=0x8004_1001,
    0xc05d_0003..=0xc05d_0003,
];

fn kind_of_mapping(code: u32) -> ErrorKind {
    match code {
        5
        | 65
        | 86
        | 1239
        | 1240
        | 1244
        | 1245
        | 1272
        | 1326..=1332
        | 1380
        | 1384..=1385
        | 1793
        | 1807..=1809
        | 1907
        | 1909
        | 1935
        | 1937
        | 2242
        | 0xc05d_0003 => PermissionDenied,
        1210 | 1212 | 1214 | 1215 | 2202 => InvalidArgument,
        85 => AlreadyExists,
        67 | 2250 => NotFound,
        _ => FailedPrecondition,
    }
}

fn kind_of_iscsi(code: u32) -> ErrorKind {
    match code & 0xff {
        0x09 | 0x0a | 0x65 => PermissionDenied,
        0x48 | 0x4a..=0x4e | 0x51 => InvalidArgument,
        0x0b | 0x29 | 0x43 => NotFound,
        _ => FailedPrecondition,
    }
}

/// The return values of the methods of `MSFT_Disk`, `MSFT_Partition` and `MSFT_Volume`.
const PROVIDER: [RangeInclusive<u32>; 14] = [
    1..=8,
    4096..=4099,
    40000..=40007,
    40018..=40018,
    41000..=41019,
    42000..=42002,
    42004..=42013,
    43000..=43016,
    43020..=43021,
    46000..=46001,
    47000..=47000,
    48007..=48007,
    50003..=50003,
    59000..=59000,
];

fn kind_of_provider(value: u32) -> ErrorKind {
    match value {
        3 | 4096 => StillRunning,
        6 | 4099 | 43010 => Busy,
        40001 | 41009 | 42006 | 42010 => PermissionDenied,
        // csi-proxy chooses these parameters, or the value says nothing.
        2 | 4 | 5 | 4098 | 40005 | 41005 | 41006 | 41010 | 41012 | 41016 | 41017 | 42004 => {
            Internal
        }
        _ => FailedPrecondition,
    }
}

/// The provider's values that no page of the three classes names, so that only their number is
/// known.
const WITHOUT_WORDS: [u32; 2] = [47000, 50003];

fn codes(ranges: &[RangeInclusive<u32>]) -> impl Iterator<Item = u32> {
    ranges.iter().cloned().flatten()
}

/// Returns a fault with which each call of a WMI method returns `value`.
fn returning(method: &'static str, value: u32) -> Fault {
    Fault::each(
        move |call| call.primitive == method,
        When::Before,
        FaultAction::Return(value),
    )
}

/// Checks that the error of `operation` has the kind, the number and the words of `code`, and
/// returns its text.
fn explained(node: &Node, operation: &impl Operation, kind: ErrorKind, code: u32) -> String {
    let error = node.run(operation).expect_err("the operation is refused");
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    let number = match code {
        0x8000_0000.. => format!("0x{code:08x}"),
        _ => code.to_string(),
    };
    assert!(
        text.contains(&format!(" ({number})")) && !text.contains("Windows error"),
        "{text}"
    );
    text
}

/// Checks that both texts of a code have the words of the remedy.
fn check_remedies(remedies: &[(&[u32], &str)], texts: impl Fn(u32) -> [String; 2]) {
    for (codes, words) in remedies {
        for (at, code) in codes.iter().enumerate() {
            let texts = texts(*code);
            assert!(texts.iter().all(|text| text.contains(words)), "{texts:?}");
            if at == 0 {
                texts::seen!(texts[0]);
            }
        }
    }
}

#[test]
fn contract_07_each_code_of_smb_has_its_kind_words_and_remedy() {
    let sim = smb_states::sim();
    let request = map(r"\\files\one", r"domain\user", "pw");
    let texts = |code: u32| {
        let failed = probed(&sim, failing(CREATE, OsError(code)));
        let returned = probed(&sim, returning(CREATE, code));
        [failed, returned].map(|node| explained(&node, &request, kind_of_mapping(code), code))
    };
    for code in codes(&SMB) {
        texts(code);
    }
    // These name a parameter that csi-proxy chooses.
    for code in [87, 487, 1200, 1204] {
        let node = probed(&sim, failing(CREATE, OsError(code)));
        explained(&node, &request, Internal, code);
    }
    let remedies: &[(&[u32], &str)] = &[
        (&[65], "-require-privacy=false"),
        (&[8, 1450, 1816], "too many mappings"),
        (&[384], "turn SMB 2 or 3 on"),
        (&[1272, 0xc05d_0003], "only as a guest; use an account"),
        (&[1396, 1397], "service principal name"),
        (&[1398], "set the clocks"),
        (&[1203, 1222, 2138], "restart the service LanmanWorkstation"),
        (&[1265, 1311, 1355, 1908], "reaches a domain controller"),
        (&[1789], "membership of the node"),
        (&[5], "check its permissions on files"),
        (
            &[51, 53, 54, 57, 59, 64, 70, 71, 121, 1225, 1231, 1232, 1256],
            "its TCP port 445",
        ),
        (
            &[1240, 1326, 1331, 1385, 1909, 2242],
            "check the credentials",
        ),
        (&[71], "files cannot be reached"),
        (&[1220, 1238], "accepts no more connections"),
        (&[1312], "needs a domain"),
        (&[67], "no such share"),
        (&[0x8004_1001], "Microsoft-Windows-SmbClient/Security"),
    ];
    check_remedies(remedies, texts);
}

#[test]
fn contract_07_each_status_of_the_iscsi_initiator_has_its_kind_words_and_remedy() {
    let sim = iscsi::sim();
    let (node, portal) = (node_on(&sim), iscsi::portal);
    node.run(&AddTargetPortal { portal: portal() }).unwrap();
    node.run(&DiscoverTargetPortal { portal: portal() })
        .unwrap();
    let request = iscsi::connect(iscsi::PLAIN, Authentication::None, "");
    let texts = |code: u32| {
        let failed = probed(&sim, failing(CONNECT, OsError(code)));
        let returned = probed(&sim, returning(CONNECT, code));
        [failed, returned].map(|node| explained(&node, &request, kind_of_iscsi(code), code))
    };
    for code in (0xefff_0001..=0xefff_0066).chain([0xafff_003b]) {
        texts(code);
    }
    let remedies: &[(&[u32], &str)] = &[
        (&[0xefff_0003, 0xefff_0024], "TCP port of the portal"),
        (&[0xefff_0009], "CHAP user and the secret"),
        (&[0xefff_000a], "(Get-InitiatorPort).NodeAddress"),
        (&[0xefff_0006, 0xefff_0007], "use the portal to which"),
        (&[0xefff_000b, 0xefff_0029], "DiscoverTargetPortal"),
        (
            &[0xefff_000e, 0xefff_0014, 0xefff_001e, 0xefff_0038],
            "disconnect targets",
        ),
        (
            &[0xefff_0002, 0xefff_0012, 0xefff_0013],
            "log of the target",
        ),
        (&[0xefff_0048, 0xefff_004a], "12 to 16 bytes"),
        (&[0xefff_003e, 0xefff_0039], "the service MSiSCSI"),
        (&[0xefff_005f], "resolves the name of the portal"),
        (&[0xefff_003b, 0xafff_003b], "restart the node"),
    ];
    check_remedies(remedies, texts);
}

/// Checks all return values of the provider's `method` with `operation`, but those in `handled`,
/// after which the operation goes on.
fn check_provider(sim: &Sim, method: &'static str, operation: &impl Operation, handled: &[u32]) {
    for value in codes(&PROVIDER).filter(|value| !handled.contains(value)) {
        let mut faults = vec![returning(method, value)];
        // Lower values are also codes of Windows.
        if value >= 4096 && !WITHOUT_WORDS.contains(&value) {
            faults.push(failing(method, OsError(value)));
        }
        for fault in faults {
            let kind = kind_of_provider(value);
            let text = explained(&probed(sim, fault), operation, kind, value);
            if method == FORMAT {
                texts::seen!(text);
            }
            let has_words = text.contains(" failed: ");
            assert_eq!(has_words, !WITHOUT_WORDS.contains(&value), "{text}");
        }
    }
}

#[test]
fn contract_07_each_return_value_of_the_storage_provider_has_its_kind_and_words() {
    let raw = raw_disk().build();
    let create = "wmi call MSFT_Disk.CreatePartition";
    // The partition exists, without a drive letter.
    check_provider(&raw, create, &PARTITION, &[42002]);
    let empty = partitioned_disk().build();
    let volume = volume_on(&node_on(&empty), 1);
    let format = FormatVolume::new(volume);
    check_provider(&empty, FORMAT, &format, &[]);
    let sim = ntfs().dir(MOUNT).build();
    let volume = volume_on(&node_on(&sim), 1);
    sim.grow_disk(1, 3 * GIB);
    let request = resize(volume, 2 * GIB);
    check_provider(&sim, "wmi call MSFT_Partition.Resize", &request, &[]);
    // The mount manager gives no reason either.
    for value in codes(&PROVIDER) {
        let refuses = returning("wmi call MSFT_Partition.AddAccessPath", value);
        let node = probed(
            &sim,
            both(
                failing("set_volume_mount_point", OsError::GEN_FAILURE),
                refuses,
            ),
        );
        let kind = match kind_of_provider(value) {
            StillRunning => StillRunning,
            _ => FailedPrecondition,
        };
        explained(&node, &mount(volume, MOUNT), kind, value);
    }
}

#[test]
fn contract_07_media_that_fail_and_a_lack_of_resources_are_no_defects() {
    let sim = partitioned_disk().build();
    let volume = volume_on(&node_on(&sim), 1);
    for code in [
        8, 21, 23, 27, 29, 30, 31, 121, 483, 1117, 1127, 1392, 1393, 1450,
    ] {
        let node = probed(&sim, failing("query_fs Attribute", OsError(code)));
        explained(
            &node,
            &IsVolumeFormatted { volume },
            FailedPrecondition,
            code,
        );
        let is_of_media = ![8, 21, 31, 1450].contains(&code);
        assert_eq!(node.fallbacks().is_empty(), is_of_media, "{code}");
    }
}

#[test]
fn a_volume_that_another_call_formats_is_reported_as_such_and_not_as_a_fallback() {
    let sim = raw_disk().build();
    let config = Config::default().with(|c| c.timeouts.format = Duration::from_millis(100));
    let node = Node::new(sim.process(), config);
    node.run(&PARTITION).unwrap();
    let volume = volume_on(&node, 1);
    refused(&node, &FormatVolume::new(volume), StillRunning);
    for text in [
        refused(&node, &IsVolumeFormatted { volume }, Busy).to_string(),
        refused(&node, &GetVolumeStats { volume }, Busy).to_string(),
    ] {
        assert!(
            text.contains("another call is changing the volume"),
            "{text}"
        );
    }
    assert_eq!(node.fallbacks(), []);
    // Another program's lock is not a call of ours.
    let other = probed(&sim, crate::setup::NoProbe);
    refused(&other, &IsVolumeFormatted { volume }, PermissionDenied);
    assert_eq!(other.fallbacks().len(), 1);
    sim.advance(Duration::from_secs(10));
    assert!(node.run(&IsVolumeFormatted { volume }).unwrap());
}
