//! The log: one line of text per event, to standard error, to a file, or to both, as klog's flags choose.
//!
//! Levels are klog's numbers: up to 1, what matters to an operator; up to 4, each call as well; from 5 on, everything of
//! this workspace and the main events of the libraries. A file that reaches its limit is rotated, and `KEPT_FILES` old
//! files are kept.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Mutex;

use file_rotate::compression::Compression;
use file_rotate::suffix::AppendCount;
use file_rotate::{ContentLimit, FileRotate};
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::flags::LogFlags;

/// The crates of this workspace, by the prefixes of their events' targets.
const OURS: [&str; 4] = ["csi_proxy", "server", "storage_ops", "transport"];

/// The number of old log files.
const KEPT_FILES: usize = 3;

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
        layers.push(lines().with_ansi(false).with_writer(Mutex::new(file)).with_filter(wanted(flags)).boxed());
    }
    if to_stderr {
        let ansi = io::stderr().is_terminal();
        layers.push(lines().with_ansi(ansi).with_writer(io::stderr).with_filter(wanted(flags)).boxed());
    }
    tracing_subscriber::registry().with(layers).try_init().map_err(io::Error::other)
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

/// Opens the file to append to it. `FileRotate` panics if it cannot open the file, so this opens it first.
fn open(path: &Path, megabytes: usize) -> io::Result<FileRotate<AppendCount>> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::OpenOptions::new().append(true).create(true).open(path)?;
    let limit = match megabytes {
        0 => ContentLimit::None,
        megabytes => ContentLimit::BytesSurpassed(megabytes.saturating_mul(1 << 20)),
    };
    Ok(FileRotate::new(path, AppendCount::new(KEPT_FILES), limit, Compression::None, None))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::{KEPT_FILES, open};

    #[test]
    fn a_full_file_is_rotated_and_the_oldest_is_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/csi-proxy.log");
        let mut file = open(&path, 1).unwrap();
        let line = vec![b'x'; 1 << 19];
        for _ in 0..20 {
            file.write_all(&line).unwrap();
            file.write_all(b"\n").unwrap();
        }
        let sizes: Vec<u64> = fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), KEPT_FILES + 1, "{sizes:?}");
        assert!(sizes.iter().all(|size| *size < 2 << 20), "{sizes:?}");
    }

    #[test]
    fn without_a_limit_one_file_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("csi-proxy.log");
        for _ in 0..2 {
            open(&path, 0).unwrap().write_all(&vec![b'x'; 1 << 20]).unwrap();
        }
        assert_eq!(fs::metadata(&path).unwrap().len(), 2 << 20);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(open(folder.path(), 1).is_err());
    }
}
