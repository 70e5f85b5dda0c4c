//! Wine: a prefix in the target folder, and the features that the installed version supports.
//!
//! Features differ between versions of Wine, so wine/probe.c tries them out. `CSI_PROXY_WINE_LACKS`
//! lists the missing ones for the tests, by their names in wine/probe.c, separated by spaces. A
//! test that needs one of them prints `skipped: ...`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Error, Missing, process, workspace};

const PROBE: &str = include_str!("wine/probe.c");
const BCRYPTPRIMITIVES: &str = include_str!("wine/bcryptprimitives.c");
const MINGW: &str = crate::windows::LINKER;

/// Returns Wine's loader and server.
fn programs() -> Option<(PathBuf, PathBuf)> {
    program("wine64")
        .or_else(|| process::find("wine"))
        .zip(program("wineserver"))
}

/// Returns the Debian packages to install; none if Wine is installed.
pub(crate) fn missing_packages() -> Vec<&'static str> {
    if programs().is_some() {
        Vec::new()
    } else {
        vec!["wine", "wine64"]
    }
}

/// Variables that the programs of a prefix get.
pub(crate) type Environment = Vec<(&'static str, OsString)>;

/// A running Wine prefix. All its processes are killed when this is dropped.
pub(crate) struct Prefix {
    folder: PathBuf,
    loader: PathBuf,
    server: PathBuf,
    environment: Environment,
    /// The features that this version of Wine does not support.
    lacks: Vec<String>,
}

impl Prefix {
    /// Creates the prefix if it does not exist, starts it and probes its features. The error states
    /// what is missing.
    pub(crate) fn start() -> Result<Self, Error> {
        Self::start_in(workspace::target().join("wine"))
    }

    /// Does the same with the prefix in a folder. Programs in different prefixes do not see each
    /// other's pipes.
    pub(crate) fn start_in(folder: PathBuf) -> Result<Self, Error> {
        Self::start_with(folder, Environment::new())
    }

    /// Does the same with these variables.
    pub(crate) fn start_with(folder: PathBuf, environment: Environment) -> Result<Self, Error> {
        let (loader, server) = programs().ok_or(Missing("Wine is not installed".into()))?;
        let mut prefix = Self {
            folder,
            loader,
            server,
            environment,
            lacks: Vec::new(),
        };
        let started = prefix.boot().and_then(|()| prefix.probe());
        started.map_err(|error| Missing(format!("cannot run a program under Wine: {error}")))?;
        Ok(prefix)
    }

    /// Returns the program that runs Windows programs.
    pub(crate) fn loader(&self) -> &Path {
        &self.loader
    }

    /// Returns the folder of this prefix.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder that is drive C: of this prefix.
    pub(crate) fn drive_c(&self) -> PathBuf {
        self.folder.join("drive_c")
    }

    /// Sets the environment with which `command` uses this prefix.
    pub(crate) fn enter<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .envs(self.environment.iter().cloned())
            .env("WINEPREFIX", &self.folder)
            .env("WINEDEBUG", "-all")
            // Disable .NET and the browser, which Wine would open a dialog to install, and the
            // desktop. Wine starts it for the first program that uses COM, and it would keep that
            // program's standard output open.
            .env("WINEDLLOVERRIDES", "mscoree=;mshtml=;explorer.exe=d")
            .env_remove("DISPLAY")
            .env("CSI_PROXY_WINE_LACKS", self.lacks.join(" "))
    }

    /// Returns a command for a Windows program in this prefix.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(&self.loader);
        self.enter(&mut command).arg(program.as_ref());
        command
    }

    fn boot(&self) -> Result<(), Error> {
        fs::create_dir_all(&self.folder)?;
        let version = process::output(Command::new(&self.loader).arg("--version"));
        println!(
            "Wine: {}, prefix {}",
            version.as_deref().unwrap_or("unknown version"),
            self.folder.display()
        );
        let status = self
            .command("wineboot")
            .arg("-i")
            // Services that wineboot leaves running would keep a pipe open.
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("wineboot exited with {status}").into())
        }
    }

    fn probe(&mut self) -> Result<(), Error> {
        let program = self.folder.join("probe.exe");
        compile(PROBE, &program, &["-municode", "-ladvapi32"])?;
        let mut features = self.features(&program)?;
        if !features.iter().any(|line| line == "process-prng yes") {
            let options = [
                "-shared",
                "-nostdlib",
                "-e",
                "DllMain",
                "-ladvapi32",
                "-lkernel32",
            ];
            let substitute = self.drive_c().join("windows/system32/bcryptprimitives.dll");
            compile(BCRYPTPRIMITIVES, &substitute, &options)?;
            println!("Wine: bcryptprimitives.dll has no ProcessPrng, using a substitute");
            features = self.features(&program)?;
        }
        println!("Wine features: {}", features.join(", "));
        self.lacks = features
            .iter()
            .filter_map(|line| line.strip_suffix(" no"))
            .map(String::from)
            .collect();
        Ok(())
    }

    /// Runs the probe, which prints a line `<name> yes` or `<name> no` for each feature.
    ///
    /// Its folder is removed from Linux: not every version of Wine can remove the links that it
    /// creates.
    fn features(&self, probe: &Path) -> Result<Vec<String>, Error> {
        let folder = self.drive_c().join("csi-proxy-probe");
        create_empty(&folder)?;
        let output = process::output(self.command(probe).arg(r"C:\csi-proxy-probe"));
        fs::remove_dir_all(&folder)?;
        Ok(output
            .ok_or("the probe failed")?
            .lines()
            .map(|line| line.trim().to_owned())
            .collect())
    }
}

impl Drop for Prefix {
    fn drop(&mut self) {
        for option in ["-k", "-w"] {
            // wineserver fails if the prefix has no process. That is not an error here.
            let _ignored = self.enter(Command::new(&self.server).arg(option)).status();
        }
    }
}

/// Returns a program of Wine. Debian installs those for 64-bit programs in a folder that is not on
/// the PATH.
fn program(name: &str) -> Option<PathBuf> {
    let debian = Path::new("/usr/lib/wine").join(name);
    if debian.is_file() {
        Some(debian)
    } else {
        process::find(name)
    }
}

/// Creates a folder. What an earlier run left in it is removed.
fn create_empty(folder: &Path) -> std::io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)
}

/// Compiles a C program for Windows.
fn compile(source: &str, program: &Path, options: &[&str]) -> Result<(), Error> {
    let file = program.with_extension("c");
    fs::write(&file, source)?;
    let status = Command::new(MINGW)
        .args(["-O1", "-o"])
        .arg(program)
        .arg(&file)
        .args(options)
        .status()?;
    fs::remove_file(&file)?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{MINGW} cannot compile {}", file.display()).into())
    }
}
