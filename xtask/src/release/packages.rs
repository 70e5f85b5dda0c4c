//! csi-proxy-sim for the package managers of those who test drivers: wheels, npm packages and a Go
//! module. Each has the static program, so none of them needs Rust.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::programs::Platform;
use super::{folder, number, sbom, staging, tar};
use crate::summary::Summary;
use crate::{Error, process, windows, workspace};

/// The folder of the Go module.
const GO_MODULE: &str = "sim/simtest/csi-proxy-sim";

/// A program for Linux, and where it becomes packages.
struct Package<'a> {
    /// The architecture, as Go calls it.
    architecture: &'a str,
    program: &'a Path,
    /// The licenses of what is in the program.
    licenses: &'a Path,
    /// A folder for parts.
    parts: &'a Path,
    /// The folder for the packages.
    to: &'a Path,
}

/// Makes the packages of the programs for Linux.
pub(super) fn make(platforms: &[&Platform]) -> Result<Summary, Error> {
    let (parts, to) = (staging().join("packages"), folder());
    for platform in platforms
        .iter()
        .filter(|platform| platform.system() == "linux")
    {
        let [_, program] = platform.files(windows::SIMULATOR);
        Package {
            architecture: platform.name.split('-').next_back().unwrap_or_default(),
            program: Path::new(&program),
            licenses: &to.join(sbom::licenses(platform)),
            parts: &parts,
            to: &to,
        }
        .make()?;
    }
    pack_go_module(&parts, &to)?;
    Ok(Summary::passed())
}

impl Package<'_> {
    fn make(&self) -> Result<(), Error> {
        let (npm, python) = match self.architecture {
            "amd64" => ("x64", "x86_64"),
            "arm64" => ("arm64", "aarch64"),
            other => return Err(format!("no package manager has a name for {other}").into()),
        };
        self.npm_package(npm)?;
        self.wheel(python)?;
        self.add_to_go_module()
    }

    /// Copies the program, under its own name, and the licenses.
    fn copy_to(&self, folder: &Path) -> Result<[PathBuf; 3], Error> {
        fs::create_dir_all(folder)?;
        let files =
            [windows::SIMULATOR, "LICENSE", "THIRD-PARTY.txt"].map(|name| folder.join(name));
        let license = workspace::root().join("LICENSE");
        for (from, to) in [self.program, &license, self.licenses].iter().zip(&files) {
            fs::copy(from, to)?;
        }
        Ok(files)
    }

    fn npm_package(&self, cpu: &str) -> Result<(), Error> {
        let folder = self.parts.join(format!("npm-{cpu}"));
        self.copy_to(&folder.join("package"))?;
        let (name, version) = (format!("{}-linux-{cpu}", windows::SIMULATOR), number()?);
        let manifest = json!({
            "name": name, "version": version, "license": "Apache-2.0",
            "description": "A simulated Windows node for the tests of CSI drivers",
            "os": ["linux"], "cpu": [cpu], "bin": { windows::SIMULATOR: windows::SIMULATOR },
        });
        fs::write(folder.join("package/package.json"), manifest.to_string())?;
        tar(&folder, &self.to.join(format!("{name}-{version}.tgz")), "0")
    }

    /// A static program runs with each C library.
    fn wheel(&self, machine: &str) -> Result<(), Error> {
        let tags = format!("py3-none-manylinux2014_{machine}.musllinux_1_1_{machine}");
        let wheel = format!("csi_proxy_sim-{}-{tags}.whl", number()?);
        let mut python = Command::new("python3");
        python
            .arg(workspace::root().join("xtask/src/release/wheel.py"))
            .arg(self.to.join(wheel))
            .args(self.copy_to(&self.parts.join(format!("wheel-{machine}")))?);
        process::must_succeed(&mut python)
    }

    fn add_to_go_module(&self) -> Result<(), Error> {
        let module = self.parts.join("go/csi-proxy-sim");
        let [program, ..] = self.copy_to(&self.parts.join(self.architecture))?;
        fs::create_dir_all(&module)?;
        for entry in fs::read_dir(workspace::root().join(GO_MODULE))? {
            let entry = entry?;
            fs::copy(entry.path(), module.join(entry.file_name()))?;
        }
        fs::copy(workspace::root().join("LICENSE"), module.join("LICENSE"))?;
        let third_party = format!("THIRD-PARTY-{}.txt", self.architecture);
        fs::copy(self.licenses, module.join(third_party))?;
        let packed = module.join(format!("csi-proxy-sim-linux-{}.gz", self.architecture));
        process::must_succeed(
            Command::new("sh")
                .args(["-c", "gzip -9nc \"$0\" >\"$1\""])
                .args([program, packed]),
        )
    }
}

fn pack_go_module(parts: &Path, to: &Path) -> Result<(), Error> {
    tar(&parts.join("go"), &to.join("csi-proxy-sim-go.tar.gz"), "0")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;
    use std::{env, fs};

    use super::{Package, number, pack_go_module};
    use crate::process;

    /// Installs each package by the name of its file, in an environment of its own and without the
    /// network, and runs the program that is installed. `$1` is the version.
    const INSTALL: [(&str, &str); 3] = [
        (
            "python3",
            "python3 -m venv venv
            venv/bin/pip install --quiet --no-index --disable-pip-version-check ./*.whl
            venv/bin/csi-proxy-sim version",
        ),
        (
            "npm",
            "npm install --silent --offline --global --prefix npm ./*.tgz
            npm/bin/csi-proxy-sim version",
        ),
        (
            "go",
            "export GOPATH=$PWD/gopath GOCACHE=$PWD/gocache GOPROXY=off GOFLAGS=-modcacherw
            export GOTOOLCHAIN=local XDG_CACHE_HOME=$PWD/cache
            tar -xf csi-proxy-sim-go.tar.gz
            (cd csi-proxy-sim && go install .)
            mkdir driver
            cd driver
            printf 'module example.com/driver\\n\\ngo 1.25.0\\n' >go.mod
            name=$(sed -n 's/^module //p' ../csi-proxy-sim/go.mod)
            go mod edit -replace \"$name=../csi-proxy-sim\"
            go get -tool \"$name\"
            grep -qx 'go 1.25.0' go.mod
            test \"$(go tool csi-proxy-sim version)\" = \"$(../gopath/bin/csi-proxy-sim version)\"
            ../gopath/bin/csi-proxy-sim version",
        ),
    ];

    fn run(folder: &Path, script: &str) -> String {
        let mut sh = Command::new("sh");
        let ended = sh.current_dir(folder).args(["-ec", script]).output();
        let ended = ended.expect("a shell");
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{script}\n{text}{errors}");
        text
    }

    /// The variable CSI_PROXY_SIM names a static program to pack instead of a script.
    #[test]
    fn each_package_installs_the_program_without_a_network() {
        let is_amd64_linux = env::consts::OS == "linux" && env::consts::ARCH == "x86_64";
        if !is_amd64_linux || crate::workspace::files().is_none() {
            println!(
                "skipped: each_package_installs_the_program_without_a_network: this is no git \
                 checkout on Linux on x86_64"
            );
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (root, parts) = (folder.path(), folder.path().join("parts"));
        let version = format!("csi-proxy-sim {}", number().expect("a version"));
        let script = root.join("script");
        fs::write(&script, format!("#!/bin/sh\necho {version}\n")).expect("a file");
        run(root, "chmod +x script; echo licenses >licenses");
        let program = env::var_os("CSI_PROXY_SIM").map_or(script, Into::into);
        let package = Package {
            architecture: "amd64",
            program: &program,
            licenses: &root.join("licenses"),
            parts: &parts,
            to: root,
        };
        package.make().expect("packages");
        pack_go_module(&parts, root).expect("a module");
        for (tool, install) in INSTALL {
            if process::find(tool).is_none() {
                println!("{tool} is not installed, so its package is not tried");
                continue;
            }
            let printed = run(root, install);
            assert!(printed.starts_with(&version), "{tool}: {printed}");
        }
    }
}
