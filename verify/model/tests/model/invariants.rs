//! The invariants: each answer, and the whole state of the node, match the reference model.

use std::collections::BTreeMap;

use os_sim::{DiskView, FileKind};
use tonic::Status;

use crate::directory_tree::{Directory, DiskKey, Entry, Target, all};
use crate::expected::{Expected, OVERHEAD};
use crate::messages::Payload;
use crate::reference_model::{Layout, Model};
use crate::system_under_test::SystemUnderTest;
use crate::transition::{Call, Transition, VolumeName};

impl SystemUnderTest {
    /// Applies a transition, after which the node must match `model`.
    pub(crate) fn apply(&mut self, model: &Model, transition: &Transition) {
        match transition {
            Transition::Call(call, version) => {
                let before = call.reads().then(|| self.state_lines());
                let answer = self.call(call, *version);
                self.check_answer(model, &answer);
                if let Some(before) = before {
                    assert_eq!(
                        self.state_lines(),
                        before,
                        "a read changed the state of the node"
                    );
                }
            }
            Transition::Event(event) => self.apply_event(event, model),
        }
        self.check_state(model);
    }

    /// Calls every RPC that reads state, and checks the answers.
    pub(crate) fn check_all_reads(&mut self, model: &Model) {
        for call in all_reads(model) {
            let transition = Transition::Call(call, 0);
            self.apply(&model.clone().apply(&transition), &transition);
        }
    }

    /// The state of the node without the mappings, whose status changes when an unreachable server
    /// is accessed.
    fn state_lines(&self) -> Vec<String> {
        let snapshot = self.sim.snapshot();
        snapshot
            .as_str()
            .lines()
            .filter(|line| !line.starts_with("mapping "))
            .map(str::to_owned)
            .collect()
    }

    /// Checks an answer against the expected one.
    pub(crate) fn check_answer(&mut self, model: &Model, answer: &Result<Payload, Status>) {
        match (&model.expected, answer) {
            (Expected::Unspecified, _) => {}
            (Expected::Fails(codes), Err(status)) => {
                assert!(
                    codes.contains(&status.code()),
                    "expected one of {codes:?}, got {status}"
                );
            }
            (Expected::FailsWith(code, words), Err(status)) => {
                assert_eq!(status.code(), *code, "{status}");
                assert!(
                    status.message().contains(words),
                    "{words:?} is missing in: {status}"
                );
            }
            (Expected::Fails(_) | Expected::FailsWith(..), Ok(payload)) => {
                panic!("expected {:?}, got {payload:?}", model.expected)
            }
            (expected, Err(status)) => panic!("expected {expected:?}, got {status}"),
            (expected, Ok(payload)) => self.compare(model, expected, payload),
        }
    }

    fn compare(&mut self, model: &Model, expected: &Expected, payload: &Payload) {
        match (expected, payload) {
            (Expected::Returns(expected), payload) => assert_eq!(payload, expected),
            (Expected::Volumes(keys), Payload::Volumes(names)) => {
                let expected: Vec<String> =
                    keys.iter().map(|key| self.volumes[key].clone()).collect();
                assert_eq!(*names, expected, "the volumes of {keys:?}");
            }
            (Expected::Locations(expected), Payload::Locations(found)) => {
                assert!(
                    found.keys().eq(expected.keys()),
                    "expected {expected:?}, got {found:?}"
                );
                for (number, at) in expected {
                    // Of the location of an NVMe disk the model knows only that it has no target
                    // and no LUN.
                    let from = if at[3].is_empty() { 2 } else { 0 };
                    assert_eq!(
                        found[number][from..],
                        at[from..],
                        "the location of disk {number}"
                    );
                }
            }
            (Expected::Ids(expected), Payload::Ids(found)) => {
                assert!(
                    found.keys().eq(expected.keys()),
                    "expected {expected:?}, got {found:?}"
                );
                for (number, ids) in expected {
                    assert!(
                        ids.as_ref().is_none_or(|ids| *ids == found[number]),
                        "the ids of disk {number}: {found:?}"
                    );
                }
            }
            (
                Expected::Stats {
                    extent,
                    size_generation,
                },
                Payload::Stats { total, used },
            ) => {
                assert!(
                    used <= total && total <= extent && extent - total <= OVERHEAD,
                    "{payload:?} of {extent}"
                );
                let key = model.disks.values().find(|disk| {
                    disk.volume
                        .as_ref()
                        .is_some_and(|v| v.size_generation == *size_generation)
                });
                let key = key.map_or(0, |disk| disk.key);
                let first = *self.totals.entry((key, *size_generation)).or_insert(*total);
                assert_eq!(*total, first, "the size changed without a resize");
            }
            _ => panic!("expected {expected:?}, got {payload:?}"),
        }
    }

    /// Compares the whole state of the node with the model.
    pub(crate) fn check_state(&mut self, model: &Model) {
        self.sim
            .invariants()
            .expect("the invariants of the simulated node hold");
        let shown: BTreeMap<u32, DiskView> = self
            .sim
            .disks()
            .into_iter()
            .map(|disk| (disk.number, disk))
            .collect();
        let expected: Vec<u32> = model
            .disks
            .iter()
            .filter(|(_, disk)| disk.enumerated)
            .map(|(number, _)| *number)
            .collect();
        assert!(
            shown.keys().eq(&expected),
            "expected disks {expected:?}, got {:?}",
            shown.keys()
        );
        for number in expected {
            self.check_disk(model, number, &shown[&number]);
        }
        self.check_files("C:", &model.files, &["outside", "var"]);
        for disk in model.disks.values().filter(|disk| disk.key != 0) {
            let files = model
                .volume(disk.key)
                .and_then(|volume| volume.file_system.as_ref())
                .map(|system| &system.files);
            if let Some(files) = files {
                let root = self.volumes[&disk.key].clone();
                let names: Vec<&str> = files.keys().map(String::as_str).collect();
                self.check_files(root.trim_end_matches('\\'), files, &names);
            }
        }
        let mappings = self
            .sim
            .smb_mappings()
            .into_iter()
            .map(|mapping| (mapping.remote, mapping.user));
        let expected = model.mappings.iter();
        let expected = expected
            .map(|(share, mapping)| (format!(r"\\files\{share}"), Some(mapping.user.to_owned())));
        assert_eq!(
            mappings.collect::<BTreeMap<_, _>>(),
            expected.collect(),
            "the mappings"
        );
    }

    fn check_disk(&mut self, model: &Model, number: u32, found: &DiskView) {
        let disk = &model.disks[&number];
        let partitioned = matches!(disk.layout, Layout::Gpt | Layout::Mbr);
        let table = match disk.layout {
            Layout::Raw => "raw",
            Layout::Reserved | Layout::Gpt => "gpt",
            Layout::Mbr => "mbr",
        };
        assert_eq!(
            (found.offline, found.read_only),
            (!disk.online, disk.read_only),
            "disk {number}"
        );
        assert_eq!(
            (found.layout, found.size),
            (table, disk.size),
            "disk {number}"
        );
        let volumes: Vec<_> = found
            .partitions
            .iter()
            .filter_map(|part| part.volume.as_ref())
            .collect();
        assert_eq!(
            volumes.len(),
            usize::from(partitioned),
            "the volumes of disk {number}"
        );
        let (Some(expected), Some(volume)) = (&disk.volume, volumes.first()) else {
            return;
        };
        let name = self
            .volumes
            .entry(disk.key)
            .or_insert_with(|| volume.name())
            .clone();
        assert_eq!(volume.name(), name, "disk {number} has another volume");
        assert_eq!(volume.arrived, disk.online, "the volume of disk {number}");
        let kind = expected.file_system.as_ref().map(|system| system.name);
        assert_eq!(
            volume.file_system.as_deref(),
            kind,
            "the file system of disk {number}"
        );
        assert!(
            volume.formats <= 1,
            "the volume of disk {number} was formatted twice"
        );
    }

    /// Compares the entries `names` of a root directory, and everything below them.
    fn check_files(&self, root: &str, expected: &Directory, names: &[&str]) {
        let mut found = BTreeMap::new();
        for file in self.sim.tree(&format!(r"{root}\")).expect("a file system") {
            let path = file.path.to_lowercase();
            let top = path.split('\\').next().unwrap_or_default();
            if root != "C:" || names.contains(&top) {
                found.insert(path, self.describe_found(&file.kind));
            }
        }
        let expected: BTreeMap<String, String> = all(expected)
            .into_iter()
            .map(|(names, entry)| (names.join("\\"), self.describe_expected(entry)))
            .collect();
        found.retain(|path, _| !path.starts_with("system volume information"));
        assert_eq!(found, expected, "the files on {root}");
    }

    fn describe_found(&self, kind: &FileKind) -> String {
        let normalized = |target: &str| target.to_lowercase().trim_end_matches('\\').to_owned();
        match kind {
            FileKind::Directory => "directory".to_owned(),
            FileKind::File(_) => "file".to_owned(),
            FileKind::Symlink(target) => format!("link to {}", normalized(target)),
            FileKind::MountPoint(target) => {
                let of = |name: &str| normalized(name).replace(r"\\?\", r"\??\");
                let key = self
                    .volumes
                    .iter()
                    .find(|(_, name)| of(name) == normalized(target))
                    .map(|(key, _)| *key);
                format!("mount of {key:?}")
            }
            FileKind::Reparse(tag) => format!("reparse point {tag:#x}"),
        }
    }

    fn describe_expected(&self, entry: &Entry) -> String {
        match entry {
            Entry::Directory(_) => "directory".to_owned(),
            Entry::File => "file".to_owned(),
            Entry::Link(Target::Path(names)) | Entry::FileLink(Target::Path(names)) => {
                format!(r"link to \??\c:\{}", names.join("\\"))
            }
            Entry::Link(Target::Share(share, names))
            | Entry::FileLink(Target::Share(share, names)) => {
                let path = [std::slice::from_ref(share), names].concat().join("\\");
                format!(r"link to \??\unc\files\{path}")
            }
            Entry::Mount(key) => {
                format!(
                    "mount of {:?}",
                    Some(*key).filter(|key: &DiskKey| self.volumes.contains_key(key))
                )
            }
        }
    }
}

/// Returns the calls that read the whole state.
fn all_reads(model: &Model) -> Vec<Call> {
    let mut calls = vec![Call::ListDiskLocations, Call::ListDiskIds];
    for (number, disk) in &model.disks {
        let id = || VolumeName::Known(disk.key);
        calls.extend([
            Call::GetDiskState(*number),
            Call::GetDiskStats(*number),
            Call::ListVolumesOnDisk(*number, 0),
            Call::GetDiskNumberFromVolumeId(id()),
            Call::IsVolumeFormatted(id()),
            Call::GetVolumeStats(id()),
        ]);
    }
    for (names, _) in all(&model.files) {
        let path = format!(r"C:\{}", names.join("\\"));
        calls.extend([
            Call::PathExists(path.clone()),
            Call::IsSymlink(path.clone()),
            Call::GetVolumeIdFromTargetPath(path),
        ]);
    }
    calls
}
