//! Whether the node is what the model says: each answer, and after it everything there is.

use std::collections::BTreeMap;

use os_sim::{DiskView, FileKind};
use tonic::Status;

use crate::directory_tree::{Directory, Entry, Key, Target, all};
use crate::expected::{Expected, OVERHEAD};
use crate::messages::Payload;
use crate::reference_model::{Layout, Model};
use crate::system_under_test::SystemUnderTest;
use crate::transition::{Call, Id, Transition};

impl SystemUnderTest {
    /// Takes one step, after which the node must be `node`.
    pub(crate) fn take(&mut self, node: &Model, step: &Transition) {
        match step {
            Transition::Call(call, version) => {
                let before = call.reads().then(|| self.facts());
                let answer = self.call(call, *version);
                self.check(node, &answer);
                if let Some(before) = before {
                    assert_eq!(self.facts(), before, "a read changed something");
                }
            }
            Transition::Event(event) => self.happen(event, node),
        }
        self.agree(node);
    }

    /// Asks for all that there is, as drivers ask for it.
    pub(crate) fn audit(&mut self, node: &Model) {
        for call in audit(node) {
            let step = Transition::Call(call, 0);
            self.take(&node.clone().step(&step), &step);
        }
    }

    /// All of the node but how Windows shows the mappings, which the next look at a server that has gone changes.
    fn facts(&self) -> Vec<String> {
        let snapshot = self.sim.snapshot();
        snapshot.as_str().lines().filter(|line| !line.starts_with("mapping ")).map(str::to_owned).collect()
    }

    /// Holds an answer to what was to be expected.
    pub(crate) fn check(&mut self, node: &Model, answer: &Result<Payload, Status>) {
        match (&node.expected, answer) {
            (Expected::Anything, _) => {}
            (Expected::Fails(codes), Err(status)) => {
                assert!(codes.contains(&status.code()), "one of {codes:?} was to be expected, not {status}");
            }
            (Expected::FailsSaying(code, words), Err(status)) => {
                assert_eq!(status.code(), *code, "{status}");
                assert!(status.message().contains(words), "{words:?} is not in: {status}");
            }
            (Expected::Fails(_) | Expected::FailsSaying(..), Ok(payload)) => {
                panic!("{:?} was to be expected, not {payload:?}", node.expected)
            }
            (expected, Err(status)) => panic!("{expected:?} was to be expected, not {status}"),
            (expected, Ok(payload)) => self.compare(node, expected, payload),
        }
    }

    fn compare(&mut self, node: &Model, expected: &Expected, payload: &Payload) {
        match (expected, payload) {
            (Expected::Says(expected), payload) => assert_eq!(payload, expected),
            (Expected::Volumes(keys), Payload::Volumes(names)) => {
                let expected: Vec<String> = keys.iter().map(|key| self.volumes[key].clone()).collect();
                assert_eq!(*names, expected, "the volumes of {keys:?}");
            }
            (Expected::Locations(expected), Payload::Locations(found)) => {
                assert!(found.keys().eq(expected.keys()), "{found:?}, not {expected:?}");
                for (number, at) in expected {
                    // Of an NVMe disk's place nothing is said but that it has no target and no LUN.
                    let from = if at[3].is_empty() { 2 } else { 0 };
                    assert_eq!(found[number][from..], at[from..], "the place of disk {number}");
                }
            }
            (Expected::Ids(expected), Payload::Ids(found)) => {
                assert!(found.keys().eq(expected.keys()), "{found:?}, not {expected:?}");
                for (number, ids) in expected {
                    assert!(
                        ids.as_ref().is_none_or(|ids| *ids == found[number]),
                        "the ids of disk {number}: {found:?}"
                    );
                }
            }
            (Expected::Stats { extent, sizing }, Payload::Stats { total, used }) => {
                assert!(used <= total && total <= extent && extent - total <= OVERHEAD, "{payload:?} of {extent}");
                let key = node.disks.values().find(|disk| disk.volume.as_ref().is_some_and(|v| v.sizing == *sizing));
                let key = key.map_or(0, |disk| disk.key);
                let first = *self.totals.entry((key, *sizing)).or_insert(*total);
                assert_eq!(*total, first, "the size changed by itself");
            }
            _ => panic!("{expected:?} was to be expected, not {payload:?}"),
        }
    }

    /// Holds the whole node to the model.
    pub(crate) fn agree(&mut self, node: &Model) {
        self.sim.invariants().expect("the node makes sense");
        let shown: BTreeMap<u32, DiskView> = self.sim.disks().into_iter().map(|disk| (disk.number, disk)).collect();
        let expected: Vec<u32> =
            node.disks.iter().filter(|(_, disk)| disk.noticed).map(|(number, _)| *number).collect();
        assert!(shown.keys().eq(&expected), "disks {:?}, not {expected:?}", shown.keys());
        for number in expected {
            self.agree_on_disk(node, number, &shown[&number]);
        }
        self.agree_on_files("C:", &node.files, &["outside", "var"]);
        for disk in node.disks.values().filter(|disk| disk.key != 0) {
            let files =
                node.volume(disk.key).and_then(|volume| volume.file_system.as_ref()).map(|system| &system.files);
            if let Some(files) = files {
                let root = self.volumes[&disk.key].clone();
                let names: Vec<&str> = files.keys().map(String::as_str).collect();
                self.agree_on_files(root.trim_end_matches('\\'), files, &names);
            }
        }
        let mapped: Vec<(String, Option<String>)> =
            self.sim.smb_mappings().into_iter().map(|mapping| (mapping.remote, mapping.user)).collect();
        let mut expected = Vec::new();
        for (share, mapping) in &node.mappings {
            expected.push((format!(r"\\files\{share}"), Some(mapping.user.to_owned())));
        }
        let sorted = |mut list: Vec<(String, Option<String>)>| {
            list.sort();
            list
        };
        assert_eq!(sorted(mapped), sorted(expected), "the mappings");
        assert_eq!(crate::system_under_test::portal_is_known(self), node.initiator.portal, "the portal");
    }

    fn agree_on_disk(&mut self, node: &Model, number: u32, found: &DiskView) {
        let disk = &node.disks[&number];
        let partitioned = matches!(disk.layout, Layout::Gpt | Layout::Mbr);
        let table = match disk.layout {
            Layout::Raw => "raw",
            Layout::Reserved | Layout::Gpt => "gpt",
            Layout::Mbr => "mbr",
        };
        assert_eq!((found.offline, found.read_only), (!disk.online, disk.read_only), "disk {number}");
        assert_eq!((found.layout, found.size), (table, disk.size), "disk {number}");
        let volumes: Vec<_> = found.partitions.iter().filter_map(|part| part.volume.as_ref()).collect();
        assert_eq!(volumes.len(), usize::from(partitioned), "the volumes of disk {number}");
        let (Some(expected), Some(volume)) = (&disk.volume, volumes.first()) else { return };
        let name = self.volumes.entry(disk.key).or_insert_with(|| volume.name()).clone();
        assert_eq!(volume.name(), name, "the volume of disk {number} is another");
        assert_eq!(volume.arrived, disk.online, "the volume of disk {number}");
        let kind = expected.file_system.as_ref().map(|system| system.name);
        assert_eq!(volume.file_system.as_deref(), kind, "the file system of disk {number}");
        assert!(volume.formats <= 1, "the volume of disk {number} was formatted twice");
    }

    /// Compares the entries called `names`, with all below them.
    fn agree_on_files(&self, root: &str, expected: &Directory, names: &[&str]) {
        let mut found = BTreeMap::new();
        for file in self.sim.tree(&format!(r"{root}\")).expect("a file system") {
            let path = file.path.to_lowercase();
            let top = path.split('\\').next().unwrap_or_default();
            if root != "C:" || names.contains(&top) {
                found.insert(path, self.described(&file.kind));
            }
        }
        let expected: BTreeMap<String, String> =
            all(expected).into_iter().map(|(names, entry)| (names.join("\\"), self.entry(entry))).collect();
        found.retain(|path, _| !path.starts_with("system volume information"));
        assert_eq!(found, expected, "the files on {root}");
    }

    fn described(&self, kind: &FileKind) -> String {
        let tidy = |target: &str| target.to_lowercase().trim_end_matches('\\').to_owned();
        match kind {
            FileKind::Directory => "directory".to_owned(),
            FileKind::File(_) => "file".to_owned(),
            FileKind::Symlink(target) => format!("link to {}", tidy(target)),
            FileKind::MountPoint(target) => {
                let of = |name: &str| tidy(name).replace(r"\\?\", r"\??\");
                let key = self.volumes.iter().find(|(_, name)| of(name) == tidy(target)).map(|(key, _)| *key);
                format!("mount of {key:?}")
            }
            FileKind::Reparse(tag) => format!("reparse point {tag:#x}"),
        }
    }

    fn entry(&self, entry: &Entry) -> String {
        match entry {
            Entry::Directory(_) => "directory".to_owned(),
            Entry::File => "file".to_owned(),
            Entry::Link(Target::Path(names)) | Entry::FileLink(Target::Path(names)) => {
                format!(r"link to \??\c:\{}", names.join("\\"))
            }
            Entry::Link(Target::Share(share, names)) | Entry::FileLink(Target::Share(share, names)) => {
                let path = [std::slice::from_ref(share), names].concat().join("\\");
                format!(r"link to \??\unc\files\{path}")
            }
            Entry::Mount(key) => {
                format!("mount of {:?}", Some(*key).filter(|key: &Key| self.volumes.contains_key(key)))
            }
        }
    }
}

/// Calls that read everything there is.
fn audit(node: &Model) -> Vec<Call> {
    let mut calls = vec![Call::ListDiskLocations, Call::ListDiskIds, Call::ListTargetPortals];
    for (number, disk) in &node.disks {
        let id = || Id::Of(disk.key);
        calls.extend([
            Call::GetDiskState(*number),
            Call::GetDiskStats(*number),
            Call::ListVolumesOnDisk(*number, 0),
            Call::GetDiskNumberFromVolumeId(id()),
            Call::IsVolumeFormatted(id()),
            Call::GetVolumeStats(id()),
        ]);
    }
    for (names, _) in all(&node.files) {
        let path = format!(r"C:\{}", names.join("\\"));
        calls.extend([
            Call::PathExists(path.clone()),
            Call::IsSymlink(path.clone()),
            Call::GetVolumeIdFromTargetPath(path),
        ]);
    }
    calls.extend(node.services.keys().map(|name| Call::GetService(name)));
    calls
}
