//! The Go programs of the tests. The set-up step builds them: Go downloads and compiles in silence,
//! for longer than a test may print nothing.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{Error, process, workspace};

/// Each program, the folder of its package, and the file that takes the place of `go.mod`, if any.
/// A name with `.test` is a program of tests, and one that ends with `.exe` is for Windows.
const PROGRAMS: [(&str, &str, &str); 20] = [
    ("client-pinned", "verify/go-client", ""),
    ("client-newest", "verify/go-client", "newest.mod"),
    ("client-pinned.test", "verify/go-client", ""),
    ("client-newest.test", "verify/go-client", "newest.mod"),
    ("client-pinned.exe", "verify/go-client", ""),
    ("client-newest.exe", "verify/go-client", "newest.mod"),
    ("example-pinned", "verify/go-client/example", ""),
    (
        "example-newest",
        "verify/go-client/example",
        "../newest.mod",
    ),
    ("node-plugin", "examples/node-plugin-go", ""),
    ("node-plugin.test", "examples/node-plugin-go", ""),
    ("node-plugin.exe", "examples/node-plugin-go", ""),
    ("firstcall", "examples/node-plugin-go/firstcall", ""),
    ("node-plugins.test", "verify/node-plugins", ""),
    ("simtest.test", "sim/simtest", ""),
    ("simtest-example.test", "sim/simtest/example", ""),
    ("v2pipe-alpha1.test.exe", "clients/v2pipe", "alpha1.mod"),
    ("v2pipe-alpha2.test.exe", "clients/v2pipe", ""),
    ("simtest-sanity.test", "sim/simtest/sanity", ""),
    (DEPLOY_TESTS, "verify/deploy", ""),
    (INTEGRATION_TESTS, "verify/go-program", ""),
];
const DEPLOY_TESTS: &str = "deploy.test";
/// The integration tests of the csi-proxy written in Go, unchanged.
pub(crate) const INTEGRATION_TESTS: &str = "integration.test.exe";
/// Their package, in the module that `verify/go-program` requires.
const INTEGRATION_PACKAGE: &str = "github.com/kubernetes-csi/csi-proxy/integrationtests";

/// Downloads and compiles the programs of the Go client and the node plugins, or with `deploy`
/// those of the tests of `deploy`. Prints what cannot be built; its test then fails.
pub(crate) fn build_all(deploy: bool) {
    for (name, ..) in PROGRAMS {
        let is_needed = !crate::windows::is_here() || is_needed_on_windows(name);
        if (name == DEPLOY_TESTS) == deploy
            && is_needed
            && let Err(error) = build(name)
        {
            println!("{error}");
        }
    }
}

/// Returns whether the tests on Windows run the program.
fn is_needed_on_windows(name: &str) -> bool {
    is_for_windows(name) || ["node-plugins.test", DEPLOY_TESTS].contains(&name)
}

/// Builds a program.
pub(crate) fn build(name: &str) -> Result<PathBuf, Error> {
    let ((folder, module), file) = (source(name)?, file(name));
    // A program of an earlier state of the tree must not be tested.
    if file.exists() {
        fs::remove_file(&file)?;
    }
    let mut go = Command::new("go");
    go.current_dir(workspace::root().join(folder));
    if name.contains(".test") {
        go.args(["test", "-c"]);
    } else {
        go.arg("build");
    }
    if !module.is_empty() {
        go.args(["-modfile", module]);
    }
    if is_for_windows(name) {
        go.env("GOOS", "windows").env("GOARCH", "amd64");
    }
    go.env("CGO_ENABLED", "0");
    let package = if name == INTEGRATION_TESTS {
        INTEGRATION_PACKAGE
    } else {
        "."
    };
    process::must_succeed(go.arg("-o").arg(&file).arg(package)).map(|()| file)
}

/// Returns the folder of the package of a program, and the file that takes the place of `go.mod`.
fn source(name: &str) -> Result<(&'static str, &'static str), Error> {
    let found = PROGRAMS.iter().find(|(known, ..)| *known == name);
    let (_, folder, module) = found.ok_or("an unknown program")?;
    Ok((folder, module))
}

fn is_for_windows(name: &str) -> bool {
    name.rsplit('.').next() == Some("exe")
}

fn file(name: &str) -> PathBuf {
    workspace::target().join("go").join(name)
}

/// Returns a program that the set-up step has built.
pub(crate) fn built(name: &str) -> Result<PathBuf, Error> {
    let file = file(name);
    if file.is_file() {
        Ok(file)
    } else {
        Err(format!("{} is not built: see the set-up step above", file.display()).into())
    }
}

/// Returns the command that runs a program of tests in the folder of its package.
pub(crate) fn tests(name: &str) -> Result<Command, Error> {
    let (folder, _) = source(name)?;
    let mut tests = Command::new(built(name)?);
    tests
        .current_dir(workspace::root().join(folder))
        .args(["-test.v", "-test.timeout=10m"]);
    process::forbid_downloads(&mut tests);
    Ok(tests)
}
