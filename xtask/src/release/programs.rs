//! The programs of a release, for each platform.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::{folder, staging};
use crate::summary::Summary;
use crate::windows;
use crate::{Error, process, setup, workspace};

pub(super) struct Platform {
    /// `<system>-<architecture>` in the terms of OCI images, such as `windows-amd64`.
    pub(super) name: &'static str,
    target: &'static str,
    /// The packages, whose programs have the same names. The first one is what an image runs.
    pub(super) packages: &'static [&'static str],
    /// What the linker adds to each program, and the license of that.
    linked: [&'static str; 2],
}

const ON_WINDOWS: &[&str] = &[windows::DAEMON, windows::ADMIN_TOOL, windows::SELFTEST];
const GCC: [&str; 2] = [
    "mingw-w64-libgcc",
    "ZPL-2.1 AND GPL-3.0-or-later WITH GCC-exception-3.1",
];
const ZIG_MINGW: [&str; 2] = [
    "zig-mingw-w64-libunwind",
    "MIT AND ZPL-2.1 AND Apache-2.0 WITH LLVM-exception",
];
const ZIG_MUSL: [&str; 2] = [
    "zig-musl-libunwind",
    "MIT AND Apache-2.0 WITH LLVM-exception",
];
const ON_LINUX: &[&str] = &[windows::SIMULATOR, windows::ADMIN_TOOL];

pub(super) const PLATFORMS: [Platform; 4] = [
    Platform {
        name: "windows-amd64",
        target: windows::TARGET,
        packages: ON_WINDOWS,
        linked: GCC,
    },
    Platform {
        name: "windows-arm64",
        target: "aarch64-pc-windows-gnullvm",
        packages: ON_WINDOWS,
        linked: ZIG_MINGW,
    },
    Platform {
        name: "linux-amd64",
        target: "x86_64-unknown-linux-musl",
        packages: ON_LINUX,
        linked: ZIG_MUSL,
    },
    Platform {
        name: "linux-arm64",
        target: "aarch64-unknown-linux-musl",
        packages: ON_LINUX,
        linked: ZIG_MUSL,
    },
];

impl Platform {
    pub(super) fn system(&self) -> &'static str {
        self.name.split('-').next().unwrap_or_default()
    }

    /// Returns the name of a program's file on a node, and its path in the release.
    pub(super) fn files(&self, package: &str) -> [String; 2] {
        let suffix = if self.system() == "windows" {
            ".exe"
        } else {
            ""
        };
        let released = folder().join(format!("{package}-{}{suffix}", self.name));
        [
            format!("{package}{suffix}"),
            released.to_string_lossy().into_owned(),
        ]
    }

    /// Returns what the compilers add to each program: name, version of the compiler, license.
    pub(super) fn libraries(&self) -> Result<[[String; 3]; 2], Error> {
        let version =
            |command: &mut Command| process::output(command).ok_or("a compiler prints no version");
        let rust = version(Command::new("rustc").arg("--version"))?;
        let linker = if self.target == windows::TARGET {
            version(Command::new(windows::LINKER).arg("-dumpversion"))?
        } else {
            version(
                Command::new(setup::python_programs("release")?.join("python"))
                    .args(["-m", "ziglang", "version"]),
            )?
        };
        let rust = [
            "rust-std",
            rust.split(' ').nth(1).unwrap_or_default(),
            "MIT OR Apache-2.0",
        ];
        Ok([rust, [self.linked[0], &linker, self.linked[1]]]
            .map(|library| library.map(str::to_owned)))
    }
}

/// Builds the programs of a platform.
pub(super) fn make(platform: &Platform) -> Result<Summary, Error> {
    let built = build(platform)?;
    for package in platform.packages.iter().copied() {
        let [name, released] = platform.files(package);
        fs::copy(built.join(&name), &released)?;
        if windows::SHIPPED_PACKAGES.contains(&package) && platform.system() == "windows" {
            windows::check_shipped(Path::new(&released), &name)?;
        } else if platform.name == "linux-amd64" && env::consts::ARCH == "x86_64" {
            let printed = process::output(Command::new(&released).arg("--version"));
            if printed != Some(format!("{package} {}", workspace::version()?)) {
                return Err(format!("{released} --version printed {printed:?}").into());
            }
        }
    }
    Ok(Summary::passed())
}

/// Builds with the data of `cargo auditable`. Except for mingw's target, zig is the linker, and has
/// the C library.
fn build(platform: &Platform) -> Result<PathBuf, Error> {
    if !windows::has_target(platform.target) {
        return Err("rustup has not added the target: see docs/releases.md".into());
    }
    let folders = [
        setup::python_programs("release")?,
        setup::cargo_tool("cargo-auditable")?.with_file_name(""),
    ];
    let verb = if platform.target == windows::TARGET {
        "build"
    } else {
        "zigbuild"
    };
    let mut cargo = windows::cargo_for(platform.target, &["auditable", verb]);
    let path = env::var_os("PATH").unwrap_or_default();
    cargo.env(
        "PATH",
        env::join_paths(folders.into_iter().chain(env::split_paths(&path)))?,
    );
    if platform.name == "windows-arm64" {
        let llvm = process::output(Command::new("llvm-config").arg("--bindir"))
            .ok_or("llvm-config is not installed")?;
        // llvm-windres compiles for the target in the name by which it is called.
        let windres = staging().join("aarch64-w64-mingw32-windres");
        process::must_succeed(
            Command::new("ln")
                .arg("-s")
                .arg(Path::new(&llvm).join("llvm-windres"))
                .arg(&windres),
        )?;
        cargo.env("WINDRES", windres);
    }
    windows::build_as_shipped(cargo, platform.target, platform.packages)
}

/// Returns the versions of the programs that write bytes of a release, except for those that
/// setup.rs fixes.
pub(super) fn compilers() -> Option<String> {
    const VERSIONS: &str =
        "for program in \"$@\" cargo tar gzip; do $program --version | head -1; done
        echo LLVM $(llvm-config --version); go version";
    process::output(Command::new("sh").args(["-c", VERSIONS, "sh", windows::LINKER, "rustc"]))
}
