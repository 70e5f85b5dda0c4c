//! The invariants: conditions that must hold after any sequence of events on a node.

use std::collections::BTreeMap;

use os::abi::{ControlCode, DriveLayout, PartitionEntry, PartitionStyle};
use os::{Access, NtPath, Open, Options, Os, OsError, Uuid};
use os_sim::{Sim, Snapshot};
use storage_ops::{Error, Node};
use zerocopy::FromBytes;

use crate::request::{Answer, Request};
use crate::scenarios::Spec;

/// The state of a node before a case, for comparison.
pub struct Baseline {
    snapshot: Snapshot,
    formatted: Vec<(Uuid, u32)>,
    formats_again: bool,
    tables: BTreeMap<u32, Table>,
}

/// The parts of a disk's partition table that may never change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    style: u32,
    disk_id: [u8; 16],
    /// The offset and the ID of each partition.
    partitions: Vec<(i64, [u8; 16])>,
}

impl Baseline {
    /// Captures the state of `sim`.
    pub fn of(sim: &Sim) -> Self {
        let volumes = sim.all_volumes().into_iter();
        Self {
            snapshot: sim.snapshot(),
            formatted: volumes
                .filter(|volume| volume.file_system.is_some())
                .map(|volume| (volume.id, volume.formats))
                .collect(),
            formats_again: false,
            tables: tables(sim),
        }
    }

    /// Returns whether `sim` is in the same state.
    pub fn is_state_of(&self, sim: &Sim) -> bool {
        sim.snapshot() == self.snapshot
    }

    /// Allows formats of volumes that have a file system, if the operation of `spec` may make them.
    #[must_use]
    pub fn with_formats_of(self, spec: &Spec) -> Self {
        Self {
            formats_again: spec.formats_again,
            ..self
        }
    }

    /// Checks that nothing was destroyed, and that only lines beginning with one of `changes` have
    /// changed. Ignores disk `removed`.
    pub fn check(&self, sim: &Sim, changes: &[&str], removed: Option<u32>) -> Vec<String> {
        let mut violations = Vec::new();
        if let Err(what) = sim.invariants() {
            violations.push(format!("the node is inconsistent: {what}"));
        }
        let formatted = self.formatted.iter().filter(|_| !self.formats_again);
        for (id, formats) in formatted {
            if sim
                .volume(*id)
                .is_some_and(|volume| volume.formats > *formats)
            {
                violations.push(format!("volume {id} had a file system and was formatted"));
            }
        }
        let volumes = sim.all_volumes();
        let twice = volumes.iter().filter(|volume| volume.formats > 1);
        for volume in twice.filter(|_| !self.formats_again) {
            violations.push(format!(
                "volume {} was formatted {} times",
                volume.id, volume.formats
            ));
        }
        let now = tables(sim);
        for (disk, table) in self
            .tables
            .iter()
            .filter(|(disk, _)| Some(**disk) != removed)
        {
            // Windows gives the second of two disks with one identifier another one.
            let collides = self
                .tables
                .iter()
                .any(|(other, known)| other != disk && known.disk_id == table.disk_id);
            if !table.is_raw()
                && !now
                    .get(disk)
                    .is_some_and(|now| table.is_preserved_in(now, collides))
            {
                violations.push(format!(
                    "the partition table of disk {disk} was {table:?} and is {:?}",
                    now.get(disk)
                ));
            }
        }
        let removed = removed.map(|disk| format!("disk {disk} "));
        let may_change = |line: &str| {
            changes.iter().any(|prefix| line.starts_with(prefix))
                || removed.as_ref().is_some_and(|disk| {
                    line.starts_with(disk.as_str()) || line.contains("mount point to")
                })
        };
        let now = sim.snapshot();
        let lines = |snapshot: &'_ Snapshot| -> Vec<String> {
            snapshot
                .as_str()
                .lines()
                .filter(|line| !may_change(line))
                .map(str::to_owned)
                .collect()
        };
        let (had, has) = (lines(&self.snapshot), lines(&now));
        if had != has {
            let difference = self.snapshot.difference(&now);
            let lines = difference.lines().filter(|line| !may_change(&line[2..]));
            violations.extend(
                lines.map(|line| format!("changed what the operation must not change: {line}")),
            );
        }
        violations
    }
}

impl Table {
    fn is_raw(&self) -> bool {
        PartitionStyle(self.style) == PartitionStyle::RAW
    }

    fn is_preserved_in(&self, now: &Self, may_change_id: bool) -> bool {
        self.style == now.style
            && (may_change_id || self.disk_id == now.disk_id)
            && self
                .partitions
                .iter()
                .all(|partition| now.partitions.contains(partition))
    }
}

fn tables(sim: &Sim) -> BTreeMap<u32, Table> {
    sim.disks()
        .iter()
        .filter_map(|disk| Some((disk.number, table(sim, disk.number)?)))
        .collect()
}

fn table(sim: &Sim, disk: u32) -> Option<Table> {
    let how = Open::existing(Access::empty(), Options::empty());
    let handle = sim.open(&NtPath::disk(disk), &how).ok()?;
    let mut buffer = vec![0; 1 << 14];
    let filled = handle
        .control(ControlCode::DISK_GET_DRIVE_LAYOUT_EX, &[], &mut buffer)
        .ok()?;
    let (head, rest) = DriveLayout::read_from_prefix(&buffer[..filled]).ok()?;
    let entries = rest
        .chunks_exact(size_of::<PartitionEntry>())
        .take(head.partition_count as usize);
    let entries = entries.map(|entry| PartitionEntry::read_from_bytes(entry).expect("an entry"));
    // The empty entries of an MBR have number 0.
    let used = entries.filter(|entry| entry.number != 0);
    let partitions = used.map(|entry| (entry.offset, entry.id)).collect();
    Some(Table {
        style: head.style,
        disk_id: head.disk_id,
        partitions,
    })
}

/// Checks that no lock, no job and no handle is left after all operations have ended, except the
/// handles that the node keeps.
pub fn check_nothing_held(sim: &Sim, node: &Node) -> Vec<String> {
    let mut violations = Vec::new();
    if node.locked_objects() > 0 {
        violations.push(format!("{} locks are held", node.locked_objects()));
    }
    if sim.running_jobs() > 0 {
        violations.push(format!("{} jobs are running", sim.running_jobs()));
    }
    if sim.open_handles() != node.held_handles() {
        violations.push(format!(
            "{} handles are open, and the node holds {}",
            sim.open_handles(),
            node.held_handles()
        ));
    }
    violations
}

/// Checks an answer: no panic, no secret, and an error of one line that begins with what was
/// attempted. If one call was made to fail with `code`, the error must name that code.
pub fn check_answer(request: &dyn Request, answer: &Answer, code: Option<u32>) -> Vec<String> {
    match answer {
        Answer::Succeeded(output) => check_no_secret(output),
        Answer::Panicked(message) => vec![format!("it panicked: {message}")],
        Answer::Hung(requests) => vec![format!("the executor has not answered: {requests}")],
        Answer::Failed(error) => check_error(request, error, code),
    }
}

fn check_error(request: &dyn Request, error: &Error, code: Option<u32>) -> Vec<String> {
    let text = error.to_string();
    let mut violations = check_no_secret(&text);
    if !text.starts_with(&format!("cannot {}: ", request.describe()))
        || error.operation() != request.operation()
    {
        violations.push(format!(
            "the error does not name its operation and object: {text}"
        ));
    }
    if text.contains('\n') || text.len() > 600 {
        violations.push(format!("the error is longer than a line: {text}"));
    }
    let shown = |code: u32| {
        let forms = [
            format!("({code})"),
            format!("(0x{code:08x})"),
            format!("{}", OsError(code)),
        ];
        forms.iter().any(|form| text.contains(form.as_str()))
    };
    if code.is_some_and(|code| !shown(code)) {
        violations.push(format!(
            "the error does not name the code {}: {text}",
            code.unwrap_or_default()
        ));
    }
    violations
}

fn check_no_secret(text: &str) -> Vec<String> {
    if text.contains("hunter2") {
        vec![format!("the text contains a secret: {text}")]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use os::{MethodCall, Namespace, Os, Value};
    use os_sim::{DiskDescription, Sim};

    use super::Baseline;

    const GIB: u64 = 1 << 30;

    /// Formats the volume of disk 1 regardless of its content, which no operation of csi-proxy may
    /// do.
    fn format_by_force(sim: &Sim) {
        let name = sim
            .volume_on(1)
            .expect("a volume")
            .name()
            .replace('\\', r"\\");
        let wql = format!("SELECT * FROM MSFT_Volume WHERE Path = '{name}'");
        let deadline = sim.now() + Duration::from_mins(1);
        let found = sim
            .wmi()
            .query(Namespace::Storage, &wql, deadline)
            .expect("a query");
        let arguments = [
            ("FileSystem", Value::Text("NTFS".into())),
            ("Force", Value::Bool(true)),
        ];
        let format = MethodCall::new(Namespace::Storage, &found[0].path, "Format", &arguments);
        assert!(sim.wmi().call(&format, deadline).is_ok());
    }

    /// Replaces disk 1 with a disk without partitions.
    fn replace_disk(sim: &Sim) {
        sim.unplug_disk(1).expect("disk 1");
        sim.attach_disk(&DiskDescription::new(GIB), true)
            .expect("a plain disk");
    }

    fn write_outside(sim: &Sim) {
        sim.external()
            .write(r"C:\Windows\new", b"1")
            .expect("a directory");
    }

    #[test]
    fn a_second_format_a_lost_partition_table_and_a_file_outside_are_violations() {
        let changes = ["disk 1 ", r"disk 0 partition 2 \var\lib\kubelet"];
        for (violate, violation) in [
            (format_by_force as fn(&Sim), "was formatted"),
            (replace_disk, "the partition table of disk 1"),
            (write_outside, "changed what the operation must not change"),
        ] {
            let sim = os_sim::node()
                .disk(GIB)
                .partitioned()
                .formatted("NTFS")
                .build();
            let baseline = Baseline::of(&sim);
            assert_eq!(baseline.check(&sim, &changes, None), Vec::<String>::new());
            violate(&sim);
            let found = baseline.check(&sim, &changes, None);
            assert!(
                found.iter().any(|found| found.contains(violation)),
                "{violation}: {found:?}"
            );
        }
    }
}
