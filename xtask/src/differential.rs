//! `cargo xtask differential`: builds the programs that verify/differential compares, prepares
//! Wine, and runs the comparison.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::go::programs;
use crate::summary::Summary;
use crate::wine::Prefix;
use crate::{Error, Missing, process, windows, workspace};

/// The Go program's main package, of which `verify/go-program` names the version.
const GO_PROGRAM: &str = "github.com/kubernetes-csi/csi-proxy/cmd/csi-proxy";

/// How many calls show every declared difference.
pub(crate) const CALLS: usize = 20_000;

#[derive(Args)]
pub(crate) struct Options {
    /// Number of calls
    #[arg(long, default_value_t = CALLS)]
    calls: usize,
    /// The seed of an earlier run, to repeat its calls
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs what the options select.
pub(crate) fn run(options: &Options) -> Result<Summary, Error> {
    compare(options.calls, options.seed)
}

/// Compares the programs by so many calls.
pub(crate) fn compare(calls: usize, seed: Option<u64>) -> Result<Summary, Error> {
    if windows::is_here() {
        let reason = "both programs would serve pipes of the same names";
        return Err(Missing(reason.into()).into());
    }
    let reference = build_go_program()?;
    let own = windows::daemon()?;
    let client = programs::build("client-pinned.exe")?;
    let [go_prefix, own_prefix] = prefixes()?;
    let mut build = workspace::cargo();
    process::must_succeed(build.args(["build", "--bin", "differential"]))?;
    let mut differential = Command::new(workspace::target().join("debug/differential"));
    differential
        .args(["--calls", &calls.to_string()])
        .args(seed.map(|seed| format!("--seed={seed}")));
    differential
        .arg("--wine")
        .arg(own_prefix.loader())
        .arg("--client")
        .arg(client);
    differential
        .arg("--go-prefix")
        .arg(go_prefix.folder())
        .arg("--go-program")
        .arg(reference);
    differential
        .arg("--own-prefix")
        .arg(own_prefix.folder())
        .arg("--own-program")
        .arg(own);
    Ok(Summary::of_tests(own_prefix.enter(&mut differential)))
}

/// Starts a Wine prefix for the Go program and one for csi-proxy.
pub(crate) fn prefixes() -> Result<[Prefix; 2], Error> {
    let of_go = Prefix::start_in(workspace::target().join("wine-go"))?;
    Ok([of_go, Prefix::start()?])
}

/// Builds the Go program.
pub(crate) fn build_go_program() -> Result<PathBuf, Error> {
    if process::find("go").is_none() {
        return Err(Missing("go is not installed (https://go.dev/dl)".into()).into());
    }
    let folder = workspace::target().join("go");
    fs::create_dir_all(&folder)?;
    let program = folder.join("csi-proxy-go.exe");
    let mut go = Command::new("go");
    go.current_dir(workspace::root().join("verify/go-program"))
        .args(["build", "-o"])
        .arg(&program);
    if let Some(overlay) = library_for_wine(&folder)? {
        go.arg("-overlay").arg(overlay);
    }
    go.arg(GO_PROGRAM)
        .env("CGO_ENABLED", "0")
        .env("GOOS", "windows")
        .env("GOARCH", "amd64");
    if process::succeeds(go.env("GOFLAGS", "-mod=readonly"))? {
        return Ok(program);
    }
    let reason = "the Go program cannot be built: its modules cannot be downloaded";
    Err(Missing(reason.into()).into())
}

/// Returns an overlay with which Go's library removes directory trees under Wine, or `None` if the
/// library needs none.
///
/// Since Go 1.25 the library first removes an entry in a way that Wine 8 does not implement. Wine
/// answers with an error code after which the library does not try the older way. The overlay makes
/// the library take the older way.
fn library_for_wine(folder: &Path) -> Result<Option<PathBuf>, Error> {
    const CONDITION: &str = "if TestDeleteatFallback {";
    let library = process::output(Command::new("go").args(["env", "GOROOT"]))
        .ok_or("go env GOROOT failed")?;
    let source = Path::new(&library).join("src/internal/syscall/windows/at_windows.go");
    let text = fs::read_to_string(&source).unwrap_or_default();
    if !text.contains(CONDITION) {
        return Ok(None);
    }
    let (changed, overlay) = (folder.join("at_windows.go"), folder.join("overlay.json"));
    fs::write(&changed, text.replace(CONDITION, "if true {"))?;
    let replaced =
        serde_json::json!({"Replace": {source.to_string_lossy(): changed.to_string_lossy()}});
    fs::write(&overlay, replaced.to_string())?;
    Ok(Some(overlay))
}
