//! A run of the self-test.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, io, path};

use facts::{Fact, NO_TIME, System, code_of};
use os::Os;

use crate::disks::Folder;
use crate::{DisksOfNode, Evidence, Machine, report};

/// The free space on drive C: in GiB that a run needs.
pub const FREE_SPACE: u64 = 10;
/// The argument with which the program records the disks.
pub const RECORD_DISKS: &str = "record-disks";
/// How long the recording of the disks may take, whose query of WMI may take a minute.
const LONGEST_RECORDING: Duration = Duration::from_mins(3);

/// What a run does.
pub struct Run<'a> {
    /// The machine.
    pub machine: &'a dyn Machine,
    /// What the machine runs.
    pub system: System,
    /// The primitives.
    pub os: &'a dyn Os,
    /// The checks in their order.
    pub checks: &'a [Fact],
    /// How long the checks may take.
    pub longest: Duration,
    /// Where selftest.json and selftest.md are written.
    pub output: PathBuf,
    /// The free space on drive C: in GiB without which the run does not begin.
    pub free_space: u64,
    /// What has failed before the run.
    pub errors: Vec<String>,
}

impl Run<'_> {
    /// Runs the checks, and writes what is known after each of them. An error says why nothing has
    /// begun.
    pub fn run(&self) -> io::Result<Evidence> {
        if self.checks.is_empty() {
            return Err(io::Error::other("No check has an id that begins so"));
        }
        let begun = Instant::now();
        let end = begun + self.longest;
        let mut evidence = Evidence::new(&format!("{:?}", self.system), self.os);
        evidence.errors.clone_from(&self.errors);
        let folder = self.folder(&mut evidence.errors)?;
        for check in self.checks {
            evidence.add(check.id, NO_TIME);
        }
        let file = self.output.join("selftest.json");
        let previous = self.output.join("selftest.previous.json");
        let file_name = path::absolute(&file).unwrap_or(file.clone());
        // There may be none.
        let _ = self.machine.rename(&file, &previous);
        let file = file_name.display();
        if let Err(error) = self.save(&evidence) {
            if let Some(folder) = folder {
                folder.remove(&mut evidence.errors);
            }
            return Err(io::Error::other(format!("Cannot write {file}: {error}")));
        }
        self.machine
            .show(&format!("{file} has the results from now on."));
        if let Some(folder) = &folder {
            folder.clean(&mut evidence.errors);
        }
        match self.record_disks() {
            Ok(disks) => evidence.disks_of_node = disks,
            Err(why) => evidence.errors.push(format!("record the disks: {why}")),
        }
        let disks = self.create_disks(folder.as_ref(), end, &mut evidence);
        let left = end.saturating_duration_since(Instant::now());
        let run = |command: &mut _, longest| self.machine.run(command, longest);
        facts::check_each(self.checks, &disks, left, run, |id, printed| {
            evidence.add(id, printed);
            evidence.seconds = begun.elapsed().as_secs();
            // What cannot be written now is written after the next check.
            let note = match self.save(&evidence) {
                Ok(()) => String::new(),
                Err(error) => format!(" (not written: {error})"),
            };
            self.machine.show(&format!("{id}: {printed}{note}"));
        });
        if let Some(folder) = folder {
            folder.remove(&mut evidence.errors);
        }
        evidence.seconds = begun.elapsed().as_secs();
        if let Err(error) = self.save(&evidence) {
            let failed = format!("write selftest.json: {}", code_of(&error));
            evidence.errors.push(failed);
            let content = evidence.to_json();
            self.machine
                .show(&format!("Cannot write {file}. Its content:\n{content}"));
        }
        Ok(evidence)
    }

    /// Creates the disks for a program that finds them in its environment, and removes them.
    pub fn with_disks<T>(&self, program: impl FnOnce(&str) -> io::Result<T>) -> io::Result<T> {
        let mut evidence = Evidence::default();
        let folder = self.folder(&mut evidence.errors)?;
        if let Some(folder) = &folder {
            folder.clean(&mut evidence.errors);
        }
        let end = Instant::now() + self.longest;
        let disks = self.create_disks(folder.as_ref(), end, &mut evidence);
        let result = program(&disks);
        if let Some(folder) = folder {
            folder.remove(&mut evidence.errors);
        }
        for error in evidence.errors {
            self.machine.show(&format!("Failed: {error}"));
        }
        result
    }

    /// Removes what an earlier run has left behind, and returns what cannot be removed.
    pub fn clean(&self) -> io::Result<Vec<String>> {
        let mut errors = Vec::new();
        if self.system == System::Windows {
            Folder::open(self.machine)?.remove(&mut errors);
        }
        Ok(errors)
    }

    /// Returns the folder for disks. There is none for Wine, which has no disks, for a simulated
    /// node, which brings its own, and after a failure, which is added to the errors.
    fn folder(&self, errors: &mut Vec<String>) -> io::Result<Option<Folder<'_>>> {
        if self.system != System::Windows {
            return Ok(None);
        }
        let folder = match Folder::open(self.machine) {
            Ok(folder) => folder,
            Err(error) if Folder::REFUSALS.contains(&error.kind()) => return Err(error),
            Err(error) => {
                errors.push(error.to_string());
                return Ok(None);
            }
        };
        match facts::free_space(self.os) {
            Ok(free) if free < self.free_space << 30 => {
                folder.remove(errors);
                Err(io::Error::other(format!(
                    "Drive C: has {} GiB of free space. The self-test needs {} GiB",
                    free >> 30,
                    self.free_space
                )))
            }
            Ok(_) => Ok(Some(folder)),
            Err(code) => {
                errors.push(format!("read the free space of drive C: {code}"));
                folder.remove(errors);
                Ok(None)
            }
        }
    }

    fn create_disks(
        &self,
        folder: Option<&Folder<'_>>,
        end: Instant,
        evidence: &mut Evidence,
    ) -> String {
        folder.map_or_else(String::new, |folder| {
            folder.create_disks(self.os, end, evidence)
        })
    }

    /// Records the disks of the machine in a process of its own, which may hang.
    fn record_disks(&self) -> Result<DisksOfNode, String> {
        let ended = env::current_exe().and_then(|program| {
            let mut record = Command::new(program);
            self.machine
                .run(record.arg(RECORD_DISKS), LONGEST_RECORDING)
        });
        let ended = ended.map_err(|error| code_of(&error))?;
        match ended.failure {
            Some(failure) => Err(failure),
            None => serde_json::from_str(&ended.printed).map_err(|_| "no valid answer".to_owned()),
        }
    }

    /// Writes new files and renames them, so that a file is complete whenever the machine stops.
    fn save(&self, evidence: &Evidence) -> io::Result<()> {
        let json = evidence.to_json();
        // A second time, since nothing may come after this.
        let saved = self
            .replace("selftest.json", &json)
            .or_else(|_| self.replace("selftest.json", &json));
        // The page can be made of selftest.json.
        let _ = self.replace("selftest.md", &report(evidence));
        saved
    }

    fn replace(&self, name: &str, content: &str) -> io::Result<()> {
        let new = self.output.join(format!("{name}.new"));
        self.machine.write(&new, content)?;
        self.machine.rename(&new, &self.output.join(name))
    }
}
