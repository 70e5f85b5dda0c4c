//! Which version of an RPC is called, and what happens if the node serves none.

use std::collections::BTreeSet;

use api::{Group, GroupVersion, Rpc};
use csi_proxy_client::{DiskNumber, EncodedRpc, ErrorKind};

use super::daemon::{Daemon, Sockets};
use super::node::node;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_call_uses_the_preferred_version_that_is_served_at_that_moment() {
    let (sim, sockets) = (node(), Sockets::new());
    let daemon = Daemon::on(&sim, &sockets);
    sockets.hide("csi-proxy-disk-v1");
    let disks = sockets.client().disk();
    disks.get_disk_stats(DiskNumber(1)).await.unwrap();
    disks.get_disk_stats(DiskNumber(1)).await.unwrap();
    let calls = || ["v1.Disk", "v1beta3.Disk"].map(|service| daemon.calls(service, "GetDiskStats"));
    assert_eq!(calls(), [0, 2]);
    sockets.restore("csi-proxy-disk-v1");
    disks.get_disk_stats(DiskNumber(1)).await.unwrap();
    assert_eq!(calls(), [1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_rpc_that_no_served_version_has_is_unimplemented_and_the_error_names_the_versions() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let files = sockets.client().filesystem();
    sockets.hide("csi-proxy-filesystem-v2alpha1");
    let error = files
        .rmdir_contents(r"C:\var\lib\kubelet\plugins\mine")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unimplemented);
    assert_eq!(
        error.to_string(),
        "RmdirContents failed: the node's csi-proxy serves filesystem v1, v1beta2, v1beta1, \
         v1alpha1, but RmdirContents needs v2alpha1"
    );

    for hidden in ["csi-proxy-filesystem-v1", "csi-proxy-filesystem-v1beta2"] {
        sockets.hide(hidden);
    }
    let error = files.path_exists(r"C:\var").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unimplemented);
    assert!(
        error
            .message()
            .contains("serves filesystem v1beta1, v1alpha1, but PathExists needs v1 or"),
        "{error}"
    );

    for hidden in [
        "csi-proxy-filesystem-v1beta1",
        "csi-proxy-filesystem-v1alpha1",
    ] {
        sockets.hide(hidden);
    }
    let error = files.path_exists(r"C:\var").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unimplemented);
    assert!(
        error
            .message()
            .contains("serves other groups here, but not filesystem: "),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_served_versions_are_those_whose_endpoints_exist() {
    let (sim, sockets) = (node(), Sockets::new());
    let client = sockets.client();
    assert_eq!(client.served_versions().await.unwrap(), []);
    let _daemon = Daemon::on(&sim, &sockets);
    sockets.hide("csi-proxy-system-v1alpha1");
    let served: Vec<String> = client
        .served_versions()
        .await
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(served.len(), api::GROUP_VERSIONS.len() - 1);
    assert_eq!(served[0], "disk/v1");
    assert!(!served.contains(&"system/v1alpha1".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn encoded_calls_reach_the_versions_that_the_methods_do_not_use() {
    let (sim, sockets) = (node(), Sockets::new());
    let daemon = Daemon::on(&sim, &sockets);
    let client = sockets.client();
    let disk_stats = EncodedRpc {
        group: "disk",
        versions: &["v1beta1"],
        name: "DiskStats",
    };
    // The field 1 of the request is the disk number as text, that of the response the size.
    let response = client
        .call_encoded(disk_stats, b"\x0a\x011".to_vec())
        .await
        .unwrap();
    assert_eq!(response, [0x08, 0x80, 0x80, 0x80, 0x80, 0x28]); // 10 GiB
    assert_eq!(daemon.calls("v1beta1.Disk", "DiskStats"), 1);
    sockets.hide("csi-proxy-disk-v1");
    let rescan = EncodedRpc {
        group: "disk",
        versions: &["v1", "v1beta3"],
        name: "Rescan",
    };
    client.call_encoded(rescan, Vec::new()).await.unwrap();
    assert_eq!(
        (
            daemon.calls("v1.Disk", "Rescan"),
            daemon.calls("v1beta3.Disk", "Rescan")
        ),
        (0, 1)
    );
    let error = client
        .call_encoded(disk_stats, b"\x0a\x019".to_vec())
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.rpc()),
        (ErrorKind::NotFound, "DiskStats")
    );
}

#[tokio::test]
async fn an_encoded_call_of_an_rpc_that_does_not_exist_is_refused_before_it_is_sent() {
    for (group, versions, name) in [
        ("disk", &["v1"][..], "DiskStats"),
        ("disk", &["v1", "v1alpha1"], "GetDiskStats"),
        ("disks", &["v1"], "Rescan"),
        ("disk", &[], "Rescan"),
    ] {
        let rpc = EncodedRpc {
            group,
            versions,
            name,
        };
        let error = Sockets::new()
            .client()
            .call_encoded(rpc, Vec::new())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

/// The versions from before csi-proxy 1.0.
const BEFORE_1_0: [(Group, &[&str]); 4] = [
    (Group::Disk, &["v1beta2", "v1beta1", "v1alpha1"]),
    (Group::Filesystem, &["v1beta1", "v1alpha1"]),
    (Group::Smb, &["v1beta1", "v1alpha1"]),
    (Group::Volume, &["v1beta2", "v1beta1", "v1alpha1"]),
];

/// Returns the RPCs that have methods, each with the first version that has it.
fn methods() -> Vec<(&'static GroupVersion, &'static Rpc)> {
    let mut known = BTreeSet::new();
    let all = api::GROUP_VERSIONS
        .iter()
        .flat_map(|version| version.rpcs.iter().map(move |rpc| (version, rpc)));
    let methods = all.filter(|(_, rpc)| rpc.name != "GetDiskNumberByName");
    methods
        .filter(|(version, rpc)| known.insert((version.group, rpc.newest_name)))
        .collect()
}

/// A call is sent to each version in which its RPC has the same name and messages. Before 1.0 these
/// are four RPCs, and the contract has no difference of meaning between their versions: the reason
/// must be checked again if one is added.
#[test]
fn only_four_rpcs_are_sent_to_versions_from_before_1_0_and_they_mean_the_same_there() {
    let is_sent_to_old = |(version, rpc): &(&GroupVersion, &Rpc)| {
        let old = BEFORE_1_0
            .iter()
            .filter(|(group, _)| *group == version.group)
            .flat_map(|(_, old)| *old);
        old.into_iter().any(|old| rpc.versions.contains(old))
    };
    let sent: Vec<_> = methods()
        .into_iter()
        .filter(is_sent_to_old)
        .map(|(_, rpc)| rpc.name)
        .collect();
    assert_eq!(
        sent,
        [
            "Rescan",
            "IsVolumeFormatted",
            "FormatVolume",
            "WriteVolumeCache"
        ]
    );
}

#[test]
fn the_readme_names_the_versions_whose_pipes_a_plugin_needs() {
    let readme = include_str!("../../README.md")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('_', "");
    let preferred = |group| {
        GroupVersion::of(group)
            .next()
            .expect("each group has a version")
            .version
    };
    let names = Group::ALL.map(|group| format!("{} {}", group.name(), preferred(group)));
    let (last, others) = names.split_last().expect("groups");
    let sentence = format!(
        "Mount the pipes of the preferred versions: {} and {last}.",
        others.join(", ")
    );
    assert!(readme.contains(&sentence), "{sentence}");
    for (version, rpc) in methods()
        .into_iter()
        .filter(|(version, _)| version.version != preferred(version.group))
    {
        let method = rpc.name.to_lowercase();
        let sentence = format!(
            "nly {} {} has `{method}`",
            version.group.name(),
            version.version
        );
        assert!(readme.contains(&sentence), "{sentence}");
    }
}
