//! Runs each target over its seeds, and over the inputs that fuzzing has found.

use std::fs;
use std::path::{Path, PathBuf};

use fuzz_targets::{TARGETS, target};

fn seeds(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    files
}

/// Runs a target over no bytes, over each seed, and over each seed truncated or with one byte changed.
fn run(name: &str) {
    let target = target(name);
    (target.run)(&[]);
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
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

macro_rules! targets {
    ($($name:ident)+) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })+

        #[test]
        fn every_target_has_a_test_and_seeds() {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),+]);
            let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
            let folders = fs::read_dir(folders).expect("a folder");
            let mut found: Vec<_> =
                folders.map(|folder| folder.expect("a folder").file_name().into_string().expect("text")).collect();
            found.sort();
            assert_eq!(found, names);
        }
    };
}

targets! {
    authority
    authority_h2
    device_descriptors
    drive_layouts
    extents
    file_systems
    flags
    host_paths
    listings
    locations
    node_descriptions
    page83
    reparse_points
    rpcs
    smbios
    volume_content
    volume_ids
    wql
}
