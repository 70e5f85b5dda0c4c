//! The invariants hold after any sequence of operations.

use std::time::Duration;

use os::abi::{FILE_DISPOSITION_DELETE, FILE_DISPOSITION_POSIX};
use os::{Access, FileInfo, Handle, NtPath, Open, Options, Os, U16String};
use os_sim::{DiskDescription, Sim, node};

/// Random numbers that are the same on every run (PCG's multiplier and increment).
struct Rng(u64);

impl Rng {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn path(&mut self) -> String {
        let names = ["a", "b", "c"];
        let depth = 1 + self.below(3);
        (0..depth).fold(r"C:\t".to_owned(), |path, _| format!(r"{path}\{}", names[self.below(3)]))
    }
}

fn ignore<T, E>(_: Result<T, E>) {}

/// Performs one random operation, which may fail.
fn step(node: &Sim, rng: &mut Rng, handles: &mut Vec<Box<dyn Handle>>) {
    let external = node.external();
    let path = rng.path();
    let win32 = NtPath::from_win32(&U16String::from_str(&path));
    match rng.below(16) {
        0 | 1 => ignore(external.mkdir_all(&path)),
        2 => ignore(external.write(&path, "x")),
        3 => ignore(external.symlink(&path, &rng.path())),
        4 => ignore(external.junction(&path, &rng.path())),
        5 => ignore(external.rename(&path, &rng.path())),
        6 => ignore(external.remove_all(&path)),
        7 => {
            let volume = node.volume_on(1).or_else(|| node.volume_on(2));
            if let Some(volume) = volume {
                ignore(external.set_mount_point(&path, volume.id));
            }
        }
        8 => ignore(node.delete_volume_mount_point(&U16String::from_str(&format!(r"{path}\")))),
        9 | 10 => {
            let access = Access::READ_DATA | Access::DELETE;
            let options = if rng.below(2) == 0 { Options::REPARSE_POINT } else { Options::empty() };
            handles.extend(node.open(&win32, &Open::existing(access, options)));
        }
        11 => {
            let flags = [FILE_DISPOSITION_DELETE, FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX, 0][rng.below(3)];
            if let Some(handle) = handles.last() {
                ignore(handle.set(FileInfo::DispositionEx, &flags.to_le_bytes()));
            }
        }
        12 | 13 if !handles.is_empty() => drop(handles.swap_remove(rng.below(handles.len()))),
        14 => {
            if let Some(disk) = node.detach_disk(1)
                && rng.below(4) > 0
            {
                node.reattach_disk(disk, rng.below(2) == 0);
            }
            ignore(node.attach_disk(&DiskDescription::new(1 << 30), true));
        }
        15 if rng.below(20) == 0 => node.reboot(),
        _ => node.advance(Duration::from_millis(100)),
    }
}

#[test]
fn the_invariants_hold_after_random_operations() {
    for seed in 0..40 {
        let node = node().disk(1 << 30).partitioned().formatted("NTFS").dir(r"C:\t").build();
        let mut rng = Rng(seed);
        let mut handles = Vec::new();
        for number in 0..300 {
            step(&node, &mut rng, &mut handles);
            node.invariants().unwrap_or_else(|what| panic!("seed {seed}, step {number}: {what}"));
        }
        handles.clear();
        assert_eq!(node.open_handles(), 0, "seed {seed}");
        node.invariants().unwrap();
    }
}
