//! Formatting a volume again with its content: only below the directories of `-format-again`, and
//! only if nothing uses the volume.

use std::sync::{Arc, Mutex};

use faults::{Fault, FaultAction, Layer, Layered, Probe, Probed, Race, Trace, When};
use os::{Access, Handle, NtPath, Open, Options, Os, OsError, OsResult, U16Str, U16String};
use os_sim::{Builder, Sim};
use storage_ops::{
    Config, Error,
    ErrorKind::{FailedPrecondition, PermissionDenied, StillRunning},
    FormatVolume, NewFileSystem, Node,
};

use crate::links::{mount_point, relative_link, set_reparse_point};
use crate::refusals::Log;
use crate::setup::{
    GIB, KUBELET, MOUNT, both, failing, failing_on, has_code, node_on, ntfs, partitioned_disk,
    path, refused, refused_saying, says, volume_on,
};

/// A directory whose volumes may be formatted again.
const DISKS: &str = r"C:\mnt\disks";

/// Where a local volume is mounted.
const LOCAL: &str = r"C:\mnt\disks\ssd0";

/// A file of a pod on the volume.
const SECRET: &str = r"C:\mnt\disks\ssd0\secret";

/// The link that kubelet makes for a pod that uses a local volume.
const OF_POD: &str = r"C:\var\lib\kubelet\pods\u\volumes\kubernetes.io~local-volume\pv";

const FORMAT: &str = "wmi call MSFT_Volume.Format";

const WRITER: &str = "S-1-5-93-2-2";

pub(crate) fn again() -> Config {
    Config::default().with(|c| c.format_again = vec![path(DISKS)])
}

/// Returns a local volume with a file of a pod, and the kubelet's directories.
fn used() -> Sim {
    used_on(ntfs())
}

fn used_on(node: Builder) -> Sim {
    let sim = node
        .mounted(LOCAL)
        .dir(&format!(r"{KUBELET}\plugins"))
        .build();
    sim.external().write(SECRET, b"secret").unwrap();
    sim
}

/// Changes a node before a test.
pub(crate) type Change = fn(&Sim);

/// Formats the volume on disk 1 with the settings of a node.
pub(crate) fn format(sim: &Sim, config: Config) -> Result<(), Error> {
    let volume = volume_on(&node_on(sim), 1);
    Node::new(sim.process(), config).run(&FormatVolume::new(volume))
}

/// Formats the volume on disk 1, with `probe` at each call.
pub(crate) fn format_with(
    sim: &Sim,
    config: Config,
    probe: impl Probe + 'static,
) -> Result<(), Error> {
    let volume = volume_on(&node_on(sim), 1);
    Node::new(Arc::new(Probed::new(sim.process(), probe)), config).run(&FormatVolume::new(volume))
}

/// Checks that the format is refused with these words, and changes nothing.
pub(crate) fn refuses(sim: &Sim, config: Config, words: &str) -> String {
    let (volume, before) = (volume_on(&node_on(sim), 1), sim.snapshot());
    let node = Node::new(sim.process(), config);
    let error = refused(&node, &FormatVolume::new(volume), FailedPrecondition);
    says(&error, words);
    assert_eq!(sim.snapshot(), before);
    assert_eq!((formats(sim), node.locked_objects()), (0, 0));
    error.to_string()
}

pub(crate) fn formats(sim: &Sim) -> u32 {
    sim.volume_on(1).unwrap().formats
}

/// Checks that the volume is formatted again, and stays mounted.
fn is_wiped(sim: &Sim, config: Config) {
    format(sim, config).unwrap();
    assert_eq!(formats(sim), 1);
    assert!(sim.external().read_dir(LOCAL).unwrap().is_empty());
}

/// Opens an object of the volume on disk 1, as a pod does. Returns the process too, which has the
/// handle.
fn open(sim: &Sim, path: &NtPath) -> (Arc<Sim>, Box<dyn Handle>) {
    let how = Open::existing(Access::GENERIC_READ, Options::empty());
    let process = sim.process();
    let handle = process.open(path, &how).unwrap();
    (process, handle)
}

/// Returns the path of the root directory of the volume on disk 1.
fn root(sim: &Sim) -> NtPath {
    NtPath::volume_root(sim.volume_on(1).unwrap().id)
}

/// Returns the path of [`SECRET`] by the name of its volume.
fn secret(sim: &Sim) -> NtPath {
    root(sim).join(&U16String::from_str("secret"))
}

/// Adds the entry of [`WRITER`] to the access control list of the root directory.
pub(crate) fn grant(sim: &Sim) {
    let how = Open::existing(Access::READ_CONTROL | Access::WRITE_DAC, Options::DIRECTORY);
    let process = sim.process();
    let root = process.open(&root(sim), &how).unwrap();
    let mut entries = root.security_descriptor().unwrap().entries.unwrap();
    entries[0].sid = WRITER.parse().unwrap();
    root.set_access_list(&entries).unwrap();
}

fn is_granted(sim: &Sim) -> bool {
    sim.snapshot().as_str().contains(WRITER)
}

#[test]
fn a_local_volume_is_formatted_again_whatever_its_root_directory_holds() {
    for fill in [
        (|_| {}) as fn(&Sim),
        |sim| sim.external().write(SECRET, b"secret").unwrap(),
        |sim| {
            sim.external()
                .mkdir(&format!(r"{LOCAL}\$RECYCLE.BIN"))
                .unwrap();
        },
        |sim| sim.external().add_stream(LOCAL, "hidden", 6).unwrap(),
        |sim| sim.external().revoke_all_rights(LOCAL).unwrap(),
    ] {
        let sim = ntfs().mounted(LOCAL).dir(KUBELET).build();
        fill(&sim);
        is_wiped(&sim, again());
        assert!(!sim.snapshot().as_str().contains("hidden"));
    }
    // Former access entries are gone too.
    let sim = used();
    grant(&sim);
    is_wiped(&sim, again());
    assert!(!is_granted(&sim));
}

#[test]
fn the_loss_of_the_content_is_logged() {
    let warnings = Arc::new(Log::default());
    tracing::subscriber::with_default(Arc::clone(&warnings), || is_wiped(&used(), again()));
    let line = "formatting a volume that has a file system";
    assert_eq!(warnings.with(line), 1);
    texts::seen!(line);
}

#[test]
fn a_local_volume_is_formatted_again_by_each_call_with_the_settings_for_new_volumes() {
    let sim = used();
    let config = again().with(|c| {
        c.format_file_system = NewFileSystem::ReFs;
        c.format_allocation_unit = Some(65536);
        c.format_writers = vec![WRITER.parse().unwrap()];
    });
    for round in 1..=2 {
        sim.external().write(SECRET, b"secret").unwrap();
        format(&sim, config.clone()).unwrap();
        let found = sim.volume_on(1).unwrap();
        assert_eq!(
            (found.file_system.as_deref(), found.cluster, found.formats),
            (Some("ReFS"), 65536, round)
        );
        assert!(sim.external().read_dir(LOCAL).unwrap().is_empty());
        assert!(sim.snapshot().as_str().contains(WRITER));
    }
}

fn not_below(at: &str) -> String {
    format!(r"is below DIR: {at}\ is not")
}

#[test]
fn a_volume_that_is_not_mounted_below_the_directories_alone_is_treated_as_without_the_flag() {
    let cases: [(fn() -> Sim, String); 5] = [
        (|| ntfs().build(), "is below DIR: it has none".into()),
        (|| ntfs().mounted(r"C:\mnt\disks").build(), not_below(DISKS)),
        (
            || ntfs().mounted(r"C:\mnt\disks-other\a").build(),
            not_below(r"C:\mnt\disks-other\a"),
        ),
        (
            || ntfs().mounted(LOCAL).mounted(MOUNT).build(),
            not_below(MOUNT),
        ),
        (
            || {
                let sim = ntfs().mounted(LOCAL).build();
                let id = sim.volume_on(1).unwrap().id;
                sim.external().set_drive_letter('S', id);
                sim
            },
            not_below("S:"),
        ),
    ];
    for (build, words) in cases {
        let sim = build();
        let before = sim.snapshot();
        format(&sim, again()).unwrap();
        assert_eq!(sim.snapshot(), before);
        let root = sim.volume_on(1).unwrap().name();
        sim.external()
            .write(&format!("{root}secret"), b"secret")
            .unwrap();
        refuses(&sim, again(), &words);
    }
}

/// A mount manager that still lists a mount point that was removed without it.
struct StillLists;

impl Layer for StillLists {
    fn volume_paths(&self, _: &dyn Os, _: &U16Str) -> OsResult<Vec<U16String>> {
        Ok(vec![U16String::from_str(&format!(r"{LOCAL}\"))])
    }
}

#[test]
fn a_mount_point_that_exists_no_longer_does_not_count() {
    let removed: fn(&Sim) = |_| {};
    let replaced: fn(&Sim) = |sim| sim.external().mkdir(LOCAL).unwrap();
    let link: fn(&Sim) = |sim| sim.external().symlink(LOCAL, r"C:\Windows").unwrap();
    let of_other: fn(&Sim) = |sim| {
        sim.external().mkdir(LOCAL).unwrap();
        let other = sim.volume_on(2).unwrap().id;
        sim.external().set_mount_point(LOCAL, other).unwrap();
    };
    for replace in [removed, replaced, link, of_other] {
        let sim = ntfs()
            .disk(GIB)
            .partitioned()
            .formatted("NTFS")
            .dir(DISKS)
            .build();
        replace(&sim);
        let root = sim.volume_on(1).unwrap().name();
        sim.external()
            .write(&format!("{root}secret"), b"secret")
            .unwrap();
        let (volume, before) = (volume_on(&node_on(&sim), 1), sim.snapshot());
        let node = Node::new(
            Arc::new(Layered::around(sim.process(), StillLists)),
            again(),
        );
        refused_saying(
            &node,
            &FormatVolume::new(volume),
            FailedPrecondition,
            "is below DIR: it has none",
        );
        assert_eq!(sim.snapshot(), before);
    }
}

#[test]
fn a_local_volume_may_have_two_mount_points_below_the_directories() {
    let second = r"C:\other\disks\second";
    let sim = used_on(ntfs().mounted(second));
    refuses(&sim, again(), &format!(r"is below DIR: {second}\ is not"));
    is_wiped(
        &sim,
        again().with(|c| c.format_again.push(path(r"C:\other"))),
    );
    assert!(sim.external().read_dir(second).unwrap().is_empty());
}

#[test]
fn a_volume_with_an_open_file_is_never_formatted_again() {
    // A file, the root directory, and the volume, which another program examines.
    for object in [secret, root, |sim: &Sim| {
        NtPath::volume(sim.volume_on(1).unwrap().id)
    }] {
        let sim = used();
        let opened = open(&sim, &object(&sim));
        refuses(
            &sim,
            again(),
            "the volume cannot be locked, so a process may have a file on it open",
        );
        drop(opened);
        is_wiped(&sim, again());
    }
}

#[test]
fn a_file_that_is_opened_after_the_last_look_is_not_formatted_away() {
    let sim = used();
    let held = Arc::new(Mutex::new(None));
    let (pod, keep) = (sim.clone(), Arc::clone(&held));
    let race = Race::before(0, move || {
        *keep.lock().unwrap() = Some(open(&pod, &secret(&pod)));
    })
    .among(|call| call.primitive == FORMAT);
    let error = format_with(&sim, again(), race).unwrap_err();
    assert_eq!(error.kind(), FailedPrecondition, "{error}");
    assert!(held.lock().unwrap().is_some());
    assert_eq!(sim.external().read(SECRET).unwrap(), b"secret");
    assert_eq!(formats(&sim), 0);
}

#[test]
fn a_volume_to_which_a_link_of_kubelet_leads_is_not_formatted_again() {
    let guid = |sim: &Sim| format!(r"\??\Volume{{{}}}\", sim.volume_on(1).unwrap().id);
    let cases: [(Change, &str); 7] = [
        (|sim| sim.external().symlink(OF_POD, LOCAL).unwrap(), OF_POD),
        (
            |sim| sim.external().symlink(OF_POD, SECRET).unwrap(),
            OF_POD,
        ),
        // A link to a link.
        (
            |sim| {
                sim.external()
                    .symlink(r"C:\mnt\link", r"C:\MNT\disks")
                    .unwrap();
                sim.external().symlink(OF_POD, r"C:\mnt\link\ssd0").unwrap();
            },
            OF_POD,
        ),
        (
            |sim| {
                let at = r"C:\var\lib\kubelet\pods\u\volume-subpaths\pv\c\0";
                sim.external()
                    .mkdir_all(r"C:\var\lib\kubelet\pods\u\volume-subpaths\pv\c")
                    .unwrap();
                sim.external().junction(at, LOCAL).unwrap();
            },
            r"C:\var\lib\kubelet\pods\u\volume-subpaths\pv\c\0",
        ),
        (
            |sim| {
                let at = r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\d\h\globalmount";
                sim.external()
                    .mkdir_all(r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\d\h")
                    .unwrap();
                sim.external().symlink(at, LOCAL).unwrap();
            },
            r"C:\var\lib\kubelet\plugins\kubernetes.io\csi\d\h\globalmount",
        ),
        (
            |sim| {
                sim.external()
                    .mkdir_all(r"C:\var\lib\kubelet\pods\u\volumes\kubernetes.io~csi\pv")
                    .unwrap();
                let at = r"C:\var\lib\kubelet\pods\u\volumes\kubernetes.io~csi\pv\mount";
                sim.external().symlink(at, LOCAL).unwrap();
            },
            r"C:\var\lib\kubelet\pods\u\volumes\kubernetes.io~csi\pv\mount",
        ),
        (
            |sim| {
                sim.external().mkdir(OF_POD).unwrap();
                set_reparse_point(
                    sim,
                    OF_POD,
                    &relative_link(r"..\..\..\..\..\..\..\mnt\disks\ssd0"),
                );
            },
            OF_POD,
        ),
    ];
    let above = OF_POD.rsplit_once('\\').unwrap().0;
    for (add, at) in cases {
        let sim = used();
        sim.external().mkdir_all(above).unwrap();
        add(&sim);
        refuses(
            &sim,
            again(),
            &format!("a pod may be using the volume: the link {at} leads to it"),
        );
        sim.external().remove(at).unwrap();
        is_wiped(&sim, again());
    }
    // The name of the volume itself, without a mount point between.
    let sim = used();
    sim.external().mkdir_all(OF_POD).unwrap();
    set_reparse_point(&sim, OF_POD, &mount_point(&guid(&sim)));
    refuses(&sim, again(), &format!("the link {OF_POD} leads to it"));
    // An administrator has moved `pods` to another place.
    let sim = used();
    let pods = r"C:\var\lib\kubelet\pods";
    sim.external().rename(pods, r"C:\pods").unwrap();
    sim.external().junction(pods, r"C:\pods").unwrap();
    sim.external().mkdir_all(above).unwrap();
    sim.external().symlink(OF_POD, LOCAL).unwrap();
    refuses(&sim, again(), &format!("the link {OF_POD} leads to it"));
    sim.external().remove(OF_POD).unwrap();
    is_wiped(&sim, again());
    // A further working directory.
    let sim = used();
    sim.external().mkdir_all(r"C:\more\x").unwrap();
    sim.external().symlink(r"C:\more\x\l", LOCAL).unwrap();
    let config = again().with(|c| c.working_dirs = vec![path(r"C:\more")]);
    refuses(&sim, config, r"the link C:\more\x\l leads to it");
}

#[test]
fn other_links_and_the_files_of_pods_do_not_keep_a_volume_from_being_formatted_again() {
    let sim = used_on(
        ntfs()
            .smb_server("files")
            .share("one")
            .symlink(r"C:\mnt\disks\other", r"D:\x"),
    );
    let external = sim.external();
    let volumes = r"C:\var\lib\kubelet\pods\u\volumes";
    for directory in [
        "kubernetes.io~csi\\share",
        "kubernetes.io~empty-dir\\big",
        "kubernetes.io~csi\\disk\\mount",
    ] {
        external
            .mkdir_all(&format!(r"{volumes}\{directory}"))
            .unwrap();
    }
    for number in 0..2000 {
        for volume in [
            r"kubernetes.io~empty-dir\big",
            r"kubernetes.io~csi\disk\mount",
        ] {
            external
                .write(&format!(r"{volumes}\{volume}\{number}"), b"")
                .unwrap();
        }
    }
    external
        .symlink(
            &format!(r"{volumes}\kubernetes.io~csi\share\mount"),
            r"\\files\one\deep",
        )
        .unwrap();
    external
        .symlink(
            &format!(r"{volumes}\kubernetes.io~csi\dangling"),
            r"C:\gone\x",
        )
        .unwrap();
    external
        .symlink(&format!(r"{volumes}\kubernetes.io~csi\drive"), r"Q:\gone\x")
        .unwrap();
    external
        .symlink(&format!(r"{volumes}\kubernetes.io~csi\beside"), DISKS)
        .unwrap();
    let trace = Arc::new(Trace::recording());
    format_with(&sim, again(), Arc::clone(&trace)).unwrap();
    assert_eq!(formats(&sim), 1);
    let calls = trace.take();
    let opens = |part: &str| {
        calls
            .iter()
            .filter(|record| record.call.object.contains(part))
            .count()
    };
    assert_eq!(
        (opens("UNC"), opens("Q:")),
        (0, 0),
        "a dead server would be waited for"
    );
}

#[test]
fn a_volume_is_not_formatted_again_if_the_links_of_kubelet_cannot_be_read() {
    let words = "it cannot be determined whether a link leads to the volume";
    let pods = r"C:\var\lib\kubelet\pods";
    // More entries than csi-proxy examines.
    let sim = used();
    for number in 0..1000 {
        sim.external()
            .mkdir_all(&format!(r"{pods}\{number}-{}", "x".repeat(100)))
            .unwrap();
    }
    refuses(&sim, again(), words);
    // A link that only Windows can resolve, and one that leads through too many others.
    for target in [
        r"\??\GLOBALROOT\Device\HarddiskVolume9\",
        r"\??\C:\var\lib\kubelet\pods\p\l",
    ] {
        let sim = used();
        sim.external()
            .mkdir_all(r"C:\var\lib\kubelet\pods\p\l")
            .unwrap();
        set_reparse_point(&sim, r"C:\var\lib\kubelet\pods\p\l", &mount_point(target));
        refuses(&sim, again(), words);
    }
    let sim = used();
    sim.external().mkdir_all(OF_POD).unwrap();
    sim.external().revoke_all_rights(pods).unwrap();
    refuses(&sim, again(), words);
    for (primitive, object, code) in [
        ("open", KUBELET, OsError::IO_DEVICE),
        ("open_child", OF_POD, OsError::SHARING_VIOLATION),
        ("query AttributeTag", OF_POD, OsError::IO_DEVICE),
        (
            "control FSCTL_GET_REPARSE_POINT",
            OF_POD,
            OsError::IO_DEVICE,
        ),
        ("list", pods, OsError::FILE_CORRUPT),
        ("final_path", r"C:\", OsError(4711)),
        ("volume_paths", "", OsError::GEN_FAILURE),
        ("open", LOCAL, OsError::ACCESS_DENIED),
        // The storage provider reports NTFS, but only devices decide.
        ("query_fs Attribute", "", OsError(4711)),
    ] {
        let sim = used();
        sim.external()
            .mkdir_all(OF_POD.rsplit_once('\\').unwrap().0)
            .unwrap();
        sim.external().symlink(OF_POD, LOCAL).unwrap();
        let before = sim.snapshot();
        let fault = failing_on(primitive, move |found| found.ends_with(object), code);
        let error = format_with(&sim, again(), fault).unwrap_err();
        assert_eq!(error.code(), Some(code), "{primitive}: {error}");
        texts::seen!(error.to_string());
        assert_eq!(sim.snapshot(), before, "{primitive}");
    }
}

fn with(directory: &str) -> Config {
    Config::default().with(|c| c.format_again = vec![path(directory)])
}

#[test]
fn the_directory_of_the_flag_may_be_a_link_and_has_nothing_to_do_with_kubelet() {
    // The mount manager does not know the link.
    let sim = used();
    sim.external().symlink(r"C:\local", DISKS).unwrap();
    is_wiped(&sim, with(r"C:\local"));
    // A link that leads to kubelet's directory, or above it.
    for target in [r"C:\var\lib\kubelet\plugins", r"C:\var", KUBELET] {
        let sim = ntfs().mounted(MOUNT).symlink(r"C:\local", target).build();
        sim.external()
            .write(&format!(r"{MOUNT}\data"), b"precious")
            .unwrap();
        refuses(
            &sim,
            with(r"C:\local"),
            "which contains the working directory",
        );
    }
    // Kubelet's directory is a link to a directory below that of the flag.
    let sim = ntfs().mounted(r"C:\mnt\disks\kubelet\plugins\v").build();
    sim.external().remove_all(KUBELET).unwrap();
    sim.external()
        .symlink(KUBELET, r"C:\mnt\disks\kubelet")
        .unwrap();
    sim.external()
        .write(r"C:\mnt\disks\kubelet\plugins\v\data", b"precious")
        .unwrap();
    refuses(&sim, again(), "which contains the working directory");
    // A link to a server is not followed. It matters only for a volume that may lie below it.
    for (at, words) in [
        (
            LOCAL,
            r"the directory C:\remote of csi-proxy's flag -format-again cannot be opened",
        ),
        (MOUNT, "is below DIR: C:"),
    ] {
        let node = ntfs().smb_server("files").share("one");
        let sim = node.symlink(r"C:\remote", r"\\files\one").disk(GIB).build();
        let volume = sim.volume_on(1).unwrap().id;
        sim.external().mkdir_all(at).unwrap();
        sim.external().set_mount_point(at, volume).unwrap();
        sim.external()
            .write(&format!(r"{at}\data"), b"precious")
            .unwrap();
        refuses(&sim, with(r"C:\remote"), words);
    }
    // The texts are compared at the start.
    for (directory, other) in [
        (r"C:\var", KUBELET),
        (r"C:\VAR\lib\kubelet", KUBELET),
        (r"C:\var\lib\kubelet\plugins", KUBELET),
        (r"C:\", KUBELET),
        (r"C:\csi\x", r"C:\csi"),
        (r"D:\", r"D:\pods"),
    ] {
        let config = with(directory).with(|c| {
            c.working_dirs = vec![path(r"C:\csi")];
            c.pod_dir = Some(path(r"D:\pods"));
        });
        let Err(error) = Node::start(os_sim::node().build().process(), config) else {
            panic!("{directory}");
        };
        let words = format!("the working directory {other} ");
        assert!(error.to_string().contains(&words), "{error}");
        texts::seen!(error.to_string());
    }
}

#[test]
fn a_volume_that_the_node_itself_uses_is_not_formatted_again() {
    for config in [
        again().with(|c| c.node_paths = vec![path(r"C:\mnt\disks\ssd0\containerd")]),
        again().with(|c| c.node_paths = vec![path(r"C:\link\containerd")]),
    ] {
        let sim = used_on(ntfs().symlink(r"C:\link", LOCAL));
        let before = sim.snapshot();
        let volume = volume_on(&node_on(&sim), 1);
        let node = Node::new(sim.process(), config);
        refused(&node, &FormatVolume::new(volume), PermissionDenied);
        assert_eq!(sim.snapshot(), before);
    }
}

#[test]
fn another_file_system_is_not_formatted_again() {
    for name in ["FAT32", "ReFS"] {
        let sim = used_on(partitioned_disk().formatted(name));
        refuses(
            &sim,
            again(),
            &format!("the file system {name}, which csi-proxy does not overwrite"),
        );
    }
}

fn lost() -> Fault {
    Fault::each(
        |call| call.primitive == FORMAT,
        When::After,
        FaultAction::Fail(OsError::RPC_CALL_FAILED),
    )
}

#[test]
fn a_second_format_with_an_unknown_outcome_succeeds_only_if_the_old_file_system_is_gone() {
    let sim = used();
    format_with(&sim, again(), lost()).unwrap();
    assert_eq!(formats(&sim), 1);
    assert!(sim.external().read_dir(LOCAL).unwrap().is_empty());
    // The connection broke before the method began.
    let sim = used();
    let before = sim.snapshot();
    let error = format_with(&sim, again(), failing(FORMAT, OsError::RPC_CALL_FAILED)).unwrap_err();
    assert_eq!(error.kind(), StillRunning, "{error}");
    assert_eq!(sim.snapshot(), before);
    // The connection broke before the provider was asked to format.
    let error = format_with(
        &sim,
        again(),
        failing("wmi query", OsError::RPC_CALL_FAILED),
    )
    .unwrap_err();
    has_code(&error, OsError::RPC_CALL_FAILED);
    assert_eq!(sim.snapshot(), before);
    // The provider reports success without having formatted anything.
    let nothing = Fault::each(
        |call| call.primitive == FORMAT,
        When::Before,
        FaultAction::Return(0),
    );
    let error = format_with(&sim, again(), nothing).unwrap_err();
    says(&error, "the volume has no new NTFS file system");
    texts::seen!(error.to_string());
    assert_eq!(sim.snapshot(), before);
    // The serial number cannot be read, so that the end cannot be recognized.
    let unread = failing("query Id", OsError(4711));
    let error = format_with(&sim, again(), unread).unwrap_err();
    has_code(&error, OsError(4711));
    texts::seen!(error.to_string());
    assert_eq!(sim.snapshot(), before);
}

fn config() -> Config {
    again().with(|c| c.format_writers = vec![WRITER.parse().unwrap()])
}

#[test]
fn the_access_list_is_set_only_if_the_second_format_has_begun() {
    // The daemon dies before it sets the list, and the request is repeated.
    let sim = used();
    let died = Fault::each(
        |call| call.primitive == FORMAT,
        When::After,
        FaultAction::Die,
    );
    format_with(&sim, config(), died).unwrap_err();
    assert!(!is_granted(&sim));
    format(&sim, config()).unwrap();
    assert!(is_granted(&sim));
    // The provider refuses to format, so the list of the old root stays.
    let sim = used();
    let before = sim.snapshot();
    let refuses = Fault::each(
        |call| call.primitive == FORMAT,
        When::Before,
        FaultAction::Return(43005),
    );
    format_with(&sim, config(), refuses).unwrap_err();
    // The volume is open when the provider is asked again.
    let opened = Arc::new(Mutex::new(None));
    let (pod, keep) = (sim.clone(), Arc::clone(&opened));
    let busy = both(
        Race::before(0, move || {
            *keep.lock().unwrap() = Some(open(&pod, &secret(&pod)));
        })
        .among(|call| call.primitive == FORMAT),
        not_ready(),
    );
    format_with(&sim, config(), busy).unwrap_err();
    opened.lock().unwrap().take();
    let without = config().with(|c| c.format_again.clear());
    sim.external().remove(SECRET).unwrap();
    format(&sim, without).unwrap();
    sim.external().write(SECRET, b"secret").unwrap();
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn a_volume_that_is_used_only_when_the_provider_is_ready_is_not_formatted_again() {
    // The provider is not ready at first. Meanwhile kubelet starts a pod.
    let sim = used();
    sim.external()
        .mkdir_all(OF_POD.rsplit_once('\\').unwrap().0)
        .unwrap();
    let kubelet = sim.clone();
    let race = Race::before(0, move || {
        kubelet.external().symlink(OF_POD, LOCAL).unwrap();
    })
    .among(|call| call.primitive == FORMAT);
    let probes = both(race, not_ready());
    let error = format_with(&sim, again(), probes).unwrap_err();
    says(&error, "a pod may be using the volume");
    assert_eq!(formats(&sim), 0);
}

/// Makes the provider refuse the first format for a reason that passes.
fn not_ready() -> Fault {
    Fault::at(0, When::Before, FaultAction::Return(4099)).among(|call| call.primitive == FORMAT)
}
