//! How long the steps of a run take: building apart from running.

use std::fmt::Write;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A row of the table: a part of the run, or one package's tests in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) name: String,
    /// The time spent in compilers; `None` for a package, since cargo builds all packages at once.
    pub(crate) build: Option<Duration>,
    pub(crate) run: Duration,
}

/// The time that commands of this process have spent building.
static BUILDING: Mutex<Duration> = Mutex::new(Duration::ZERO);

/// Runs `command` with `run` and, if the command only builds, counts its time as build time.
pub(crate) fn record<T>(command: &mut Command, run: impl FnOnce(&mut Command) -> T) -> T {
    let builds = command.get_args().any(|word| ["build", "install", "--no-run"].iter().any(|verb| word == *verb));
    let start = Instant::now();
    let result = run(command);
    if builds {
        *BUILDING.lock().unwrap_or_else(PoisonError::into_inner) += start.elapsed();
    }
    result
}

/// Runs `work` and returns its result with the time it took, as a step named `name`.
pub(crate) fn measure<T>(name: &str, work: impl FnOnce() -> T) -> (T, Step) {
    let building = || *BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
    let (start, before) = (Instant::now(), building());
    let result = work();
    let build = building().saturating_sub(before);
    let run = start.elapsed().saturating_sub(build);
    (result, Step { name: name.into(), build: Some(build), run })
}

impl Step {
    /// Formats steps as a table with one line each. A package's line is indented below its part's.
    pub(crate) fn table(steps: &[Self]) -> String {
        let mut table = format!("{:<44}{:>9}{:>9}\n", "step", "build s", "run s");
        for Self { name, build, run } in steps {
            let indent = if build.is_some() { "" } else { "    " };
            let build = build.map_or(String::new(), seconds);
            let _infallible = writeln!(table, "{:<44}{build:>9}{:>9}", format!("{indent}{name}"), seconds(*run));
        }
        let parts = || steps.iter().filter(|step| step.build.is_some());
        let build = parts().filter_map(|step| step.build).sum();
        let run = parts().map(|step| step.run).sum();
        if parts().count() > 1 {
            let _infallible = writeln!(table, "{:<44}{:>9}{:>9}", "all", seconds(build), seconds(run));
        }
        table
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_counts_each_part_once() {
        let seconds = Duration::from_secs;
        let steps = [
            Step { name: "linux".into(), build: Some(seconds(60)), run: seconds(30) },
            Step { name: "csi-proxy".into(), build: None, run: seconds(20) },
            Step { name: "go".into(), build: Some(seconds(5)), run: seconds(1) },
        ];
        let lines: Vec<String> =
            Step::table(&steps).lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines, ["step build s run s", "linux 60.0 30.0", "csi-proxy 20.0", "go 5.0 1.0", "all 65.0 31.0"]);
    }

    #[test]
    fn only_commands_that_build_count_as_build_time() {
        let shell = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let (_, step) = measure("version", || record(Command::new(&shell).arg("--version"), Command::output));
        assert_eq!(step.build, Some(Duration::ZERO));
    }
}
