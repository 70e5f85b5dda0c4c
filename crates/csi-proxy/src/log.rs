//! The log: lines of text on standard error, in a file, or both, as klog's flags choose.
//!
//! Clients cause most lines and parts of their text. Therefore the size of all files is limited, as are the lines
//! that clients can cause in a minute, and what could be mistaken for other text is escaped.

mod line;
mod rate;
mod rotation;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::flags::LogFlags;
use rate::{Output, RateLimit};
use rotation::RotatingFile;

/// The crates of this workspace, by the prefixes of their events' targets.
const OURS: [&str; 4] = ["csi_proxy", "server", "storage_ops", "transport"];

static FILE_RATE: LazyLock<RateLimit> = LazyLock::new(RateLimit::default);
static STDERR_RATE: LazyLock<RateLimit> = LazyLock::new(RateLimit::default);

/// Starts logging. Fails if logging has already been started in this process.
pub fn start(flags: &LogFlags) -> io::Result<()> {
    // klog ignores -log_file unless -logtostderr=false is given too. A user who names a file expects it to be written.
    let file = match flags.file.as_deref() {
        None => None,
        Some(path) => Some(
            open(path, flags.megabytes)
                .map_err(|error| io::Error::new(error.kind(), format!("cannot log to {}: {error}", path.display())))?,
        ),
    };
    let to_stderr = flags.to_stderr || flags.also_to_stderr || file.is_none();
    let lines = || tracing_subscriber::fmt::layer().with_target(false);
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = Vec::new();
    if let Some(file) = file {
        let file = Output::new(Mutex::new(file), false, &FILE_RATE);
        layers.push(lines().with_ansi(false).with_writer(file).with_filter(wanted(flags)).boxed());
    }
    if to_stderr {
        let ansi = io::stderr().is_terminal();
        let stderr = Output::new(io::stderr, ansi, &STDERR_RATE);
        layers.push(lines().with_ansi(ansi).with_writer(stderr).with_filter(wanted(flags)).boxed());
    }
    tracing_subscriber::registry().with(layers).try_init().map_err(io::Error::other)
}

/// Logs how many lines were left out, as often as that happens. Never returns.
pub(crate) async fn report_left_out() {
    tokio::join!(FILE_RATE.report(), STDERR_RATE.report());
}

/// Logs how many lines have been left out since the last report. To be called when no more lines are expected.
pub(crate) fn report_left_out_at_end() {
    FILE_RATE.report_once();
    STDERR_RATE.report_once();
}

/// Returns which events are logged: more of this workspace's crates than of the libraries.
fn wanted(flags: &LogFlags) -> Targets {
    let (ours, theirs) = match flags.verbosity {
        ..=1 => (Level::INFO, LevelFilter::WARN),
        2..=4 => (Level::DEBUG, LevelFilter::WARN),
        5.. => (Level::TRACE, LevelFilter::INFO),
    };
    Targets::new().with_default(theirs).with_targets(OURS.map(|name| (name, ours)))
}

/// Opens the file to append to it, and creates its folder.
fn open(path: &Path, megabytes: usize) -> io::Result<RotatingFile> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let bytes = u64::try_from(megabytes).unwrap_or(u64::MAX).saturating_mul(1 << 20);
    RotatingFile::open(path, (megabytes > 0).then_some(bytes))
}
