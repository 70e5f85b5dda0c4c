//! Wine: a prefix of our own in the target folder, and what this Wine can do.
//!
//! What Wine can do differs by version, so it is tried out and printed. Tests find what is lacking in
//! `CSI_PROXY_WINE_LACKS`, blank-separated names of wine/probe.c, and say `skipped: ...` for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{apt, process, workspace};

const PROBE: &str = include_str!("wine/probe.c");
const BCRYPTPRIMITIVES: &str = include_str!("wine/bcryptprimitives.c");
const MINGW: &str = "x86_64-w64-mingw32-gcc";

/// A running Wine prefix. Everything in it ends when this is dropped.
pub(crate) struct Prefix {
    folder: PathBuf,
    loader: PathBuf,
    server: PathBuf,
    /// What this Wine cannot do.
    lacks: Vec<String>,
}

impl Prefix {
    /// Makes the prefix if need be, starts it, and finds out what it can do; or says what is missing.
    pub(crate) fn start() -> Result<Self, String> {
        let find = || program("wine64").or_else(|| process::find("wine")).zip(program("wineserver"));
        let (loader, server) = if let Some(found) = find() {
            found
        } else {
            apt::install(&["wine", "wine64"]).map_err(|why| format!("Wine is not installed ({why})"))?;
            find().ok_or("Wine is not there even with the packages wine and wine64")?
        };
        let mut prefix = Self { folder: workspace::target().join("wine"), loader, server, lacks: Vec::new() };
        prefix.boot().map_err(|error| format!("Wine does not start: {error}"))?;
        prefix.probe().map_err(|error| format!("Wine runs no program: {error}"))?;
        Ok(prefix)
    }

    /// The program that runs Windows programs.
    pub(crate) fn loader(&self) -> &Path {
        &self.loader
    }

    /// Drive C: of this prefix.
    pub(crate) fn drive_c(&self) -> PathBuf {
        self.folder.join("drive_c")
    }

    /// Lets what `command` runs find this prefix.
    pub(crate) fn enter<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("WINEPREFIX", &self.folder)
            .env("WINEDEBUG", "-all")
            // Neither .NET nor a browser: their absence would open a dialog.
            .env("WINEDLLOVERRIDES", "mscoree=;mshtml=")
            .env_remove("DISPLAY")
            .env("CSI_PROXY_WINE_LACKS", self.lacks.join(" "))
    }

    /// A Windows program in this prefix.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(&self.loader);
        self.enter(&mut command).arg(program.as_ref());
        command
    }

    fn boot(&self) -> Result<(), Box<dyn std::error::Error>> {
        fs::create_dir_all(&self.folder)?;
        let version = process::output(Command::new(&self.loader).arg("--version"));
        println!("Wine: {}, prefix {}", version.as_deref().unwrap_or("of no version"), self.folder.display());
        let status = self
            .command("wineboot")
            .arg("-i")
            // Services that outlive wineboot would hold a pipe of ours open.
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if status.success() { Ok(()) } else { Err(format!("wineboot ended with {status}").into()) }
    }

    fn probe(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let program = self.folder.join("probe.exe");
        compile(PROBE, &program, &["-ladvapi32"])?;
        let mut can = self.abilities(&program)?;
        if !can.iter().any(|line| line == "process-prng yes") {
            let options = ["-shared", "-nostdlib", "-e", "DllMain", "-ladvapi32", "-lkernel32"];
            let stand_in = self.drive_c().join("windows/system32/bcryptprimitives.dll");
            compile(BCRYPTPRIMITIVES, &stand_in, &options)?;
            println!("Wine: bcryptprimitives.dll has no ProcessPrng, a stand-in is in its place");
            can = self.abilities(&program)?;
        }
        println!("Wine can: {}", can.join(", "));
        self.lacks = can.iter().filter_map(|line| line.strip_suffix(" no")).map(String::from).collect();
        Ok(())
    }

    /// Runs the probe: a line `<name> yes` or `<name> no` for each ability.
    fn abilities(&self, probe: &Path) -> Result<Vec<String>, String> {
        let output = process::output(&mut self.command(probe)).ok_or("the probe failed")?;
        Ok(output.lines().map(|line| line.trim().to_owned()).collect())
    }
}

impl Drop for Prefix {
    fn drop(&mut self) {
        for what in ["-k", "-w"] {
            // Nothing to kill is an error to wineserver and none to us.
            let _ended = self.enter(Command::new(&self.server).arg(what)).status();
        }
    }
}

/// A program of Wine's: Debian keeps those that need no 32-bit Wine beside the PATH.
fn program(name: &str) -> Option<PathBuf> {
    let debian = Path::new("/usr/lib/wine").join(name);
    if debian.is_file() { Some(debian) } else { process::find(name) }
}

/// Compiles a small C program.
fn compile(source: &str, program: &Path, options: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let file = program.with_extension("c");
    fs::write(&file, source)?;
    let status = Command::new(MINGW).args(["-O1", "-o"]).arg(program).arg(&file).args(options).status()?;
    fs::remove_file(&file)?;
    if status.success() { Ok(()) } else { Err(format!("{MINGW} cannot compile {}", file.display()).into()) }
}
