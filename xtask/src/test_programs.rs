//! Building Rust's test programs with `cargo test`, and running them one after the other.
//!
//! `cargo test` itself sets no limit of time. Each program is therefore started here, and killed if
//! it hangs.

use std::collections::HashSet;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use cargo_metadata::{Artifact, Message};

use crate::summary::Summary;
use crate::{Error, process, windows, workspace};

/// A test program.
pub(crate) struct Program {
    pub(crate) file: PathBuf,
    /// The folder of its package, in which cargo runs it.
    pub(crate) folder: PathBuf,
    /// The name of its target: that of the file in `tests`, or that of the library or program.
    pub(crate) target: String,
}

/// Builds the tests of a `cargo test` command and runs them, each with the command that `start`
/// returns for its program. A program for which `start` returns `None` is not run.
pub(crate) fn run(
    name: &str,
    cargo: &mut Command,
    start: impl Fn(&Program) -> Option<Command>,
) -> Summary {
    let mut programs = Vec::new();
    let mut summary = Summary::of_step(&format!("{name}: build"), || {
        programs = build(cargo)?;
        Ok(Summary::default())
    });
    for program in programs {
        let Some(mut command) = start(&program) else {
            continue;
        };
        command
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .arg("--show-output");
        process::forbid_downloads(&mut command);
        let folder = program
            .folder
            .strip_prefix(workspace::root())
            .unwrap_or(&program.folder);
        let step = format!("{name}: {} {}", folder.display(), program.target);
        summary += Summary::of_step(&step, || Ok(Summary::of_test_program(&mut command)));
    }
    summary
}

/// Builds the programs of a `cargo test` command and returns the test programs among them.
fn build(cargo: &mut Command) -> Result<Vec<Program>, Error> {
    step_aside();
    cargo.args(["--no-run", "--message-format=json-render-diagnostics"]);
    process::print(cargo);
    let mut child = cargo.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or("cargo has no standard output")?;
    let mut programs = Vec::new();
    for message in Message::parse_stream(BufReader::new(output)) {
        if let Message::CompilerArtifact(artifact) = message? {
            programs.extend(test_program(&artifact));
        }
    }
    if !child.wait()?.success() {
        return Err(format!("`{}` failed, see its output above", process::typed(cargo)).into());
    }
    let mut known = HashSet::new();
    programs.retain(|program| known.insert(program.file.clone()));
    Ok(programs)
}

/// Renames the file of this program on Windows, which does not let the file of a running program be
/// replaced: `cargo test --workspace` builds this program too, with the features of libraries that
/// other packages select. Cargo reports what fails here.
fn step_aside() {
    if windows::is_here()
        && let Ok(program) = env::current_exe()
    {
        let _ = fs::rename(&program, program.with_file_name("xtask-running.exe"));
    }
}

fn test_program(artifact: &Artifact) -> Option<Program> {
    let file = artifact
        .executable
        .as_ref()
        .filter(|_| artifact.profile.test)?;
    let folder = artifact.manifest_path.parent()?;
    Some(Program {
        file: file.into(),
        folder: folder.into(),
        target: artifact.target.name.clone(),
    })
}
