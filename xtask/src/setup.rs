//! The set-up step: installs what builds and tests need, before the first of them.
//!
//! Debian's packages are installed as root, or with sudo in CI. Elsewhere the command to run is
//! printed, and tests whose programs are missing report themselves skipped. All other programs are
//! installed into the target folder.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{Error, process, windows, wine, workspace};

/// Programs that builds and tests run, and the Debian packages that contain them. Packages of one
/// group are installed together, so that a package that does not exist affects no other group.
const PROGRAMS: [&[(&str, &str)]; 5] = [
    &[
        ("sg_inq", "sg3-utils"),
        ("dmidecode", "dmidecode"),
        ("mkswap", "util-linux"),
        ("mkfs.ext4", "e2fsprogs"),
        ("mkfs.vfat", "dosfstools"),
        ("mkfs.xfs", "xfsprogs"),
        ("mkfs.btrfs", "btrfs-progs"),
        ("mkfs.ntfs", "ntfs-3g"),
        ("curl", "curl"),
        ("hivexml", "libhivex-bin"),
    ],
    &[("valgrind", "valgrind")],
    &[("git", "git")],
    &[("shellcheck", "shellcheck")], // for actionlint
    &[("locale-gen", "locales")],
];

/// skopeo reads images back; LLVM compiles resources for arm64, and its llvm-config says where.
/// Each with its package.
const RELEASE_PROGRAMS: [(&str, &str); 2] = [("skopeo", "skopeo"), ("llvm-config", "llvm")];

/// Installs what all tests need. Prints what cannot be installed.
pub(crate) fn for_tests() {
    if !windows::is_here() {
        let mut groups: Vec<_> = PROGRAMS.into_iter().map(missing_packages).collect();
        if process::output(Command::new("python3").args(["-c", "import ensurepip, venv"])).is_none()
        {
            groups.push(vec!["python3-venv"]);
        }
        report(install_debian_packages(groups));
        report(install_promtool());
        report(python_programs("python-client").map(drop));
    }
    for_windows_programs(wine::missing_packages());
}

/// Installs what builds Windows programs, and these packages.
pub(crate) fn for_windows_programs(packages: Vec<&'static str>) {
    if !windows::is_here() {
        if !windows::has_target(windows::TARGET) && process::find("rustup").is_some() {
            let mut rustup = Command::new("rustup");
            report(process::must_succeed(rustup.args([
                "target",
                "add",
                windows::TARGET,
            ])));
        }
        let linker = missing_packages(&[(windows::LINKER, windows::LINKER_PACKAGE)]);
        report(install_debian_packages(vec![linker, packages]));
    }
}

/// Installs what makes a release.
pub(crate) fn for_releases() {
    for_windows_programs(missing_packages(&RELEASE_PROGRAMS));
}

fn missing_packages(programs: &[(&str, &'static str)]) -> Vec<&'static str> {
    let missing = programs
        .iter()
        .filter(|(program, _)| process::find(program).is_none());
    missing.map(|(_, package)| *package).collect()
}

pub(crate) fn report(result: Result<(), Error>) {
    if let Err(reason) = result {
        println!("{reason}");
    }
}

fn install_debian_packages(mut groups: Vec<Vec<&str>>) -> Result<(), Error> {
    groups.retain(|packages| !packages.is_empty());
    if groups.is_empty() {
        return Ok(());
    }
    let Some(apt_get) = apt_get() else {
        return Err(format!(
            "some tests will be skipped; run as root: apt-get install --no-install-recommends {}",
            groups.concat().join(" ")
        )
        .into());
    };
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(apt_get[0]);
        command
            .args(&apt_get[1..])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        process::succeeds(&mut command)
    };
    // If the index cannot be fetched, an installation fails and is reported.
    apt(&["update", "-qq"])?;
    for packages in groups {
        if !apt(&[
            &["install", "-qq", "-y", "--no-install-recommends"],
            &packages[..],
        ]
        .concat())?
        {
            println!(
                "some tests will be skipped: apt-get cannot install {}",
                packages.join(" ")
            );
        }
    }
    Ok(())
}

/// Returns how to call apt-get with the rights to install: directly as root, through sudo in CI.
fn apt_get() -> Option<&'static [&'static str]> {
    process::find("apt-get")?;
    if process::output(Command::new("id").arg("-u")).as_deref() == Some("0") {
        return Some(&["apt-get"]);
    }
    let in_ci = std::env::var_os("CI").is_some();
    (in_ci && process::output(Command::new("sudo").args(["-n", "true"])).is_some())
        .then_some(&["sudo", "-n", "apt-get"])
}

/// Returns the Python interpreter that has the packages of the Python client, if it is installed.
pub(crate) fn python() -> Option<PathBuf> {
    let python =
        python_folder("python-client").join(format!("python{}", std::env::consts::EXE_SUFFIX));
    python.is_file().then_some(python)
}

/// Returns the folder of the programs of an environment.
fn python_folder(name: &str) -> PathBuf {
    tools()
        .join(name)
        .join(if windows::is_here() { "Scripts" } else { "bin" })
}

/// Returns the folder of the programs in the Python packages that `verify/<name>/requirements.txt`
/// lists, after installing those that are missing.
pub(crate) fn python_programs(name: &str) -> Result<PathBuf, Error> {
    let requirements = workspace::root()
        .join("verify")
        .join(name)
        .join("requirements.txt");
    let wanted = fs::read_to_string(&requirements)?;
    let (folder, programs) = (tools().join(name), python_folder(name));
    let stamp = folder.join("requirements.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(programs);
    }
    process::must_succeed(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder),
    )?;
    let mut pip = Command::new(programs.join("python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--require-hashes",
        "--only-binary=:all:",
        "-r",
    ])
    .arg(&requirements);
    if let Err(error) = process::must_succeed(&mut pip) {
        fs::remove_dir_all(&folder)?;
        return Err(error);
    }
    fs::write(&stamp, wanted)?;
    Ok(programs)
}

/// Returns the folder of the programs that are installed here.
pub(crate) fn tools() -> PathBuf {
    workspace::target().join("tools")
}

/// Returns promtool, which Debian's package prometheus contains.
pub(crate) fn promtool() -> Option<PathBuf> {
    process::find("promtool")
        .or_else(|| Some(tools().join("prometheus/usr/bin/promtool")).filter(|file| file.is_file()))
}

/// Unpacks promtool's package. An installation would also start a Prometheus server.
fn install_promtool() -> Result<(), Error> {
    if promtool().is_some() {
        return Ok(());
    }
    let folder = tools().join("prometheus");
    fs::create_dir_all(&folder)?;
    let mut download = Command::new("apt-get");
    // The user _apt, as which root downloads otherwise, may not write to the folder.
    download
        .args([
            "-qq",
            "-o",
            "APT::Sandbox::User=root",
            "download",
            "prometheus",
        ])
        .current_dir(&folder);
    let script = "dpkg-deb --extract prometheus_*.deb . && rm prometheus_*.deb";
    process::must_succeed(&mut download)?;
    process::must_succeed(Command::new("sh").args(["-c", script]).current_dir(&folder))
}

/// The programs of which a debug build is installed, in less than half the time, with these
/// optional features alone. The first one writes into each program of a release, so it has a
/// version.
const SMALL: [(&str, &str); 2] = [("cargo-auditable@0.7.7", ""), ("mdbook", "search")];

/// Returns a program that is published on crates.io, such as `cargo-fuzz`, after installing it if
/// it is missing.
pub(crate) fn cargo_tool(name: &str) -> Result<PathBuf, Error> {
    let small = SMALL
        .iter()
        .find(|(small, _)| small.split('@').next() == Some(name));
    let (package, features) = small.map_or((name, None), |(package, features)| {
        (*package, Some(*features))
    });
    // A program that was installed with other features, or in another version, is not taken.
    let folder = tools().join(if package == name {
        features.unwrap_or_default()
    } else {
        package
    });
    let installed = folder
        .join("bin")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let found = process::find(name).filter(|_| package == name);
    if let Some(found) = found.or_else(|| installed.is_file().then(|| installed.clone())) {
        return Ok(found);
    }
    let mut install = workspace::cargo();
    install
        .args(["install", "--locked", "--quiet", package, "--root"])
        .arg(&folder);
    if let Some(features) = features {
        install.args(["--no-default-features", "--debug", "--features", features]);
    }
    process::must_succeed(&mut install).map(|()| installed)
}

/// Programs in Go. A version of its own is used, as newer linters report more.
const GO_TOOLS: [(&str, &str); 4] = [
    (
        "actionlint",
        "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12",
    ),
    (
        "grpcurl",
        "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3",
    ),
    ("helm", "helm.sh/helm/v4/cmd/helm@v4.3.1"),
    ("oras", "oras.land/oras/cmd/oras@v1.3.6"),
];

/// Returns the package and the version of one of [`GO_TOOLS`].
pub(crate) fn go_module(name: &str) -> Result<&'static str, Error> {
    let found = GO_TOOLS.iter().find(|(known, _)| *known == name);
    Ok(found.ok_or("an unknown program")?.1)
}

/// Returns one of [`GO_TOOLS`], after installing it if it is missing. It needs Go.
pub(crate) fn go_tool(name: &str) -> Result<PathBuf, Error> {
    let folder = tools().join("bin");
    let program = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Ok(program);
    }
    if process::find("go").is_none() {
        return Err("go is not installed".into());
    }
    let mut go = Command::new("go");
    process::must_succeed(
        go.args(["install", go_module(name)?])
            .env("GOBIN", &folder)
            .env("GOFLAGS", ""),
    )
    .map(|()| program)
}
