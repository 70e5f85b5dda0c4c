//! Every test there is, in one run with one count at its end.

use std::process::Command;

use clap::ValueEnum;

use crate::libtest::Suites;
use crate::summary::Tally;
use crate::{Outcome, apt, go, process, python, sensitivity, windows, workspace};

/// A part of the tests that can be run alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// All crates on this machine, with their documentation's examples
    Linux,
    /// The Windows program: under Wine, or on Windows itself
    Windows,
    /// The published Go client, as deployed drivers use it, against the daemon
    Go,
    /// The proof, which must fail where a rule is broken
    Broken,
}

/// Runs the parts asked for, or all, and prints the sum.
pub(crate) fn run(parts: &[Part]) -> Outcome {
    let parts = if parts.is_empty() { Part::value_variants() } else { parts };
    let sum = sum(parts)?;
    sum.print();
    Ok(sum.is_green())
}

/// The sum of all parts, not yet printed.
pub(crate) fn all() -> Result<Tally, Box<dyn std::error::Error>> {
    sum(Part::value_variants())
}

fn sum(parts: &[Part]) -> Result<Tally, Box<dyn std::error::Error>> {
    let mut sum = Tally::default();
    for part in parts {
        sum += match part {
            Part::Linux => linux()?,
            Part::Windows => windows::test()?,
            Part::Go => go::test()?,
            Part::Broken => sensitivity::test()?,
        };
    }
    Ok(sum)
}

fn linux() -> std::io::Result<Tally> {
    // There the Windows part runs all crates.
    if std::env::consts::OS == "windows" {
        return Ok(Tally::default());
    }
    let mut sum = Tally::default();
    install_tools();
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--workspace"]);
    match python::interpreter() {
        None => {}
        Some(Ok(python)) => {
            cargo.env("CSI_PROXY_PYTHON", python);
        }
        Some(Err(why)) => sum += Tally::skip("the Python client", &why),
    }
    sum += suites(&mut cargo)?;
    Ok(sum)
}

/// Programs with whose readings tests compare ours, and the packages that have them.
const TOOLS: [(&str, &str); 10] = [
    ("sg_inq", "sg3-utils"),
    ("dmidecode", "dmidecode"),
    ("sfdisk", "fdisk"),
    ("sgdisk", "gdisk"),
    ("mkswap", "util-linux"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.vfat", "dosfstools"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.ntfs", "ntfs-3g"),
];

/// Installs what is missing of them, where that is allowed. A test without its program says so itself.
fn install_tools() {
    let missing: Vec<_> =
        TOOLS.iter().filter(|(program, _)| process::find(program).is_none()).map(|(_, package)| *package).collect();
    if !missing.is_empty()
        && let Err(why) = apt::install(&missing)
    {
        println!("{why}");
    }
}

/// Runs a `cargo test` to its end, through failures, and counts.
pub(crate) fn suites(cargo: &mut Command) -> std::io::Result<Tally> {
    let mut suites = Suites::default();
    cargo.args(["--no-fail-fast", "--", "--show-output"]);
    let status = process::stream(cargo, |line| suites.line(line))?;
    Ok(suites.finish(&process::typed(cargo), status))
}
