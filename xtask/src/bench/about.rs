//! What was measured on which machine, for the page.

use std::fs;
use std::process::Command;
use std::thread;

use super::Measured;
use super::results::Results;
use crate::{process, workspace};

pub(super) struct About {
    pub(super) date: String,
    pub(super) commit: String,
    pub(super) machine: String,
    pub(super) versions: String,
}

impl About {
    pub(super) fn of_this_machine(measured: &Measured) -> Result<Self, Box<dyn std::error::Error>> {
        let output_of = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            let output = process::output(command.current_dir(workspace::root()).args(arguments));
            output.ok_or_else(|| format!("{} failed", process::typed(&command)))
        };
        let (cpu, memory) = (fs::read_to_string("/proc/cpuinfo")?, fs::read_to_string("/proc/meminfo")?);
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let lock = fs::read_to_string(workspace::root().join("Cargo.lock"))?;
        let mut samples = measured.linux.iter().chain(&measured.wine).flat_map(Results::samples);
        let grpc = samples.next().map_or("", |sample| &sample.report.grpc);
        Ok(Self {
            date: output_of("date", &["-u", "+%Y-%m-%d"])?,
            commit: output_of("git", &["describe", "--always", "--dirty", "--exclude=*"])?,
            machine: format!(
                "{} processors ({}), {} GiB, Linux {}",
                thread::available_parallelism()?,
                value(&cpu, "model name").unwrap_or("unknown"),
                gibibytes(&memory).unwrap_or_default(),
                kernel.trim(),
            ),
            versions: format!(
                "{}, {}, grpc-go {grpc}, tonic {}",
                output_of("rustc", &["--version"])?,
                output_of("go", &["env", "GOVERSION"])?,
                locked(&lock, "tonic").unwrap_or("unknown"),
            ),
        })
    }
}

/// The value behind `name` and a colon.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

fn gibibytes(meminfo: &str) -> Option<u64> {
    const KIB_IN_GIB: u64 = 1 << 20;
    let kib: u64 = value(meminfo, "MemTotal")?.strip_suffix(" kB")?.parse().ok()?;
    Some((kib + KIB_IN_GIB / 2) / KIB_IN_GIB)
}

/// The version of a package in Cargo.lock.
fn locked<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let (_, rest) = lock.split_once(&format!("\nname = \"{package}\"\nversion = \""))?;
    rest.split_once('"').map(|(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::{gibibytes, locked, value};

    #[test]
    fn the_processor_is_named_as_linux_names_it() {
        assert_eq!(value("processor\t: 0\nmodel name\t: AMD EPYC\n", "model name"), Some("AMD EPYC"));
        assert_eq!(value("processor\t: 0\n", "model name"), None);
    }

    #[test]
    fn memory_is_rounded_to_gibibytes() {
        assert_eq!(gibibytes("MemTotal:       24672112 kB\nMemFree: 1 kB\n"), Some(24));
        assert_eq!(gibibytes("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn a_package_is_found_by_its_whole_name() {
        let lock = "[[package]]\nname = \"tonic-prost\"\nversion = \"1.0.0\"\n\n\
                    [[package]]\nname = \"tonic\"\nversion = \"0.14.9\"\n";
        assert_eq!(locked(lock, "tonic"), Some("0.14.9"));
        assert_eq!(locked(lock, "prost"), None);
    }
}
