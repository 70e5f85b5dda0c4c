//! The commit and the machine: whether figures may be published, and on what they were measured.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The largest share of the processors' time that an idle machine uses.
const IDLE: f64 = 0.05;

/// Checks that the tree is that of a commit and that the machine is idle. The error states which is
/// missing.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    if !output(git(root).args(["status", "--porcelain"]))?.is_empty() {
        return Err("the tree differs from its commit".to_owned());
    }
    let before = processor_times()?;
    thread::sleep(Duration::from_secs(5));
    let after = processor_times()?;
    let busy = 1.0 - (after.0 - before.0) / (after.1 - before.1);
    if busy > IDLE {
        return Err(format!(
            "the machine is not idle: its processors are used to {:.0} %",
            100.0 * busy
        ));
    }
    Ok(())
}

/// Returns a sentence about the commit, the machine and the method.
pub(crate) fn sentence(root: &Path, wine: Option<&Path>, method: &str) -> Result<String, String> {
    let commit = output(git(root).args(["rev-parse", "--short", "HEAD"]))?;
    let system =
        fs::read_to_string("/proc/sys/kernel/osrelease").map_err(|error| error.to_string())?;
    let processors = fs::read_to_string("/proc/cpuinfo").map_err(|error| error.to_string())?;
    let mut models = processors
        .lines()
        .filter(|line| line.starts_with("model name"))
        .filter_map(|line| line.split(": ").nth(1));
    let (model, others) = (
        models.next().unwrap_or("unknown").to_owned(),
        models.count(),
    );
    let wine = match wine {
        Some(wine) => format!(", {}", output(Command::new(wine).arg("--version"))?),
        None => String::new(),
    };
    let (count, system) = (others + 1, system.trim());
    Ok(format!(
        "Measured at commit {commit} on Linux {system}{wine}, processors {count} × {model}, in \
         {method}."
    ))
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*", "-C"]).arg(root);
    git
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{} failed", command.get_program().display()))
    }
}

/// Returns the idle time of all processors and their whole time, in ticks.
fn processor_times() -> Result<(f64, f64), String> {
    let stat = fs::read_to_string("/proc/stat").map_err(|error| error.to_string())?;
    parse(&stat).ok_or_else(|| "/proc/stat has no times".to_owned())
}

fn parse(stat: &str) -> Option<(f64, f64)> {
    let fields = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace();
    let times = fields
        .map(|field| field.parse().ok())
        .collect::<Option<Vec<f64>>>()?;
    // User, nice, system, idle, and the wait for disks.
    Some((times.get(3)? + times.get(4)?, times.iter().sum()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_idle_time_is_a_part_of_the_whole_time() {
        assert_eq!(
            super::parse("cpu  10 1 5 80 4 0 0 0 0 0\ncpu0 1 1 1 1 1"),
            Some((84.0, 100.0))
        );
        assert_eq!(super::parse("intr 1"), None);
    }
}
