//! Tests of working directories inside other ones.

use os::OsError;
use os_sim::Sim;
use storage_ops::{
    Config,
    ErrorKind::{self, FailedPrecondition, PermissionDenied},
    Node, VolumeId,
};

use crate::setup::{
    GIB, contents, exists, has_code, link, map_at, mkdir, mount, node_on, path, refused, rmdir,
    unmount, volume_on,
};

const PRECIOUS: &str = r"C:\secret\keep";

/// Runs each operation that creates, replaces, empties or removes what is at `text`; all must fail
/// with `kind`, and with the code of a refused link if `is_link`.
fn assert_unreachable(node: &Node, text: &str, volume: VolumeId, kind: ErrorKind, is_link: bool) {
    for error in [
        refused(node, &rmdir(text, true), kind),
        refused(node, &rmdir(text, false), kind),
        refused(node, &contents(text), kind),
        refused(node, &link(r"\pods\evil\e", text), kind),
        refused(
            node,
            &map_at(r"\\files\one", "user", "password", text),
            kind,
        ),
        refused(node, &mount(volume, text), kind),
        refused(node, &unmount(volume, text), kind),
    ] {
        assert_eq!(
            error.code() == Some(OsError::REPARSE_POINT_ENCOUNTERED),
            is_link,
            "{error}"
        );
    }
}

fn node() -> os_sim::Builder {
    let node = os_sim::node()
        .file(PRECIOUS, b"1")
        .smb_server("files")
        .share("one")
        .user("user", "password");
    node.dir(r"C:\var\lib\kubelet\pods\evil\e")
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
}

fn config(inner: &str) -> [Config; 3] {
    [
        Config::default().with(|c| c.plugin_dir = Some(path(inner))),
        Config::default().with(|c| c.pod_dir = Some(path(inner))),
        Config::default().with(|c| c.working_dirs = vec![path(inner)]),
    ]
}

#[test]
fn what_contains_a_working_directory_is_not_removed_replaced_emptied_or_mounted_over() {
    for config in config(r"\plugins\kubernetes.io\csi") {
        let sim = node()
            .dir(r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\d")
            .build();
        // The container prepares a directory that is to be linked at `plugins`.
        sim.external()
            .junction(r"C:\var\lib\kubelet\pods\evil\e\kubernetes.io", r"C:\")
            .unwrap();
        let volume = volume_on(&node_on(&sim), 1);
        let node = Node::new(sim.process(), config);
        let before = sim.snapshot();
        for text in [
            r"\plugins",
            r"\PLUGINS\",
            r"\plugins\kubernetes.io",
            r"\plugins\Kubernetes.IO\csi",
        ] {
            assert_unreachable(&node, text, volume, PermissionDenied, false);
        }
        assert_eq!(sim.snapshot(), before);
        let error = refused(&node, &rmdir(r"\plugins", true), PermissionDenied).to_string();
        assert!(
            error.ends_with(
                r"contains the working directory C:\var\lib\kubelet\plugins\kubernetes.io\csi"
            ),
            "{error}"
        );
        // What is in it, and beside it, is the driver's.
        node.run(&rmdir(r"\plugins\kubernetes.io\csi\d", true))
            .unwrap();
        node.run(&mkdir(r"\plugins\kubernetes.io\other")).unwrap();
        node.run(&rmdir(r"\plugins\kubernetes.io\other", true))
            .unwrap();
    }
}

#[test]
fn contract_09a_no_link_on_the_way_to_a_path_is_followed_not_even_at_a_working_directory_in_another_one()
 {
    let inner = r"\plugins\kubernetes.io";
    // The container has kubelet's directory, and replaces one of these.
    for component in [
        r"C:\var\lib\kubelet\plugins",
        r"C:\var\lib\kubelet\plugins\kubernetes.io",
    ] {
        for config in config(inner) {
            for is_mount_point in [false, true] {
                let sim = node()
                    .dir(r"C:\var\lib\kubelet\plugins\kubernetes.io")
                    .build();
                let volume = volume_on(&node_on(&sim), 1);
                for name in [
                    r"C:\kubernetes.io\secret",
                    r"C:\kubernetes.io\kubernetes.io\secret",
                ] {
                    sim.external().mkdir_all(name).unwrap();
                }
                sim.external()
                    .rename(component, r"C:\var\lib\kubelet\away")
                    .unwrap();
                let system = sim.volume_on(0).unwrap().name();
                sim.external()
                    .junction(component, if is_mount_point { &system } else { r"C:\" })
                    .unwrap();
                let node = Node::new(sim.process(), config.clone());
                let before = sim.snapshot();
                assert_unreachable(
                    &node,
                    &format!(r"{inner}\secret"),
                    volume,
                    FailedPrecondition,
                    true,
                );
                refused(
                    &node,
                    &mkdir(&format!(r"{inner}\planted\x")),
                    FailedPrecondition,
                );
                refused(
                    &node,
                    &exists(&format!(r"{inner}\secret\keep")),
                    FailedPrecondition,
                );
                assert_eq!(sim.snapshot(), before, "{component}");
            }
        }
    }
}

/// Returns a node on which kubelet's `pods` is a link to a directory of another volume.
fn moved(to: &str) -> Sim {
    let sim = node()
        .mounted(r"C:\data")
        .dir(r"C:\data\pods\p")
        .dir(r"C:\data\other\p")
        .build();
    sim.external()
        .remove_all(r"C:\var\lib\kubelet\pods")
        .unwrap();
    sim.external()
        .junction(r"C:\var\lib\kubelet\pods", to)
        .unwrap();
    sim
}

fn with(directories: &[&str]) -> Config {
    Config::default().with(|c| c.working_dirs = directories.iter().map(|text| path(text)).collect())
}

fn both() -> Config {
    with(&[r"\pods", r"C:\data\PODS"])
}

#[test]
fn contract_09a_a_directory_that_an_administrator_moved_is_named_with_where_it_is() {
    let sim = moved(r"C:\data\pods");
    let node = Node::new(sim.process(), both());
    node.run(&mkdir(r"\pods\p\new")).unwrap();
    assert!(node.run(&exists(r"\pods\p\new")).unwrap());
    assert!(sim.external().exists(r"C:\data\pods\p\new"));
    node.run(&link(r"\pods\p", r"\pods\p\l")).unwrap();
    node.run(&rmdir(r"\pods\p", true)).unwrap();
    assert!(!node.run(&exists(r"\pods\p")).unwrap());
    refused(&node, &rmdir(r"\pods", true), PermissionDenied);
    refused(&node, &rmdir(r"C:\data\pods", true), PermissionDenied);
    refused(&node, &rmdir(r"C:\data", true), PermissionDenied);

    // The link alone, or a link to anything else, is not followed: a container that has kubelet's
    // directory may have made it.
    for (to, config) in [
        (r"C:\data\pods", with(&[r"\pods"])),
        (r"C:\data\pods", with(&[r"C:\data\pods"])),
        (r"C:\data\other", both()),
        (r"C:\data", both()),
        (r"C:\data\pods\p", both()),
    ] {
        let sim = moved(to);
        let node = Node::new(sim.process(), config);
        let before = sim.snapshot();
        let error = refused(&node, &mkdir(r"\pods\p\new"), FailedPrecondition);
        has_code(&error, OsError::REPARSE_POINT_ENCOUNTERED);
        refused(&node, &rmdir(r"\pods\p", true), FailedPrecondition);
        refused(&node, &exists(r"\pods\p\new"), FailedPrecondition);
        assert_eq!(sim.snapshot(), before, "{to}");
    }
}

#[test]
fn a_working_directory_behind_a_moved_one_is_as_protected() {
    let sim = moved(r"C:\data\pods");
    let working_dirs = [r"\pods", r"C:\data\pods", r"C:\data\pods\p\inner"]
        .map(path)
        .to_vec();
    let node = Node::new(
        sim.process(),
        Config::default().with(|c| c.working_dirs = working_dirs),
    );
    sim.external().mkdir(r"C:\data\pods\p\inner").unwrap();
    let before = sim.snapshot();
    for text in [r"\pods\p", r"\pods\p\inner", r"C:\data\pods\p"] {
        refused(&node, &rmdir(text, true), PermissionDenied);
    }
    assert_eq!(sim.snapshot(), before);
    node.run(&mkdir(r"\pods\p\inner\new")).unwrap();
}

#[test]
fn a_working_directory_that_lies_in_another_one_behind_a_link_is_refused_at_the_start() {
    let checked = |kubelet: &str, other: &str, links: &[(&str, &str)], directories: &[&str]| {
        let sim = os_sim::node().build();
        for directory in directories {
            sim.external().mkdir_all(directory).unwrap();
        }
        for (link, target) in links {
            sim.external().junction(link, target).unwrap();
        }
        let config = Config::default().with(|c| {
            c.kubelet_dir = path(kubelet);
            c.working_dirs = vec![path(other)];
        });
        Node::start(sim.process(), config)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let moved = [(r"C:\k", r"C:\data\kubelet")];
    let error = checked(
        r"C:\k",
        r"C:\data\kubelet\pods",
        &moved,
        &[r"C:\data\kubelet\pods"],
    )
    .unwrap_err();
    assert!(
        error.contains(r"C:\data\kubelet\pods lies in the working directory C:\k"),
        "{error}"
    );
    // Whether the inner directory is still a directory, or a link that a container has made of it.
    let replaced = [moved[0], (r"C:\data\kubelet\pods", r"C:\secret")];
    checked(
        r"C:\k",
        r"C:\data\kubelet\pods",
        &replaced,
        &[r"C:\data\kubelet", r"C:\secret"],
    )
    .unwrap_err();
    checked(r"C:\k", r"C:\data", &moved, &[r"C:\data\kubelet"]).unwrap_err();
    // A link on the way lies in the other directory.
    let through = [(r"C:\w\x", r"C:\k\l"), (r"C:\k\l", r"C:\elsewhere")];
    checked(
        r"C:\k",
        r"C:\w\x",
        &through,
        &[r"C:\k", r"C:\w", r"C:\elsewhere"],
    )
    .unwrap_err();
    for (kubelet, other) in [
        (r"C:\k", r"C:\data\kubelet"),
        (r"C:\k", r"C:\data\other"),
        (r"C:\k", r"C:\k\pods"),
    ] {
        let directories = [r"C:\data\kubelet\pods", r"C:\data\other"];
        assert_eq!(
            checked(kubelet, other, &moved, &directories),
            Ok(()),
            "{other}"
        );
    }
}
