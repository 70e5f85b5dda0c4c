//! What Linux counts for a process: CPU time, memory and threads.

use std::fs;
use std::path::Path;

/// The counters of a process at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) cpu_us: f64,
    pub(crate) resident_mb: f64,
    pub(crate) threads: f64,
}

impl Counters {
    /// Reads the counters of a running process.
    pub(crate) fn of(process: u32) -> Result<Self, String> {
        let folder = Path::new("/proc").join(process.to_string());
        let read = |file: &str| {
            fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))
        };
        let (stat, status) = (read("stat")?, read("status")?);
        Ok(Self {
            cpu_us: cpu_us(&stat).ok_or("stat has no CPU times")?,
            resident_mb: field(&status, "VmRSS:").ok_or("status has no VmRSS")? * 1024.0 / 1e6,
            threads: field(&status, "Threads:").ok_or("status has no Threads")?,
        })
    }
}

/// Parses the CPU times in user and in system mode.
fn cpu_us(stat: &str) -> Option<f64> {
    /// A tick has 10 ms on every architecture in use.
    const TICK_US: f64 = 10_000.0;
    // The name in parentheses may contain spaces.
    let times = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
    let ticks: f64 = times
        .map(|ticks| ticks.parse::<f64>().ok())
        .sum::<Option<f64>>()?;
    Some(ticks * TICK_US)
}

fn field(status: &str, name: &str) -> Option<f64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// Returns the process id of a Wine prefix's wineserver, which does a part of the work of each
/// program.
pub(crate) fn wineserver(prefix: &Path) -> Option<u32> {
    let wanted = format!("WINEPREFIX={}", prefix.display());
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| {
        let read = |file: &str| {
            fs::read(Path::new("/proc").join(id.to_string()).join(file)).unwrap_or_default()
        };
        read("comm").starts_with(b"wineserver")
            && read("environ")
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::{cpu_us, field};

    #[test]
    fn the_counters_of_linux_are_parsed() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 500 0 0 0 25 5 0 0 20 0 4 0 100 0 0";
        assert_eq!(cpu_us(stat), Some(300_000.0));
        assert_eq!(
            field("Name:\ta\nVmRSS:\t   12800 kB\nThreads:\t3\n", "VmRSS:"),
            Some(12800.0)
        );
    }
}
