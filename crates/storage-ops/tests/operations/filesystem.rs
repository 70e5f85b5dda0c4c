//! Tests of the operations on directories and links.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::setup::{
    KUBELET, MOUNT, contents, exists, has_code, is_link, layered, link, mkdir, mounted_at, node_on,
    ntfs, path, probed, refused, refused_saying, rmdir, unmount, volume_on,
};
use faults::{Fault, FaultAction, Layer, When};
use os::{Handle, OsResult};
use os_sim::{FileKind, Sim};
use storage_ops::{
    Config,
    ErrorKind::{AlreadyExists, FailedPrecondition, NotFound, PermissionDenied},
    IsSymlink, Mkdir, Node, PathContext, PathExists, Rmdir, RmdirContents,
};

#[test]
fn contract_09_a_path_outside_the_working_directories_is_refused_by_component() {
    let sim = os_sim::node()
        .dir(r"C:\var\lib\kubelet-evil\x")
        .dir(r"C:\foo\bar")
        .build();
    let node = node_on(&sim);
    let before = sim.snapshot();
    for outside in [
        r"C:\var\lib\kubelet-evil\x",
        r"C:\foo\bar",
        r"C:\Windows",
        r"C:\",
        r"D:\var\lib\kubelet\x",
    ] {
        refused(&node, &exists(outside), PermissionDenied);
        refused(&node, &mkdir(outside), PermissionDenied);
        refused(&node, &rmdir(outside, true), PermissionDenied);
        refused(&node, &contents(outside), PermissionDenied);
        refused(&node, &link(outside, r"\pods\l"), PermissionDenied);
        refused(&node, &link(r"\pods", outside), PermissionDenied);
    }
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn contract_09_drives_and_names_are_compared_without_case() {
    let sim = os_sim::node().build();
    let node = node_on(&sim);
    node.run(&mkdir(r"c:\VAR\Lib\KUBELET\Plugins\New")).unwrap();
    assert!(node.run(&exists(r"\plugins\NEW")).unwrap());
}

#[test]
fn contract_09a_a_link_above_the_last_component_is_refused_and_not_followed() {
    for junction in [false, true] {
        let node = os_sim::node()
            .dir(r"C:\Windows\empty")
            .file(r"C:\Windows\System32\x.dll", b"MZ");
        let sim = if junction {
            node.junction(r"C:\var\lib\kubelet\pods\l", r"C:\Windows")
                .build()
        } else {
            node.symlink(r"C:\var\lib\kubelet\pods\l", r"C:\Windows")
                .build()
        };
        let (node, before) = (node_on(&sim), sim.snapshot());
        refused(&node, &exists(r"\pods\l\System32"), FailedPrecondition);
        refused(&node, &mkdir(r"\pods\l\new"), FailedPrecondition);
        refused(&node, &rmdir(r"\pods\l\System32", true), FailedPrecondition);
        refused(&node, &rmdir(r"\pods\l\empty", false), FailedPrecondition);
        refused(&node, &contents(r"\pods\l\System32"), FailedPrecondition);
        refused(&node, &link(r"\pods", r"\pods\l\new"), FailedPrecondition);
        assert_eq!(sim.snapshot(), before);
    }
}

#[test]
fn contract_09a_the_working_directory_itself_may_be_a_link() {
    let sim = os_sim::node().dir(r"C:\elsewhere\pods").build();
    sim.external().remove_all(KUBELET).unwrap();
    sim.external().symlink(KUBELET, r"C:\elsewhere").unwrap();
    let node = node_on(&sim);
    node.run(&mkdir(r"\pods\new")).unwrap();
    assert!(sim.external().exists(r"C:\elsewhere\pods\new"));
}

#[test]
fn contract_09a_rmdir_contents_empties_a_mounted_volume_but_not_the_target_of_a_link() {
    let sim = ntfs().mounted(r"C:\var\lib\kubelet\plugins\v").build();
    let external = sim.external();
    external
        .mkdir_all(r"C:\var\lib\kubelet\plugins\v\a\b")
        .unwrap();
    external
        .write(r"C:\var\lib\kubelet\plugins\v\a\f", b"1")
        .unwrap();
    external.mkdir_all(r"C:\outside\kept").unwrap();
    external
        .symlink(r"C:\var\lib\kubelet\plugins\v\l", r"C:\outside")
        .unwrap();
    let node = node_on(&sim);
    node.run(&contents(r"\plugins\v")).unwrap();
    assert_eq!(
        external.read_dir(r"C:\var\lib\kubelet\plugins\v").unwrap(),
        Vec::<String>::new()
    );
    assert!(external.exists(r"C:\outside\kept"));
    external
        .symlink(r"C:\var\lib\kubelet\plugins\l", r"C:\outside")
        .unwrap();
    refused(&node, &contents(r"\plugins\l"), FailedPrecondition);
}

#[test]
fn rmdir_contents_empties_a_directory_and_refuses_a_file() {
    let sim = os_sim::node()
        .dir(r"C:\var\lib\kubelet\pods\p\d\e")
        .file(r"C:\var\lib\kubelet\pods\p\f", b"1")
        .symlink(r"C:\var\lib\kubelet\pods\p\l", r"C:\Windows")
        .build();
    let (external, node) = (sim.external(), node_on(&sim));
    external
        .set_read_only(r"C:\var\lib\kubelet\pods\p\f", true)
        .unwrap();
    refused(&node, &contents(r"\pods\p\f"), FailedPrecondition);
    assert!(external.exists(r"C:\var\lib\kubelet\pods\p\f"));
    node.run(&contents(r"\pods\p")).unwrap();
    assert!(
        external
            .read_dir(r"C:\var\lib\kubelet\pods\p")
            .unwrap()
            .is_empty()
    );
    assert!(external.exists(r"C:\Windows"));
}

#[test]
fn a_working_directory_itself_is_neither_removed_nor_emptied() {
    let sim = os_sim::node().build();
    let (node, before) = (node_on(&sim), sim.snapshot());
    refused(&node, &rmdir(KUBELET, true), PermissionDenied);
    refused(&node, &contents(KUBELET), PermissionDenied);
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn contract_09c_each_operation_notices_that_the_working_directory_was_created_or_replaced() {
    type Operation = fn(&Node) -> Result<(), storage_ops::Error>;

    let sim = os_sim::node().build();
    let external = sim.external();
    let operations: [Operation; 7] = [
        |node| node.run(&rmdir(r"\d\e", false)),
        |node| node.run(&rmdir(r"\d", true)),
        |node| node.run(&contents(r"\d")),
        |node| node.run(&link(r"\d", r"\l")),
        |node| node.run(&mkdir(r"\new")),
        |node| node.run(&is_link(r"\d\e")).map(drop),
        |node| node.run(&exists(r"\d\e")).map(|exists| assert!(exists)),
    ];
    for looks_up_paths in [false, true] {
        let node = node_on(&sim);
        if looks_up_paths {
            node.test_path_lookup();
        }
        external.remove_all(KUBELET).unwrap();
        refused(&node, &mkdir(r"\d"), NotFound);
        for operation in operations {
            assert!(
                !node.run(&exists(r"\d\e")).unwrap(),
                "the directory is missing or has been used before"
            );
            // It may become a link, too.
            for target in [KUBELET, r"C:\other"] {
                external.remove_all(KUBELET).unwrap();
                external.mkdir_all(&format!(r"{target}\d\e")).unwrap();
                if target != KUBELET {
                    external.junction(KUBELET, target).unwrap();
                }
                operation(&node).unwrap();
                external.remove_all(target).unwrap();
            }
        }
    }
}

#[test]
fn contract_09b_a_final_backslash_asks_for_a_directory() {
    let link = r"C:\var\lib\kubelet\link";
    let sim = os_sim::node()
        .file(r"C:\var\lib\kubelet\file.txt", "content")
        .dir(r"C:\var\lib\kubelet\d")
        .symlink(link, r"C:\var\lib\kubelet\d")
        .build();
    let node = node_on(&sim);
    let before = sim.snapshot();
    let file = path(r"\file.txt\");
    assert!(
        !node
            .run(&PathExists {
                path: file.clone(),
                context: None
            })
            .unwrap()
    );
    for force in [false, true] {
        refused(
            &node,
            &Rmdir {
                path: file.clone(),
                context: None,
                force,
            },
            FailedPrecondition,
        );
    }
    refused(
        &node,
        &RmdirContents { path: file.clone() },
        FailedPrecondition,
    );
    refused(&node, &IsSymlink { path: file }, FailedPrecondition);
    for directory in [r"\d\", r"\link\"] {
        assert!(node.run(&exists(directory)).unwrap());
    }
    assert!(node.run(&is_link(r"\link\")).unwrap());
    assert!(!node.run(&is_link(r"\d\")).unwrap());
    assert_eq!(sim.snapshot(), before);
    node.run(&rmdir(r"\link\", true)).unwrap();
    assert!(
        sim.external().exists(r"C:\var\lib\kubelet\d"),
        "the link was removed and not followed"
    );
}

#[test]
fn contract_11_a_dangling_link_exists_and_a_missing_parent_is_not_an_error() {
    let sim = os_sim::node()
        .symlink(r"C:\var\lib\kubelet\pods\l", r"C:\missing")
        .file(r"C:\var\lib\kubelet\f", b"")
        .build();
    let node = node_on(&sim);
    assert!(node.run(&exists(r"\pods\l")).unwrap());
    assert!(node.run(&exists(r"\f")).unwrap());
    assert!(!node.run(&exists(r"\pods\missing")).unwrap());
    assert!(!node.run(&exists(r"\missing\missing")).unwrap());
    assert!(!node.run(&exists(r"\f\below-a-file")).unwrap());
}

#[test]
fn contract_12_mkdir_is_recursive_and_accepts_a_directory_or_a_link_to_one() {
    let sim = os_sim::node()
        .dir(r"C:\var\lib\kubelet\plugins\d")
        .symlink(
            r"C:\var\lib\kubelet\plugins\l",
            r"C:\var\lib\kubelet\plugins\d",
        )
        .file(r"C:\var\lib\kubelet\plugins\f", b"")
        .build();
    let node = node_on(&sim);
    for _ in 0..2 {
        node.run(&mkdir(r"\plugins\a\b\c")).unwrap();
    }
    assert!(sim.external().exists(r"C:\var\lib\kubelet\plugins\a\b\c"));
    node.run(&mkdir(r"\plugins\l")).unwrap();
    refused(&node, &mkdir(r"\plugins\f"), AlreadyExists);
    refused(&node, &mkdir(r"\plugins\f\x"), NotFound);
}

#[test]
fn contract_12_mkdir_of_a_link_that_leads_to_no_directory_is_an_error() {
    let sim = os_sim::node()
        .dir(r"C:\var\lib\kubelet\d")
        .symlink(r"C:\var\lib\kubelet\dangling", r"C:\missing")
        .junction(r"C:\var\lib\kubelet\junction", r"C:\missing")
        .symlink(r"C:\var\lib\kubelet\chain", r"C:\var\lib\kubelet\dangling")
        .symlink(r"C:\var\lib\kubelet\good", r"C:\var\lib\kubelet\link")
        .symlink(r"C:\var\lib\kubelet\link", r"C:\var\lib\kubelet\d")
        .build();
    let (node, before) = (node_on(&sim), sim.snapshot());
    for name in [r"\dangling", r"\junction", r"\chain", r"\dangling\"] {
        refused_saying(&node, &mkdir(name), AlreadyExists, "leads to no directory");
    }
    node.run(&mkdir(r"\good")).unwrap();
    assert_eq!(sim.snapshot(), before);
    // MountVolume replaces a mount point whose volume is gone.
    let sim = ntfs().mounted(MOUNT).build();
    sim.unplug_disk(1);
    node_on(&sim).run(&mkdir(MOUNT)).unwrap();
}

#[test]
fn contract_13_rmdir_with_force_removes_trees_but_never_follows_a_link() {
    let sim = os_sim::node()
        .dir(r"C:\outside\kept")
        .dir(r"C:\var\lib\kubelet\pods\p\deep\deeper")
        .file(r"C:\var\lib\kubelet\pods\p\deep\f", b"data")
        .symlink(r"C:\var\lib\kubelet\pods\p\link", r"C:\outside")
        .junction(r"C:\var\lib\kubelet\pods\p\deep\junction", r"C:\outside")
        .build();
    sim.external()
        .set_read_only(r"C:\var\lib\kubelet\pods\p\deep\f", true)
        .unwrap();
    let node = node_on(&sim);
    node.run(&rmdir(r"\pods\p", true)).unwrap();
    assert!(!sim.external().exists(r"C:\var\lib\kubelet\pods\p"));
    assert!(sim.external().exists(r"C:\outside\kept"));
    node.run(&rmdir(r"\pods\p", true)).unwrap();
    node.run(&rmdir(r"\missing\p", true)).unwrap();
}

#[test]
fn contract_13_rmdir_without_force_refuses_a_nonempty_directory_and_a_missing_path() {
    let sim = os_sim::node()
        .dir(r"C:\var\lib\kubelet\pods\full\x")
        .dir(r"C:\var\lib\kubelet\pods\empty")
        .symlink(r"C:\var\lib\kubelet\pods\link", r"C:\Windows")
        .build();
    let node = node_on(&sim);
    let error = refused(&node, &rmdir(r"\pods\full", false), FailedPrecondition);
    has_code(&error, os::OsError::DIR_NOT_EMPTY);
    refused(&node, &rmdir(r"\pods\missing", false), NotFound);
    node.run(&rmdir(r"\pods\empty", false)).unwrap();
    node.run(&rmdir(r"\pods\link", false)).unwrap();
    assert!(sim.external().exists(r"C:\Windows\System32"));
}

/// Finds the most handles that are open when a directory is listed.
struct OpenHandles(Sim, Arc<AtomicUsize>);

impl Layer for OpenHandles {
    fn list(&self, handle: &dyn Handle, restart: bool, output: &mut [u8]) -> OsResult<()> {
        self.1.fetch_max(self.0.open_handles(), Ordering::Relaxed);
        handle.list(restart, output)
    }
}

#[test]
fn a_tree_of_many_levels_is_removed_with_a_bounded_number_of_open_handles() {
    let sim = os_sim::node().build();
    let (external, most) = (sim.external(), Arc::new(AtomicUsize::new(0)));
    let node = layered(&sim, OpenHandles(sim.clone(), Arc::clone(&most)));
    external.mkdir(r"C:\var\lib\kubelet\pods\p").unwrap();
    // Each round moves the tree below one more directory.
    for level in 0..4_500 {
        external.mkdir(r"C:\var\lib\kubelet\pods\outer").unwrap();
        external
            .rename(
                r"C:\var\lib\kubelet\pods\p",
                r"C:\var\lib\kubelet\pods\outer\p",
            )
            .unwrap();
        external
            .rename(
                r"C:\var\lib\kubelet\pods\outer",
                r"C:\var\lib\kubelet\pods\p",
            )
            .unwrap();
        // Files that a second listing would find if a level were listed only once.
        if level % 50 == 0 {
            external
                .write(&format!(r"C:\var\lib\kubelet\pods\p\{level}"), b"")
                .unwrap();
        }
    }
    node.run(&rmdir(r"\pods\p", true)).unwrap();
    assert!(!external.exists(r"C:\var\lib\kubelet\pods\p"));
    let most = most.load(Ordering::Relaxed);
    assert!((1000..1100).contains(&most), "{most}");
}

#[test]
fn contract_14_a_link_to_a_directory_or_a_missing_path_is_a_directory_link() {
    let sim = os_sim::node().dir(r"C:\var\lib\kubelet\plugins\d").build();
    let (external, node) = (sim.external(), node_on(&sim));
    for (source, target) in [
        (r"\plugins\d", r"\pods\a"),
        (r"\pods\a", r"\pods\b"),
        (r"\plugins\later", r"\pods\c"),
    ] {
        node.run(&link(source, target)).unwrap();
        // The second time, an identical link exists.
        node.run(&link(source, target)).unwrap();
        let text = external.read_link(&path(target).to_string()).unwrap();
        assert_eq!(text, path(source).to_string());
    }
    for link in sim.tree(r"C:\var\lib\kubelet\pods").unwrap() {
        assert_ne!(
            link.attributes & os::abi::FILE_ATTRIBUTE_DIRECTORY,
            0,
            "{link:?}"
        );
    }
    external.mkdir(r"C:\var\lib\kubelet\plugins\later").unwrap();
    external
        .write(r"C:\var\lib\kubelet\pods\c\f", b"through")
        .unwrap();
    assert_eq!(
        external
            .read(r"C:\var\lib\kubelet\plugins\later\f")
            .unwrap(),
        b"through"
    );
}

#[test]
fn contract_14_a_link_to_a_file_is_a_file_link() {
    let sim = os_sim::node()
        .file(r"C:\var\lib\kubelet\plugins\f", b"content")
        .build();
    let node = node_on(&sim);
    for (source, target) in [(r"\plugins\f", r"\pods\a"), (r"\pods\a", r"\pods\b")] {
        node.run(&link(source, target)).unwrap();
        node.run(&link(source, target)).unwrap();
    }
    for file in sim.tree(r"C:\var\lib\kubelet\pods").unwrap() {
        assert!(matches!(file.kind, FileKind::Symlink(_)), "{file:?}");
        assert_eq!(
            file.attributes & os::abi::FILE_ATTRIBUTE_DIRECTORY,
            0,
            "{file:?}"
        );
    }
    assert_eq!(
        sim.external().read(r"C:\var\lib\kubelet\pods\b").unwrap(),
        b"content"
    );
}

#[test]
fn contract_14_an_existing_target_or_a_missing_parent_is_an_error() {
    let sim = os_sim::node()
        .dir(r"C:\var\lib\kubelet\plugins\d")
        .dir(r"C:\var\lib\kubelet\pods\empty")
        .symlink(
            r"C:\var\lib\kubelet\pods\other",
            r"C:\var\lib\kubelet\plugins",
        )
        .file(r"C:\var\lib\kubelet\pods\f", b"")
        .build();
    let (node, before) = (node_on(&sim), sim.snapshot());
    for (target, what) in [
        (r"\pods\empty", "a file or directory"),
        (r"\pods\other", r"a link to C:\var\lib\kubelet\plugins "),
        (r"\pods\f", "a file or directory"),
    ] {
        refused_saying(&node, &link(r"\plugins\d", target), AlreadyExists, what);
    }
    let error = refused(&node, &link(r"\plugins\d", r"\pods\missing\l"), NotFound);
    let reason = error
        .to_string()
        .split_once(": ")
        .map(|(_, reason)| reason.to_owned());
    assert_eq!(
        reason.as_deref(),
        Some("the directory missing: the system cannot find the file specified (2)")
    );
    assert_eq!(sim.snapshot(), before);
}

fn fault() -> Fault {
    Fault::each(
        |call| call.object.ends_with(r"plugins\d"),
        When::Before,
        FaultAction::Fail(os::OsError::LOGON_FAILURE),
    )
}

#[test]
fn contract_14_an_identical_link_is_accepted_even_if_its_source_cannot_be_opened() {
    let sim = os_sim::node().dir(r"C:\var\lib\kubelet\plugins\d").build();
    node_on(&sim).run(&link(r"\plugins\d", r"\pods\l")).unwrap();
    probed(&sim, fault())
        .run(&link(r"\plugins\d", r"\pods\l"))
        .unwrap();
    refused(
        &probed(&sim, fault()),
        &link(r"\plugins\d", r"\pods\new"),
        PermissionDenied,
    );
}

#[test]
fn contract_15_a_link_or_mounted_folder_is_a_link_while_its_target_exists() {
    let sim = ntfs()
        .mounted(r"C:\var\lib\kubelet\plugins\v")
        .dir(r"C:\var\lib\kubelet\plugins\d")
        .file(r"C:\var\lib\kubelet\plugins\f", b"")
        .symlink(
            r"C:\var\lib\kubelet\pods\l",
            r"C:\var\lib\kubelet\plugins\d",
        )
        .symlink(
            r"C:\var\lib\kubelet\pods\ll",
            r"C:\var\lib\kubelet\plugins\v",
        )
        .build();
    let node = node_on(&sim);
    for (text, expected) in [
        (r"\plugins\d", false),
        (r"\plugins\f", false),
        (r"\plugins\v", true),
        (r"\pods\l", true),
        (r"\pods\ll", true),
    ] {
        assert_eq!(node.run(&is_link(text)).unwrap(), expected, "{text}");
    }
    refused(&node, &is_link(r"\pods\missing"), NotFound);
    sim.external()
        .remove_all(r"C:\var\lib\kubelet\plugins\d")
        .unwrap();
    assert!(
        !node.run(&is_link(r"\pods\l")).unwrap(),
        "its target no longer exists"
    );
    sim.unplug_disk(1);
    assert!(
        !node.run(&is_link(r"\plugins\v")).unwrap(),
        "its volume no longer exists"
    );
}

#[test]
fn contract_15_a_relative_link_is_resolved_at_its_location() {
    let sim = os_sim::node().dir(r"C:\var\lib\kubelet\pods\d").build();
    let (external, node) = (sim.external(), node_on(&sim));
    for (name, target, expected) in [("existing", "d", true), ("dangling", "e", false)] {
        external
            .symlink(&format!(r"C:\var\lib\kubelet\pods\{name}"), target)
            .unwrap();
        assert_eq!(
            node.run(&is_link(&format!(r"\pods\{name}"))).unwrap(),
            expected,
            "{name}"
        );
    }
}

#[test]
fn contract_15_a_target_that_cannot_be_opened_is_not_reported_missing() {
    let sim = os_sim::node()
        .dir(r"C:\var\lib\kubelet\plugins\d")
        .symlink(
            r"C:\var\lib\kubelet\pods\l",
            r"C:\var\lib\kubelet\plugins\d",
        )
        .build();
    let code = os::OsError::IO_DEVICE;
    let fault = Fault::each(
        |call| call.object.ends_with(r"plugins\d"),
        When::Before,
        FaultAction::Fail(code),
    );
    let error = refused(
        &probed(&sim, fault),
        &is_link(r"\pods\l"),
        FailedPrecondition,
    );
    has_code(&error, code);
}

#[test]
fn contract_15_rmdir_and_unmount_of_a_stale_mount_point_succeed() {
    for force in [false, true] {
        let sim = ntfs().mounted(r"C:\var\lib\kubelet\plugins\v").build();
        let node = node_on(&sim);
        let volume = volume_on(&node, 1);
        sim.unplug_disk(1);
        if force {
            node.run(&unmount(volume, r"\plugins\v")).unwrap();
            assert!(!sim.external().is_link(r"C:\var\lib\kubelet\plugins\v"));
        }
        node.run(&rmdir(r"\plugins\v", force)).unwrap();
        assert!(!sim.external().exists(r"C:\var\lib\kubelet\plugins\v"));
    }
}

#[test]
fn contract_31_a_path_that_is_refused_for_its_context_is_explained_by_the_flag_that_decides() {
    let sim = os_sim::node().build();
    let plugins = Config::default().with(|c| c.plugin_dir = Some(path(r"C:\csi\plugins")));
    let pods = Config::default().with(|c| c.pod_dir = Some(path(r"C:\csi\pods")));
    for (config, outside, context, reason) in [
        (
            Config::default(),
            r"C:\csi\a",
            PathContext::Plugin,
            r"(C:\var\lib\kubelet); csi-proxy's flag -working-dir adds others",
        ),
        (
            plugins,
            r"\pods\b",
            PathContext::Plugin,
            r"C:\csi\plugins, which csi-proxy's flag -kubelet-csi-plugins-path sets",
        ),
        (
            pods,
            r"\pods\b",
            PathContext::Pod,
            r"C:\csi\pods, which csi-proxy's flag -kubelet-pod-path sets",
        ),
    ] {
        let request = Mkdir {
            path: path(outside),
            context: Some(context),
        };
        let error = refused(
            &Node::new(sim.process(), config),
            &request,
            PermissionDenied,
        )
        .to_string();
        assert!(error.ends_with(reason), "{error}");
    }
}

#[test]
fn rmdir_contents_refuses_a_forged_mount_point() {
    let sim = ntfs().mounted(r"C:\var\lib\kubelet\plugins\v").build();
    let external = sim.external();
    external
        .write(r"C:\var\lib\kubelet\plugins\v\data", b"data of another pod")
        .unwrap();
    for (name, disk) in [("system", 0), ("others", 1)] {
        let volume = sim.volume_on(disk).unwrap().name();
        external
            .junction(&format!(r"C:\var\lib\kubelet\pods\{name}"), &volume)
            .unwrap();
    }
    let (node, before) = (node_on(&sim), sim.snapshot());
    for forged in [r"\pods\system", r"\pods\others"] {
        refused(&node, &contents(forged), PermissionDenied);
    }
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn contract_09b_names_that_only_a_language_considers_equal_are_different() {
    // Unicode's upper case of the sharp s is SS.
    let [registered, forged] =
        ["strasse", "stra\u{df}e"].map(|name| format!(r"C:\var\lib\kubelet\plugins\{name}"));
    let sim = ntfs().mounted(&registered).build();
    let (external, node) = (sim.external(), node_on(&sim));
    external
        .write(&format!(r"{registered}\data"), b"data of another pod")
        .unwrap();
    external
        .junction(&forged, &sim.volume_on(1).unwrap().name())
        .unwrap();
    refused(&node, &contents(&forged), PermissionDenied);
    assert!(external.exists(&format!(r"{registered}\data")));

    let link = |source: &str| link(source, r"\pods\l");
    node.run(&link(&registered)).unwrap();
    refused(&node, &link(&forged), AlreadyExists);
    node.run(&link(r"c:\VAR\lib\kubelet\plugins\STRASSE"))
        .unwrap();
}

#[test]
fn rmdir_contents_keeps_the_system_volume_information_of_a_volume() {
    let sim = ntfs().mounted(r"C:\var\lib\kubelet\plugins\v").build();
    let external = sim.external();
    external
        .mkdir_all(r"C:\var\lib\kubelet\plugins\v\System Volume Information\x")
        .unwrap();
    external
        .mkdir_all(r"C:\var\lib\kubelet\plugins\v\a\System Volume Information")
        .unwrap();
    node_on(&sim).run(&contents(r"\plugins\v")).unwrap();
    assert_eq!(
        external.read_dir(r"C:\var\lib\kubelet\plugins\v").unwrap(),
        ["System Volume Information"]
    );
}

#[test]
fn contract_10_queries_accept_any_path_and_changes_only_paths_in_working_directories() {
    let sim = ntfs()
        .mounted(r"C:\local\v")
        .symlink(r"C:\local\l", r"C:\local\v")
        .build();
    let (node, before) = (node_on(&sim), sim.snapshot());
    let (volume, target) = (volume_on(&node, 1), path(r"C:\local\v"));
    assert!(node.run(&is_link(r"C:\local\l")).unwrap());
    assert_eq!(node.run(&mounted_at(r"C:\local\l")).unwrap(), volume);
    assert_eq!(
        node.run(&storage_ops::GetClosestVolumeIdFromTargetPath {
            target: target.clone()
        })
        .unwrap(),
        volume
    );
    refused(
        &node,
        &storage_ops::MountVolume {
            volume,
            target: target.clone(),
        },
        PermissionDenied,
    );
    refused(
        &node,
        &storage_ops::UnmountVolume { volume, target },
        PermissionDenied,
    );
    assert_eq!(sim.snapshot(), before);
}
