//! Whatever is done to a node, its state makes sense.

use std::time::Duration;

use os::abi::{FILE_DISPOSITION_DELETE, FILE_DISPOSITION_POSIX};
use os::{Access, FileInfo, Handle, NtPath, Open, Options, Os, U16String};
use os_sim::{DiskDescription, Sim, node};

/// Numbers that are the same on every run (PCG's multiplier and increment).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn path(&mut self) -> String {
        let names = ["a", "b", "c"];
        let depth = 1 + self.roll(3);
        (0..depth).fold(r"C:\t".to_owned(), |path, _| format!(r"{path}\{}", names[self.roll(3)]))
    }
}

fn refused_or_not<T, E>(_: Result<T, E>) {}

/// Does one thing, which may well be refused.
fn step(node: &Sim, dice: &mut Dice, handles: &mut Vec<Box<dyn Handle>>) {
    let door = node.external();
    let path = dice.path();
    let win32 = NtPath::from_win32(&U16String::from_str(&path));
    match dice.roll(16) {
        0 | 1 => refused_or_not(door.mkdir_all(&path)),
        2 => refused_or_not(door.write(&path, "x")),
        3 => refused_or_not(door.symlink(&path, &dice.path())),
        4 => refused_or_not(door.junction(&path, &dice.path())),
        5 => refused_or_not(door.rename(&path, &dice.path())),
        6 => refused_or_not(door.remove_all(&path)),
        7 => {
            let volume = node.volume_on(1).or_else(|| node.volume_on(2));
            if let Some(volume) = volume {
                refused_or_not(door.set_mount_point(&path, volume.id));
            }
        }
        8 => refused_or_not(node.delete_volume_mount_point(&U16String::from_str(&format!(r"{path}\")))),
        9 | 10 => {
            let access = Access::READ_DATA | Access::DELETE;
            let options = if dice.roll(2) == 0 { Options::REPARSE_POINT } else { Options::empty() };
            handles.extend(node.open(&win32, &Open::existing(access, options)));
        }
        11 => {
            let flags = [FILE_DISPOSITION_DELETE, FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX, 0][dice.roll(3)];
            if let Some(handle) = handles.last() {
                refused_or_not(handle.set(FileInfo::DispositionEx, &flags.to_le_bytes()));
            }
        }
        12 | 13 if !handles.is_empty() => drop(handles.swap_remove(dice.roll(handles.len()))),
        14 => {
            if let Some(disk) = node.detach_disk(1)
                && dice.roll(4) > 0
            {
                node.reattach_disk(disk, dice.roll(2) == 0);
            }
            refused_or_not(node.attach_disk(&DiskDescription::new(1 << 30), true));
        }
        15 if dice.roll(20) == 0 => node.reboot(),
        _ => node.advance(Duration::from_millis(100)),
    }
}

#[test]
fn a_node_makes_sense_whatever_is_done_to_it() {
    for seed in 0..40 {
        let node = node().disk(1 << 30).partitioned().formatted("NTFS").dir(r"C:\t").build();
        let mut dice = Dice(seed);
        let mut handles = Vec::new();
        for number in 0..300 {
            step(&node, &mut dice, &mut handles);
            node.invariants().unwrap_or_else(|what| panic!("seed {seed}, step {number}: {what}"));
        }
        handles.clear();
        assert_eq!(node.open_handles(), 0, "seed {seed}");
        node.invariants().unwrap();
    }
}
