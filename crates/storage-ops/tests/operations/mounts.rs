//! Tests of mount points: what can be mounted where, and which volume a mount point has.

use crate::setup::{
    GIB, MOUNT, NoProbe, failing, has_code, layered, mount, mounted_at, node_on, ntfs,
    partitioned_disk, probed, refused, refused_saying, resize, says, traced, unmount, volume_on,
    volumes_of,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use faults::{Fault, FaultAction, Layer, Probe, Race, When};
use os::{
    CallStatus, MethodCall, Os, OsError, OsResult, Returned, Time, U16Str, U16String, Uuid, Value,
    Wmi,
};
use os_sim::Sim;
use storage_ops::{
    ErrorKind::{FailedPrecondition, Internal, NotFound, PermissionDenied},
    FormatVolume, GetDiskNumberFromVolumeId, VolumeId, WriteVolumeCache,
};

#[test]
fn a_file_is_refused_as_a_mount_target() {
    let sim = ntfs().file(MOUNT, "data").build();
    let (node, trace) = traced(&sim, NoProbe);
    let volume = volume_on(&node, 1);
    let error = refused(&node, &mount(volume, MOUNT), FailedPrecondition);
    has_code(&error, OsError::DIRECTORY);
    assert_eq!(trace.counts().of("set_volume_mount_point"), 0);
}

/// Mounts another volume at [`MOUNT`] before the first call of `primitive`.
fn replaced_before(primitive: &'static str, sim: &Sim, volume: Uuid) -> Race {
    let sim = sim.clone();
    Race::before(0, move || {
        sim.process()
            .delete_volume_mount_point(&U16String::from_str(&format!(r"{MOUNT}\")))
            .unwrap();
        sim.external().set_mount_point(MOUNT, volume).unwrap();
    })
    .among(move |call| call.primitive == primitive)
}

#[test]
fn a_mount_that_another_program_replaces_is_not_reported_as_success() {
    let sim = os_sim::node()
        .dir(MOUNT)
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .disk(GIB)
        .partitioned()
        .formatted("NTFS");
    let sim = sim.build();
    let (one, two) = (volume_on(&node_on(&sim), 1), sim.volume_on(2).unwrap().id);
    // Between the change and the check of its result.
    let replaced = replaced_before("control FSCTL_GET_REPARSE_POINT", &sim, two);
    let node = probed(&sim, replaced);
    let error = refused(&node, &mount(one, MOUNT), Internal);
    assert!(
        error
            .to_string()
            .ends_with("the directory is not a mount point of the volume"),
        "{error}"
    );
}

#[test]
fn contract_25_the_volume_of_a_link_is_that_of_its_target() {
    let sim = ntfs().mounted(MOUNT).build();
    let (node, external) = (node_on(&sim), sim.external());
    let volume = volume_on(&node, 1);
    external.mkdir(&format!(r"{MOUNT}\sub")).unwrap();
    let (into, out) = (
        r"C:\var\lib\kubelet\pods\into".to_owned(),
        format!(r"{MOUNT}\out"),
    );
    external.symlink(&into, &format!(r"{MOUNT}\sub")).unwrap();
    // A link on the volume to its root, which is mounted, and one to a directory of the volume,
    // which is not.
    external.symlink(&out, MOUNT).unwrap();
    external
        .symlink(&format!(r"{MOUNT}\across"), &format!(r"{MOUNT}\sub"))
        .unwrap();
    // A link of a pod, and a link to that link.
    let (a, b) = (
        r"C:\var\lib\kubelet\pods\a".to_owned(),
        r"C:\var\lib\kubelet\pods\b".to_owned(),
    );
    external.symlink(&a, MOUNT).unwrap();
    external.symlink(&b, &a).unwrap();
    for text in [&into, &out, &a, &b, MOUNT] {
        assert_eq!(node.run(&mounted_at(text)).unwrap(), volume, "{text}");
    }
    refused(&node, &mounted_at(&format!(r"{MOUNT}\across")), NotFound);
}

#[test]
fn contract_08_a_path_that_cannot_be_opened_is_not_reported_unmounted() {
    let sim = ntfs().mounted(MOUNT).build();
    // The mount point itself, and its target.
    for nth in [0, 1] {
        for (code, kind) in [
            (OsError::ACCESS_DENIED, PermissionDenied),
            (OsError::SHARING_VIOLATION, FailedPrecondition),
            (OsError::IO_DEVICE, FailedPrecondition),
        ] {
            let fault = Fault::at(nth, When::Before, FaultAction::Fail(code))
                .among(|call| call.primitive == "open" && call.object.ends_with(r"\plugins\v"));
            let error = refused(&probed(&sim, fault), &mounted_at(MOUNT), kind);
            assert_eq!(error.code(), Some(code), "{nth}");
            assert!(
                !error.to_string().contains("because it does not exist"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_mounted_volume_without_a_file_system_is_found_by_its_mount_point() {
    let sim = os_sim::node().dir(MOUNT).disk(GIB).partitioned().build();
    sim.external()
        .set_mount_point(MOUNT, sim.volume_on(1).unwrap().id)
        .unwrap();
    let node = node_on(&sim);
    assert_eq!(node.run(&mounted_at(MOUNT)).unwrap(), volume_on(&node, 1));
}

#[test]
fn a_volume_that_spans_disks_is_refused_and_left_unchanged() {
    let sim = ntfs()
        .mounted(MOUNT)
        .spanned(2, GIB / 2)
        .disk(GIB)
        .dir(r"C:\var\lib\kubelet\pods\p")
        .build();
    let (node, before) = (node_on(&sim), sim.snapshot());
    let volume =
        VolumeId::parse(&format!(r"\\?\Volume{{{}}}\", sim.volume_on(1).unwrap().id)).unwrap();
    let error = refused(
        &node,
        &GetDiskNumberFromVolumeId { volume },
        FailedPrecondition,
    );
    assert!(
        error
            .to_string()
            .ends_with("the volume has 2 extents; only volumes with one extent are supported"),
        "{error}"
    );
    refused(&node, &FormatVolume::new(volume), FailedPrecondition);
    refused(&node, &resize(volume, 0), FailedPrecondition);
    refused(&node, &mount(volume, r"\pods\p"), FailedPrecondition);
    refused(&node, &unmount(volume, MOUNT), FailedPrecondition);
    // The simulated partition table of the second disk does not list its part of the volume.
    refused(&node, &volumes_of(1), FailedPrecondition);
    assert_eq!(node.run(&volumes_of(2)), Ok(Vec::new()));
    assert_eq!(sim.snapshot(), before);
}

#[test]
fn contract_24_unmounting_a_write_protected_volume_succeeds() {
    let sim = ntfs().read_only().mounted(MOUNT).build();
    let node = node_on(&sim);
    let volume = volume_on(&node, 1);
    node.run(&WriteVolumeCache { volume }).unwrap();
    node.run(&unmount(volume, MOUNT)).unwrap();
    assert!(!sim.external().is_link(MOUNT));
}

#[test]
fn a_failed_flush_and_a_missing_volume_have_their_own_errors() {
    let sim = ntfs().mounted(MOUNT).build();
    let (volume, before) = (volume_on(&node_on(&sim), 1), sim.snapshot());
    let broken = probed(&sim, failing("flush", OsError::IO_DEVICE));
    refused(&broken, &unmount(volume, MOUNT), FailedPrecondition);
    assert_eq!(sim.snapshot(), before, "the volume stays mounted");
    let error = refused(&broken, &WriteVolumeCache { volume }, FailedPrecondition);
    says(
        &error,
        ": the cache of the volume could not be written to its disk: ",
    );
    has_code(&error, OsError::IO_DEVICE);
    sim.unplug_disk(1);
    refused_saying(
        &node_on(&sim),
        &WriteVolumeCache { volume },
        NotFound,
        &format!("{volume}: volume {volume} does not exist"),
    );
}

#[test]
fn a_format_that_failed_is_not_waited_for() {
    let sim = partitioned_disk().build();
    let failed = failing("wmi call MSFT_Volume.Format", OsError::WBEM_FAILED);
    let node = probed(&sim, failed);
    let (volume, before) = (volume_on(&node, 1), sim.now());
    refused(&node, &FormatVolume::new(volume), Internal);
    assert_eq!(sim.now(), before);
}

#[test]
fn a_volume_is_mounted_and_unmounted_if_the_mount_manager_needs_the_directory_for_itself() {
    let sim = os_sim::node()
        .dir(MOUNT)
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .build();
    let volume = volume_on(&node_on(&sim), 1);
    // While the directory is open, the storage provider fails too.
    let once = |first: &'static str, second: &'static str| {
        let fault = |primitive: &'static str, code| {
            let fault = Fault::at(0, When::Before, FaultAction::Fail(code));
            Arc::new(fault.among(move |call| call.primitive == primitive)) as Arc<dyn Probe>
        };
        probed(
            &sim,
            vec![
                fault(first, OsError::SHARING_VIOLATION),
                fault(second, OsError::WBEM_FAILED),
            ],
        )
    };
    let node = once(
        "set_volume_mount_point",
        "wmi call MSFT_Partition.AddAccessPath",
    );
    node.run(&mount(volume, MOUNT)).unwrap();
    assert_eq!(node.run(&mounted_at(MOUNT)).unwrap(), volume);
    let node = once(
        "delete_volume_mount_point",
        "wmi call MSFT_Partition.RemoveAccessPath",
    );
    node.run(&unmount(volume, MOUNT)).unwrap();
    assert!(!sim.external().is_link(MOUNT));
}

/// A mount manager that opens the directory to delete it, which a handle that does not share
/// deletion prevents. Counts the calls of the provider.
struct NeedsDirectory(Sim, Arc<AtomicUsize>);

impl NeedsDirectory {
    fn open(&self, directory: &U16Str) -> OsResult<()> {
        let path = directory.to_string_lossy();
        let path = path.trim_end_matches('\\');
        let moved = format!("{path} moved");
        self.0.external().rename(path, &moved)?;
        self.0.external().rename(&moved, path)
    }
}

impl Layer for NeedsDirectory {
    fn set_volume_mount_point(
        &self,
        node: &dyn Os,
        directory: &U16Str,
        volume: &U16Str,
    ) -> OsResult<()> {
        self.open(directory)?;
        node.set_volume_mount_point(directory, volume)
    }

    fn delete_volume_mount_point(&self, node: &dyn Os, directory: &U16Str) -> OsResult<()> {
        self.open(directory)?;
        node.delete_volume_mount_point(directory)
    }

    fn wmi_call(
        &self,
        _wmi: &dyn Wmi,
        _call: &MethodCall<'_>,
        _deadline: Time,
    ) -> OsResult<CallStatus> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Err(OsError::WBEM_FAILED)
    }
}

/// The directory in which csi-proxy tests whether a held directory can be mounted.
const TESTED: &str = r"C:\Windows\csi-proxy mount test";

#[test]
fn a_mount_manager_that_needs_each_directory_for_itself_is_recognized_without_the_provider() {
    let sim = ntfs().dir(MOUNT).build();
    let volume = volume_on(&node_on(&sim), 1);
    // As a daemon leaves it that was ended during the test.
    let external = sim.external();
    external.mkdir(TESTED).unwrap();
    let system = sim.volume_on(0).unwrap().id;
    external.set_mount_point(TESTED, system).unwrap();
    let provider_calls = Arc::default();
    let node = layered(
        &sim,
        NeedsDirectory(sim.clone(), Arc::clone(&provider_calls)),
    );
    node.run(&mount(volume, MOUNT)).unwrap();
    assert_eq!(node.run(&mounted_at(MOUNT)).unwrap(), volume);
    node.run(&unmount(volume, MOUNT)).unwrap();
    assert!(!external.is_link(MOUNT));
    assert_eq!(provider_calls.load(Ordering::Relaxed), 0);
    assert!(!external.exists(TESTED));
}

#[test]
fn a_directory_that_a_container_has_open_does_not_end_the_protection_of_others() {
    let sim = ntfs().dir(MOUNT).build();
    let volume = volume_on(&node_on(&sim), 1);
    // The driver's directory is the cause of the first answer. The test succeeds.
    let busy = Fault::some(
        0,
        u64::MAX,
        When::Before,
        FaultAction::Fail(OsError::SHARING_VIOLATION),
    )
    .among(|call| call.primitive == "set_volume_mount_point" && call.object.contains("kubelet"));
    let (node, trace) = traced(&sim, busy);
    for _ in 0..2 {
        node.run(&mount(volume, MOUNT)).unwrap();
        node.run(&unmount(volume, MOUNT)).unwrap();
    }
    let counts = trace.counts();
    assert_eq!(counts.of("wmi call MSFT_Partition.AddAccessPath"), 2);
    // One for each mount, and one for the test, which is not repeated.
    assert_eq!(counts.of("set_volume_mount_point"), 3);
    assert!(!sim.external().exists(TESTED));
}

/// What a call of the mount manager does.
#[derive(Clone, Copy)]
enum Mounts {
    /// The call fails.
    Fails(OsError),
    /// The volume is mounted at another directory, as if another process had replaced the
    /// directory, or Windows had followed a link.
    Elsewhere,
    /// The same, and the call fails.
    ElsewhereAndFails(OsError),
}

/// What the storage provider does.
#[derive(Clone, Copy)]
enum Provider {
    Fails,
    MountsElsewhere,
    Mounts,
}

/// A mount manager whose first call has the first effect, and each further call the last one.
struct MountManager {
    effects: [Mounts; 2],
    provider: Provider,
    lists_mount_points: bool,
    calls: AtomicUsize,
}

impl MountManager {
    fn new(effects: [Mounts; 2], provider: Provider) -> Self {
        Self {
            effects,
            provider,
            lists_mount_points: true,
            calls: AtomicUsize::new(0),
        }
    }
}

impl Layer for MountManager {
    fn set_volume_mount_point(
        &self,
        node: &dyn Os,
        directory: &U16Str,
        volume: &U16Str,
    ) -> OsResult<()> {
        if directory.to_string_lossy().starts_with(TESTED) {
            return node.set_volume_mount_point(directory, volume);
        }
        let elsewhere = U16String::from_str(r"C:\elsewhere\");
        match self.effects[self.calls.fetch_add(1, Ordering::Relaxed).min(1)] {
            Mounts::Fails(code) => Err(code),
            Mounts::Elsewhere => node.set_volume_mount_point(&elsewhere, volume),
            Mounts::ElsewhereAndFails(code) => {
                node.set_volume_mount_point(&elsewhere, volume)?;
                Err(code)
            }
        }
    }

    fn volume_paths(&self, node: &dyn Os, volume: &U16Str) -> OsResult<Vec<U16String>> {
        if self.lists_mount_points {
            node.volume_paths(volume)
        } else {
            Err(OsError::GEN_FAILURE)
        }
    }

    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        let elsewhere = [("AccessPath", Value::Text(r"C:\elsewhere".into()))];
        let arguments = match self.provider {
            Provider::Fails => {
                return Ok(CallStatus::Done(Returned {
                    code: 4,
                    ..Returned::default()
                }));
            }
            Provider::MountsElsewhere => &elsewhere,
            Provider::Mounts => call.arguments,
        };
        wmi.call(&MethodCall { arguments, ..*call }, deadline)
    }
}

#[test]
fn a_mount_point_that_another_program_replaces_during_the_flush_is_not_removed() {
    let sim = ntfs()
        .mounted(MOUNT)
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .build();
    let (one, two) = (volume_on(&node_on(&sim), 1), sim.volume_on(2).unwrap().id);
    let error = refused(
        &probed(&sim, replaced_before("flush", &sim, two)),
        &unmount(one, MOUNT),
        FailedPrecondition,
    );
    let said = "another program has just replaced the mount point";
    says(&error, said);
    assert!(sim.external().is_link(MOUNT));
}

#[test]
fn a_volume_is_mounted_although_its_mount_points_cannot_be_listed() {
    let sim = ntfs().dir(MOUNT).build();
    let volume = volume_on(&node_on(&sim), 1);
    let node = probed(&sim, failing("volume_paths", OsError::GEN_FAILURE));
    node.run(&mount(volume, MOUNT)).unwrap();
    assert!(sim.external().is_link(MOUNT));
}

#[test]
fn the_error_of_a_mount_says_if_a_mount_elsewhere_could_not_be_undone() {
    let sim = ntfs().dir(MOUNT).dir(r"C:\elsewhere").build();
    let volume = volume_on(&node_on(&sim), 1);
    let node = layered(
        &sim,
        MountManager {
            lists_mount_points: false,
            ..MountManager::new([Mounts::Elsewhere; 2], Provider::Fails)
        },
    );
    let error = refused(&node, &mount(volume, MOUNT), Internal);
    let said = "if Windows has mounted the volume at another directory instead, that mount was not \
                undone, because the mount points of the volume could not be listed before: ";
    says(&error, said);
}

#[test]
fn a_mount_that_came_to_be_elsewhere_is_undone() {
    const NEEDED: Mounts = Mounts::Fails(OsError::SHARING_VIOLATION);
    const LOST: Mounts = Mounts::ElsewhereAndFails(OsError::GEN_FAILURE);
    const REFUSED: Mounts = Mounts::Fails(OsError::GEN_FAILURE);
    for (effects, provider, kind) in [
        ([NEEDED, Mounts::Elsewhere], Provider::Fails, Some(Internal)),
        ([Mounts::Elsewhere; 2], Provider::Fails, Some(Internal)),
        (
            [NEEDED; 2],
            Provider::MountsElsewhere,
            Some(FailedPrecondition),
        ),
        ([LOST, REFUSED], Provider::Mounts, None),
    ] {
        let sim = ntfs()
            .dir(MOUNT)
            .dir(r"C:\elsewhere")
            .mounted(r"C:\before")
            .build();
        let (volume, before) = (volume_on(&node_on(&sim), 1), sim.snapshot());
        let node = layered(&sim, MountManager::new(effects, provider));
        if let Some(kind) = kind {
            refused(&node, &mount(volume, MOUNT), kind);
            assert_eq!(sim.snapshot(), before);
        } else {
            node.run(&mount(volume, MOUNT)).unwrap();
            assert!(sim.external().is_link(MOUNT) && !sim.external().is_link(r"C:\elsewhere"));
        }
    }
}

#[test]
fn a_volume_that_exists_is_mounted_and_unmounted_without_a_list_of_all_volumes() {
    let other = r"C:\var\lib\kubelet\plugins\other";
    let sim = ntfs().mounted(MOUNT);
    let sim = sim
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .dir(other)
        .build();
    let (node, trace) = traced(&sim, NoProbe);
    let (first, second) = (volume_on(&node, 1), volume_on(&node, 2));
    let before = trace.counts();
    refused(&node, &mount(second, MOUNT), FailedPrecondition);
    node.run(&mount(second, other)).unwrap();
    node.run(&unmount(first, MOUNT)).unwrap();
    node.run(&unmount(second, other)).unwrap();
    assert_eq!((trace.counts() - &before).of("volumes"), 0);
}
