//! `cargo xtask release`: makes the files of a release in dist/release, from a checkout, without
//! Docker and secrets.
//!
//! The same commit and compilers give the same files in any folder: docs/releases.md lists the
//! files and describes how to repeat a release. Whatever needs a secret, such as a signature, is
//! left to .github/workflows/release.yml.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use clap::Args;

use crate::summary::Summary;
use crate::{Error, checks, process, setup, windows, workspace};

mod contents;
mod hive;
mod images;
mod packages;
mod programs;
mod sbom;

#[derive(Args)]
pub(crate) struct Options {
    /// Make only the programs and images of this platform
    #[arg(long, value_parser = programs::PLATFORMS.map(|platform| platform.name))]
    platform: Option<String>,
    /// Take a release from this folder, make what contains or lists its programs again, and run
    /// none of them
    #[arg(long, conflicts_with_all = ["platform", "twice"])]
    programs: Option<PathBuf>,
    /// Make the release again in a clone in another folder, and compare all files
    #[arg(long)]
    twice: bool,
}

/// The folder of the files of the release.
fn folder() -> PathBuf {
    workspace::root().join("dist/release")
}

/// The folder of files from which those of the release are made.
fn staging() -> PathBuf {
    workspace::target().join("release-parts")
}

pub(crate) fn run(options: &Options) -> Result<Summary, Error> {
    // The crates would have the changes, the chart and the Go module would not.
    let changes = workspace::git(&["status", "--porcelain"]);
    if options.platform.is_none() && changes.as_deref() != Some("") {
        return Err("a release is made from a git checkout without changes".into());
    }
    for folder in [folder(), staging()] {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
    }
    let name = options.platform.as_deref();
    let wanted: Vec<_> = programs::PLATFORMS
        .iter()
        .filter(|platform| name.is_none_or(|name| name == platform.name))
        .collect();
    let mut sum = Summary::default();
    if let Some(given) = &options.programs {
        for name in names_in(given)?.iter().filter(|name| *name != "SHA256SUMS") {
            fs::copy(given.join(name), folder().join(name))?;
        }
    } else {
        for platform in &wanted {
            sum += Summary::of_step(platform.name, || programs::make(platform));
        }
        if options.platform.is_none() {
            sum += Summary::of_step("chart", images::make_chart);
            sum += Summary::of_step("public items", compare_public_items);
            sum += Summary::of_step("crates", crates);
            sum += Summary::of_step("Go module", go_module);
        }
        fs::write(folder().join("RELEASE-NOTES.md"), notes()?)?;
    }
    sum += Summary::of_step("SBOM", || sbom::make(&wanted));
    sum += Summary::of_step("images", || images::make(&wanted));
    sum += Summary::of_step("packages", || packages::make(&wanted));
    if options.platform.is_none() {
        sum += Summary::of_step("contents", contents::check);
    }
    // An incomplete release has no hashes.
    if !sum.is_success() {
        return Ok(sum);
    }
    let sums = names_in(&folder())?
        .into_iter()
        .map(|name| Ok(format!("{}  {name}\n", sha256(&folder().join(&name))?)));
    fs::write(
        folder().join("SHA256SUMS"),
        sums.collect::<Result<String, Error>>()?,
    )?;
    if options.twice {
        sum += Summary::of_step("the same release in another folder", || {
            rebuild_elsewhere(options)
        });
    }
    Ok(sum)
}

/// Compares the public items of the crates that are published with those of the release before, if
/// the version has been raised since.
fn compare_public_items() -> Result<Summary, Error> {
    const NAME: &str = "public items";
    /// The crate that compiles only for Windows.
    const WINDOWS: &str = "csi-proxy-os-win32";
    let last = workspace::git(&["describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^"]);
    let Some(last) = last else {
        return Ok(Summary::skipped(NAME, "no earlier release"));
    };
    if last == format!("v{}", number()?) {
        return Ok(Summary::skipped(NAME, "the version has not been raised"));
    }
    let program = setup::cargo_tool("cargo-semver-checks")?;
    let compare = |packages: &[&str]| {
        let mut command = Command::new(&program);
        command
            .current_dir(workspace::root())
            .args(["semver-checks", "--baseline-rev", &last])
            .args(packages);
        Summary::of_check(NAME, &mut command)
    };
    let mut sum = compare(&["--workspace", "--exclude", WINDOWS]);
    sum += compare(&["--package", WINDOWS, "--target", windows::TARGET]);
    Ok(sum)
}

/// Packages the crates that are published on crates.io.
fn crates() -> Result<Summary, Error> {
    for archive in checks::package()? {
        fs::copy(
            &archive,
            folder().join(archive.file_name().unwrap_or_default()),
        )?;
    }
    Ok(Summary::passed())
}

/// Packs the Go module for the tests of drivers, and compiles what is in the archive.
fn go_module() -> Result<Summary, Error> {
    const NAME: &str = "csi-proxy-simtest";
    let module = staging().join("go").join(NAME);
    fs::create_dir_all(&module)?;
    let unpack =
        "git archive HEAD '*.go' 'go.*' README.md Dockerfile example proto ':!csi-proxy-sim' | tar -x -C \"$0\" &&
        cp ../../LICENSE \"$0\"";
    let mut sh = Command::new("sh");
    process::must_succeed(
        sh.current_dir(workspace::root().join("sim/simtest"))
            .args(["-c", unpack])
            .arg(&module),
    )?;
    tar(
        &staging().join("go"),
        &folder().join(format!("{NAME}.tar.gz")),
        "0",
    )?;
    Ok(Summary::of_check(
        "the Go module",
        Command::new("go")
            .current_dir(module)
            .args(["vet", "./..."]),
    ))
}

/// Returns the part of CHANGELOG.md on this version, or on unreleased changes, and with what the
/// programs were built.
fn notes() -> Result<String, Error> {
    let (version, number) = (workspace::version()?, number()?);
    let changes = fs::read_to_string(workspace::root().join("CHANGELOG.md"))?;
    let after = |title: &str| {
        changes
            .split_once(&format!("\n## [{title}]"))?
            .1
            .split_once('\n')
    };
    let section = |title: &str| Some(after(title)?.1.split("\n## [").next()?.trim());
    let section = section(&number)
        .or_else(|| section("Unreleased"))
        .ok_or("CHANGELOG.md has no section")?;
    let compilers = programs::compilers().ok_or("no versions of the compilers")?;
    Ok(format!(
        "# csi-proxy {version}\n\n{section}\n\n### Built with\n\n```\n{compilers}\n```\n"
    ))
}

/// The version without the commit: a tag of an image must not contain a plus sign.
fn number() -> Result<String, Error> {
    Ok(workspace::version()?
        .split('+')
        .next()
        .unwrap_or_default()
        .to_owned())
}

/// Returns the names of the files and folders in a folder, in order.
fn names_in(folder: &Path) -> io::Result<BTreeSet<String>> {
    fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

fn sha256(file: &Path) -> Result<String, Error> {
    let line = process::output(Command::new("sha256sum").arg("--zero").arg(file))
        .ok_or("sha256sum failed")?;
    Ok(line
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned())
}

/// Returns the time of the commit, such as `2026-11-26T18:37:00Z`. All times in the release are
/// this time.
fn commit_time() -> Result<String, Error> {
    let time = workspace::git(&[
        "log",
        "-1",
        "--date=format-local:%Y-%m-%dT%H:%M:%SZ",
        "--format=%cd",
    ]);
    time.ok_or_else(|| "a release is made from a git checkout".into())
}

/// Makes a tar archive of the contents of a folder, the same for the same contents. gzip compresses
/// a `.tar.gz`.
fn tar(contents: &Path, archive: &Path, owner: &str) -> Result<(), Error> {
    let mut tar = Command::new("tar");
    tar.args([
        "--format=ustar",
        "--sort=name",
        "--numeric-owner",
        "--mode=755",
        "--owner",
        owner,
        "--group",
        owner,
    ]);
    tar.arg(format!("--mtime={}", commit_time()?))
        .arg("-acf")
        .arg(archive)
        .arg("-C")
        .arg(contents);
    process::must_succeed(tar.args(names_in(contents)?))
}

/// Makes the release again from a clone, with the same tools and in another environment, and
/// compares all files.
fn rebuild_elsewhere(options: &Options) -> Result<Summary, Error> {
    const SCRIPT: &str = "rm -rf \"$1\" && git clone --quiet --no-hardlinks \"$0\" \"$1\" && cd \
                          \"$1\" && mkdir target && ln -s \"$2\" target && shift 2 && umask 077 && \
                          exec cargo xtask release \"$@\"";
    let clone = workspace::target().join("another/folder/for-the-same-release");
    let mut sh = Command::new("sh");
    sh.args(["-c", SCRIPT])
        .args([&workspace::root(), &clone, &setup::tools()]);
    sh.args(
        options
            .platform
            .iter()
            .map(|name| format!("--platform={name}")),
    );
    sh.env_remove("CARGO_TARGET_DIR")
        .env("CARGO_HOME", clone.join("target/cargo"));
    sh.envs([
        ("TZ", "Asia/Kolkata"),
        ("LC_ALL", "C.UTF-8"),
        ("CARGO_BUILD_JOBS", "1"),
    ]);
    process::must_succeed(&mut sh)?;
    let mut diff = Command::new("diff");
    diff.arg("--recursive")
        .arg(folder())
        .arg(clone.join("dist/release"));
    Ok(Summary::of_check(
        "the same release in another folder",
        &mut diff,
    ))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_notes_have_the_changes_alone() {
        if crate::workspace::files().is_none() {
            println!("skipped: the_notes_have_the_changes_alone: the tree is not a git checkout");
            return;
        }
        let notes = super::notes().expect("CHANGELOG.md");
        assert!(notes.contains("### Added\n"), "{notes}");
        assert_eq!(notes.matches("\n## ").count(), 0, "{notes}");
    }
}
