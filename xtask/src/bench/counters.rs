//! What Linux counts for a process and for the machine: CPU time, context switches, threads and memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

/// The counters of a process at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// By thread: the sums would shrink when a thread ends.
    threads: BTreeMap<u32, Thread>,
    pub(super) resident_mb: f64,
    pub(super) peak_mb: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Thread {
    cpu: Duration,
    switches: f64,
}

/// What a process has used between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Usage {
    pub(super) cpu: Duration,
    /// Voluntary and involuntary.
    pub(super) switches: f64,
}

impl Counters {
    /// Reads those of a running process.
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        let process = Path::new("/proc").join(pid.to_string());
        let status = fs::read_to_string(process.join("status"))?;
        let memory = |name| field(&status, name).map(|kib| kib * 1024.0 / 1e6).ok_or_else(|| unreadable(name));
        let mut counters = Self { resident_mb: memory("VmRSS")?, peak_mb: memory("VmHWM")?, ..Self::default() };
        for thread in fs::read_dir(process.join("task"))? {
            let thread = thread?;
            let read = |file| fs::read_to_string(thread.path().join(file));
            // A thread that has ended since the directory was read has used nothing that could still be read.
            if let (Ok(id), Ok(status), Ok(schedstat)) =
                (thread.file_name().to_string_lossy().parse(), read("status"), read("schedstat"))
            {
                counters.threads.insert(id, Thread::parse(&status, &schedstat)?);
            }
        }
        Ok(counters)
    }

    pub(super) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// What the threads have used since `before`, without those that have ended.
    pub(super) fn since(&self, before: &Self) -> Usage {
        let mut usage = Usage::default();
        for (id, now) in &self.threads {
            let then = before.threads.get(id).copied().unwrap_or_default();
            usage.cpu += now.cpu.saturating_sub(then.cpu);
            usage.switches += now.switches - then.switches;
        }
        usage
    }
}

impl Thread {
    fn parse(status: &str, schedstat: &str) -> io::Result<Self> {
        let switches = |name| field(status, name).ok_or_else(|| unreadable(name));
        // In nanoseconds, where /proc/PID/stat has ticks of 10 ms.
        let cpu = schedstat.split_whitespace().next().and_then(|nanoseconds| nanoseconds.parse().ok());
        Ok(Self {
            cpu: Duration::from_nanos(cpu.ok_or_else(|| unreadable("schedstat"))?),
            switches: switches("voluntary_ctxt_switches")? + switches("nonvoluntary_ctxt_switches")?,
        })
    }
}

/// A number in a `status` file, in the unit of the file.
fn field(status: &str, name: &str) -> Option<f64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.split_whitespace().next()?.parse().ok()
}

fn unreadable(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{name} of a process cannot be read"))
}

/// How much all processors have idled since the machine was started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    read: Instant,
    idle: Duration,
    processors: u32,
}

/// CPU time of all processors between two moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Capacity {
    pub(super) busy: Duration,
    pub(super) all: Duration,
}

impl Machine {
    pub(super) fn read() -> io::Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        let idle =
            idle(&stat).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/stat cannot be read"))?;
        Ok(Self { read: Instant::now(), idle, processors: processors(&stat) })
    }

    /// The capacity since `before`, with the time in which the processors were not idle. The busy times in /proc/stat
    /// are not used: they are sampled at each tick and miss most threads that sleep and wake within one, while idle
    /// time is measured.
    pub(super) fn since(&self, before: &Self) -> Capacity {
        let all = (self.read - before.read) * self.processors;
        Capacity { busy: all.saturating_sub(self.idle.saturating_sub(before.idle)), all }
    }
}

/// The time in which the processors were idle or only waited for a disk.
fn idle(stat: &str) -> Option<Duration> {
    /// `USER_HZ` is 100 on every architecture in use.
    const TICK: Duration = Duration::from_millis(10);
    // user nice system idle iowait ...
    let mut ticks = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().skip(3);
    let mut next = || ticks.next()?.parse::<u32>().ok();
    Some(TICK * (next()? + next()?))
}

fn processors(stat: &str) -> u32 {
    // The first line is the sum.
    stat.lines().skip(1).take_while(|line| line.starts_with("cpu")).fold(0, |count, _| count + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::{Duration, Instant};

    use super::{Capacity, Counters, Machine, Thread, Usage, field, idle, processors};

    const STATUS: &str = "Name:\tcsi-proxy\nVmHWM:\t   13312 kB\nVmRSS:\t   12800 kB\nThreads:\t3\n\
                          voluntary_ctxt_switches:\t27\nnonvoluntary_ctxt_switches:\t4\n";

    fn counters(threads: &[(u32, u64, f64)]) -> Counters {
        let thread = |(id, ms, switches): &_| (*id, Thread { cpu: Duration::from_millis(*ms), switches: *switches });
        Counters { threads: threads.iter().map(thread).collect::<BTreeMap<_, _>>(), ..Counters::default() }
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        assert_eq!(field(STATUS, "VmRSS"), Some(12800.0));
        assert_eq!(field(STATUS, "voluntary_ctxt_switches"), Some(27.0));
        assert_eq!(field(STATUS, "Vm"), None);
    }

    #[test]
    fn a_thread_has_both_kinds_of_switches_and_nanoseconds() {
        let thread = Thread::parse(STATUS, "3859639 1232466 27\n").expect("as Linux writes it");
        assert_eq!(thread, Thread { cpu: Duration::from_nanos(3_859_639), switches: 31.0 });
        assert!(Thread::parse(STATUS, "\n").is_err());
        assert!(Thread::parse("Name:\tcsi-proxy\n", "1 2 3\n").is_err());
    }

    #[test]
    fn new_threads_are_counted_and_ended_threads_do_not_reduce_the_usage() {
        let before = counters(&[(1, 100, 10.0), (2, 5000, 900.0)]);
        let after = counters(&[(1, 150, 14.0), (3, 7, 2.0)]);
        assert_eq!(after.since(&before), Usage { cpu: Duration::from_millis(57), switches: 6.0 });
        assert_eq!(after.threads(), 2);
    }

    #[test]
    fn waiting_for_a_disk_counts_as_idle() {
        let stat = "cpu  10 20 30 400 50 1 2 3 4 5\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 1 2\n";
        assert_eq!(idle(stat), Some(Duration::from_millis(4500)));
        assert_eq!(processors(stat), 2);
        assert_eq!(idle("intr 1 2 3\n"), None);
        assert_eq!(idle("cpu  1 2 3 4\n"), None);
    }

    #[test]
    fn processors_are_busy_when_they_are_not_idle() {
        let read = Instant::now();
        let before = Machine { read, idle: Duration::from_secs(70), processors: 2 };
        let after = Machine { read: read + Duration::from_secs(1), idle: Duration::from_millis(70_500), processors: 2 };
        let expected = Capacity { busy: Duration::from_millis(1500), all: Duration::from_secs(2) };
        assert_eq!(after.since(&before), expected);
    }

    #[test]
    fn the_counters_of_this_process_can_be_read_on_linux() {
        let Ok(counters) = Counters::of(std::process::id()) else {
            assert_ne!(std::env::consts::OS, "linux");
            return;
        };
        assert!(counters.threads() > 0 && counters.resident_mb > 0.0);
        assert!(counters.peak_mb >= counters.resident_mb);
        assert_eq!(counters.since(&counters), Usage::default());
    }
}
