//! The resources that a process uses, and whether their usage grows.

use std::fmt;
use std::time::{Duration, Instant};

/// The resources that a process uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ResourceUsage {
    /// Resident memory in KiB.
    pub(crate) memory: u64,
    /// Open files, sockets and pipes; on Windows all handles, such as those of threads and events.
    pub(crate) handles: u64,
    pub(crate) threads: u64,
}

/// The time between two samples.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);

/// A process's resource usage over time.
pub(crate) struct Samples {
    start: Instant,
    all: Vec<ResourceUsage>,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            all: Vec::new(),
        }
    }
}

/// A resource, and how much more of it may be in use at the end than after warming up: a percentage
/// plus a constant.
struct Bound {
    name: &'static str,
    of: fn(&ResourceUsage) -> u64,
    percent: u64,
    constant: u64,
}

/// The bounds of all resources.
///
/// Memory varies with what the allocator keeps. Handles follow the clients' connections: each
/// client has up to five in use and as many silent ones, which the daemon closes after a while, so
/// their number depends on how busy the machine is; whether they remain without clients is checked
/// separately. So are threads: under load, their number depends on how busy the machine is, too.
const BOUNDS: [Bound; 2] = [
    Bound {
        name: "KiB resident",
        of: |usage| usage.memory,
        percent: 10,
        constant: 4096,
    },
    Bound {
        name: "handles",
        of: |usage| usage.handles,
        percent: 10,
        constant: 256,
    },
];

impl Samples {
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn add(&mut self, usage: ResourceUsage) {
        self.all.push(usage);
    }

    /// Returns the medians of the second quarter and of the last. A single sample varies too much,
    /// and during the first quarter usage still grows.
    fn warm_and_end(&self, of: fn(&ResourceUsage) -> u64) -> (u64, u64) {
        let quarter = self.all.len() / 4;
        (
            median(&self.all[quarter..2 * quarter], of),
            median(&self.all[3 * quarter..], of),
        )
    }

    /// Returns the resources of which more is in use at the end than the bounds allow.
    pub(crate) fn growth(&self) -> Vec<String> {
        let mut growth = Vec::new();
        for Bound {
            name,
            of,
            percent,
            constant,
        } in BOUNDS
        {
            let (warm, end) = self.warm_and_end(of);
            let bound = warm + warm * percent / 100 + constant;
            if end > bound {
                growth.push(format!(
                    "{end} {name} at the end, {warm} when warm: more than {bound}"
                ));
            }
        }
        growth
    }
}

fn median(samples: &[ResourceUsage], of: fn(&ResourceUsage) -> u64) -> u64 {
    let mut all: Vec<_> = samples.iter().map(of).collect();
    all.sort_unstable();
    all[all.len() / 2]
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples:", self.all.len())?;
        for Bound { name, of, .. } in BOUNDS {
            let (warm, end) = self.warm_and_end(of);
            let maximum = self.all.iter().map(of).max().unwrap_or_default();
            write!(
                f,
                " {warm} {name} when warm, {end} at the end, {maximum} at most;"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{ResourceUsage, Samples};

    #[test]
    fn each_resource_that_grows_is_detected_and_a_single_large_sample_is_not() {
        let warm = ResourceUsage {
            memory: 50_000,
            handles: 300,
            threads: 30,
        };
        for (end, expected) in [
            (warm, None),
            (
                ResourceUsage {
                    memory: 60_000,
                    ..warm
                },
                Some("60000 KiB resident at the end, 50000 when warm"),
            ),
            (
                ResourceUsage {
                    handles: 600,
                    ..warm
                },
                Some("600 handles at the end, 300 when warm"),
            ),
        ] {
            let mut samples = Samples::default();
            (0..100).for_each(|number| samples.add(if number < 75 { warm } else { end }));
            samples.add(ResourceUsage {
                memory: 1_000_000,
                handles: 10_000,
                threads: 500,
            });
            let growth = samples.growth();
            assert_eq!(growth.len(), usize::from(expected.is_some()), "{growth:?}");
            assert!(
                expected.is_none_or(|expected| growth[0].starts_with(expected)),
                "{growth:?}"
            );
        }
    }
}
