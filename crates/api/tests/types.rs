//! The code that the build generates from the contract: shared types, redacted secrets, and the
//! order of the table.

use std::any::TypeId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use csi_proxy_api as api;
use csi_proxy_api::{GROUP_VERSIONS, Group, GroupVersion};
use prost::Message;
use prost_types::{FieldDescriptorProto, FileDescriptorSet};

fn same<A: 'static, B: 'static>() -> bool {
    TypeId::of::<A>() == TypeId::of::<B>()
}

#[test]
fn messages_of_the_same_shape_are_one_type_in_all_versions() {
    use api::{disk, filesystem, iscsi, smb, volume};
    assert!(same::<
        disk::v1beta3::GetDiskStatsRequest,
        disk::v1::GetDiskStatsRequest,
    >());
    assert!(same::<
        disk::v1beta1::ListDiskIDsResponse,
        disk::v1beta2::ListDiskIDsResponse,
    >());
    assert!(same::<
        disk::v1alpha1::ListDiskLocationsResponse,
        disk::v1beta1::ListDiskLocationsResponse,
    >());
    assert!(same::<
        filesystem::v2alpha1::RmdirRequest,
        filesystem::v1::RmdirRequest,
    >());
    assert!(same::<
        filesystem::v1alpha1::PathContext,
        filesystem::v1beta1::PathContext,
    >());
    assert!(same::<
        iscsi::v1alpha1::ConnectTargetRequest,
        iscsi::v1alpha2::ConnectTargetRequest,
    >());
    assert!(same::<
        smb::v1alpha1::NewSmbGlobalMappingRequest,
        smb::v1::NewSmbGlobalMappingRequest,
    >());
    assert!(same::<
        volume::v2alpha1::MountVolumeRequest,
        volume::v1::MountVolumeRequest,
    >());
}

#[test]
fn messages_of_different_shapes_are_different_types() {
    use api::{disk, filesystem, smb, volume};
    assert!(!same::<disk::v1beta2::DiskIDs, disk::v1::DiskIDs>());
    assert!(!same::<
        disk::v1beta2::PartitionDiskRequest,
        disk::v1::PartitionDiskRequest,
    >());
    assert!(!same::<
        filesystem::v1beta1::MkdirResponse,
        filesystem::v1::MkdirResponse,
    >());
    assert!(!same::<
        smb::v1beta1::NewSmbGlobalMappingResponse,
        smb::v1::NewSmbGlobalMappingResponse,
    >());
    assert!(!same::<
        volume::v1beta2::ResizeVolumeRequest,
        volume::v1::ResizeVolumeRequest,
    >());
}

#[test]
fn disk_ids_before_v1beta3_are_encoded_as_maps_with_string_keys() {
    use api::disk;
    let response = disk::v1beta1::ListDiskIDsResponse {
        disk_ids: BTreeMap::from([(
            "7".to_owned(),
            disk::v1beta1::DiskIDs {
                identifiers: BTreeMap::from([("page83".to_owned(), "x".to_owned())]),
            },
        )]),
    };
    let entry = b"\x0a\x01\x37\x12\x0d\x0a\x0b\x0a\x06page83\x12\x01x";
    let [tag, length] = [0x0a, u8::try_from(entry.len()).expect("short")];
    assert_eq!(
        response.encode_to_vec(),
        [&[tag, length], &entry[..]].concat()
    );
}

#[test]
fn debug_redacts_secrets_and_shows_all_other_fields() {
    let mapping = api::smb::v1::NewSmbGlobalMappingRequest {
        remote_path: r"\\host\share".to_owned(),
        local_path: r"C:\link".to_owned(),
        username: "anna".to_owned(),
        password: "hunter2".to_owned(),
    };
    assert_eq!(
        format!("{mapping:?}"),
        r#"NewSmbGlobalMappingRequest { remote_path: "\\\\host\\share", local_path: "C:\\link", username: "anna", password: [redacted] }"#
    );

    let connect = api::iscsi::v1alpha2::ConnectTargetRequest {
        target_portal: None,
        iqn: "iqn.2000-01.example:t".to_owned(),
        auth_type: api::iscsi::v1alpha2::AuthenticationType::OneWayChap.into(),
        chap_username: "anna".to_owned(),
        chap_secret: "hunter2".to_owned(),
    };
    assert_eq!(
        format!("{connect:?}"),
        r#"ConnectTargetRequest { target_portal: None, iqn: "iqn.2000-01.example:t", auth_type: OneWayChap, chap_username: "anna", chap_secret: [redacted] }"#
    );

    let mutual = api::iscsi::v1alpha2::SetMutualChapSecretRequest {
        mutual_chap_secret: "hunter2".to_owned(),
    };
    assert_eq!(
        format!("{mutual:?}"),
        "SetMutualChapSecretRequest { mutual_chap_secret: [redacted] }"
    );
}

/// The test above covers every message with a secret.
#[test]
fn the_contract_has_three_secrets() {
    let mut secrets = BTreeSet::new();
    for entry in &GROUP_VERSIONS {
        let files = FileDescriptorSet::decode(entry.descriptors()).expect("descriptors decode");
        for message in &files.file[0].message_type {
            for field in message.field.iter().map(FieldDescriptorProto::name) {
                if ["pass", "secret", "key", "token"]
                    .iter()
                    .any(|word| field.to_lowercase().contains(word))
                {
                    secrets.insert(format!("{}.{field}", message.name()));
                }
            }
        }
    }
    let known = [
        "ConnectTargetRequest.chap_secret",
        "NewSmbGlobalMappingRequest.password",
        "SetMutualChapSecretRequest.MutualChapSecret",
    ];
    assert_eq!(secrets, known.map(str::to_owned).into());
}

/// Returns the place of a version in the order: stable before beta before alpha, and the newest of
/// each first.
fn rank(version: &str) -> (usize, Reverse<u32>, Reverse<u32>) {
    let (kind, (major, minor)) = if let Some(parts) = version.split_once("alpha") {
        (2, parts)
    } else if let Some(parts) = version.split_once("beta") {
        (1, parts)
    } else {
        (0, (version, "0"))
    };
    let number = |text: &str| Reverse(text.trim_start_matches('v').parse().expect("a number"));
    (kind, number(major), number(minor))
}

#[test]
fn versions_of_a_group_are_ordered_stable_first_and_newest_first() {
    for group in Group::ALL {
        let versions: Vec<_> = GroupVersion::of(group).map(|entry| entry.version).collect();
        assert!(
            versions.is_sorted_by_key(|version| rank(version)),
            "{versions:?}"
        );
    }
}

#[test]
fn a_group_version_is_found_by_group_and_version() {
    let entry = GroupVersion::find(Group::Volume, "v2alpha1").expect("volume v2alpha1");
    assert_eq!(
        (entry.pipe(), entry.service),
        ("csi-proxy-volume-v2alpha1", "v2alpha1.Volume")
    );
    assert!(GroupVersion::find(Group::System, "v1").is_none());
}
