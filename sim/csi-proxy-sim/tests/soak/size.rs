//! How large a process is, and whether it stays so.

use std::fmt;
use std::time::{Duration, Instant};

/// What a process has of the system.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    /// Resident memory in KiB.
    pub(crate) memory: u64,
    /// Open files, sockets and pipes among them; on Windows threads, events and so on, too.
    pub(crate) handles: u64,
    pub(crate) threads: u64,
}

/// A process's size over time.
pub(crate) struct Samples {
    began: Instant,
    all: Vec<Size>,
}

impl Default for Samples {
    fn default() -> Self {
        Self { began: Instant::now(), all: Vec::new() }
    }
}

/// What a size is compared by, and how much more of it there may be at the end than when warm: a part, and a constant.
struct Measure {
    name: &'static str,
    of: fn(&Size) -> u64,
    percent: u64,
    constant: u64,
}

/// Memory moves with what the allocator keeps. Handles follow the clients' connections: each client has up to five at
/// work and as many that are silent, which the daemon closes after a while, so their number is moved by how busy the
/// machine is; what stays when all are gone is looked at apart. Threads come with the first work of each kind, go when
/// there is none for ten seconds, and stay below what the lanes and the runtime may have.
const MEASURES: [Measure; 3] = [
    Measure { name: "KiB resident", of: |size| size.memory, percent: 10, constant: 4096 },
    Measure { name: "handles", of: |size| size.handles, percent: 10, constant: 256 },
    Measure { name: "threads", of: |size| size.threads, percent: 0, constant: 32 },
];

impl Samples {
    pub(crate) fn took(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn take(&mut self, size: Size) {
        self.all.push(size);
    }

    /// The medians of the second quarter and of the last: one moment says little, and the first quarter is still growing.
    fn compared(&self, of: fn(&Size) -> u64) -> (u64, u64) {
        let quarter = self.all.len() / 4;
        (median(&self.all[quarter..2 * quarter], of), median(&self.all[3 * quarter..], of))
    }

    pub(crate) fn are_flat(&self) {
        for Measure { name, of, percent, constant } in MEASURES {
            let (warm, end) = self.compared(of);
            let bound = warm + warm * percent / 100 + constant;
            assert!(end <= bound, "{end} {name} at the end, {warm} when warm: more than {bound}");
        }
    }
}

fn median(sizes: &[Size], of: fn(&Size) -> u64) -> u64 {
    let mut all: Vec<_> = sizes.iter().map(of).collect();
    all.sort_unstable();
    all[all.len() / 2]
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples:", self.all.len())?;
        for Measure { name, of, .. } in MEASURES {
            let (warm, end) = self.compared(of);
            let most = self.all.iter().map(of).max().unwrap_or_default();
            write!(f, " {warm} {name} when warm, {end} at the end, {most} at most;")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Samples, Size};

    const WARM: Size = Size { memory: 50_000, handles: 300, threads: 30 };

    /// A hundred samples, of which the last quarter is so much larger.
    fn grown_by(memory: u64, handles: u64, threads: u64) -> Samples {
        let mut samples = Samples::default();
        let Size { memory: warm, handles: open, threads: busy } = WARM;
        let end = Size { memory: warm + memory, handles: open + handles, threads: busy + threads };
        (0..100).for_each(|number| samples.take(if number < 75 { WARM } else { end }));
        samples
    }

    #[test]
    fn a_moment_does_not_count() {
        let mut samples = grown_by(0, 0, 0);
        samples.take(Size { memory: 1_000_000, handles: 10_000, threads: 500 });
        samples.are_flat();
    }

    #[test]
    #[should_panic(expected = "KiB resident at the end")]
    fn memory_that_grows_is_noticed() {
        grown_by(10_000, 0, 0).are_flat();
    }

    #[test]
    #[should_panic(expected = "handles at the end")]
    fn handles_that_stay_are_noticed() {
        grown_by(0, 300, 0).are_flat();
    }

    #[test]
    #[should_panic(expected = "threads at the end")]
    fn threads_that_stay_are_noticed() {
        grown_by(0, 0, 40).are_flat();
    }
}
