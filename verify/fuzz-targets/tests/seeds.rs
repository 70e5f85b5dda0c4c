//! Runs each target over its seeds, and over the inputs that fuzzing has found.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use fuzz_targets::{TARGETS, Target};

fn seeds(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../fuzz/seeds")
        .join(target);
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();
    files
}

/// Runs a target over no bytes, over each seed, and over each seed truncated or with one byte
/// changed.
fn run(target: &Target) {
    (target.run)(&[]);
    let seeds = seeds(target.name);
    assert!(!seeds.is_empty(), "{} has no seeds", target.name);
    for seed in seeds {
        println!("{}", seed.display());
        let bytes = fs::read(&seed).expect("a readable file");
        (target.run)(&bytes);
        for part in 1..4 {
            (target.run)(&bytes[..bytes.len() * part / 4]);
            let mut changed = bytes.clone();
            if let Some(byte) = changed.get_mut(bytes.len() * part / 5) {
                *byte = !*byte;
            }
            (target.run)(&changed);
        }
    }
}

#[test]
fn every_target_holds_for_its_seeds() {
    thread::scope(|scope| {
        for target in &TARGETS {
            scope.spawn(|| run(target));
        }
    });
}

/// The filter reads what any client sends, so each run of the tests tries more than its seeds.
#[test]
fn the_header_filter_holds_for_many_inputs() {
    let mut state = 1_u64;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    for _ in 0..300 {
        let length = 2 * usize::from(byte());
        let bytes: Vec<u8> = (0..length).map(|_| byte()).collect();
        for target in ["header_filter", "header_filter_h2"] {
            (fuzz_targets::target(target).run)(&bytes);
        }
    }
}

#[test]
fn every_folder_of_seeds_is_of_a_target() {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    for folder in fs::read_dir(folders).expect("a folder") {
        fuzz_targets::target(
            &folder
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("text"),
        );
    }
}
