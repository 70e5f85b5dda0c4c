//! A run of the self-test.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, io};

use facts::{Fact, NO_TIME, System, code_of};
use os::Os;

use crate::disks::Folder;
use crate::{DisksOfNode, Evidence, Machine, report};

/// The free space on drive C: in GiB that a run needs.
const FREE_SPACE: u64 = 10;
/// The argument with which the program records the disks.
pub const RECORD_DISKS: &str = "record-disks";
/// How long the recording of the disks may take.
const LONGEST_RECORDING: Duration = Duration::from_mins(1);
/// How often a file is written while another program, such as a virus scanner, has the file open.
const ATTEMPTS: u32 = 10;

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
    /// What has failed before the run.
    pub errors: Vec<String>,
}

impl Run<'_> {
    /// Runs the checks, and writes what is known after each of them. An error says why nothing has
    /// begun.
    pub fn run(&self) -> io::Result<Evidence> {
        let begun = Instant::now();
        let mut evidence = Evidence::new(&format!("{:?}", self.system), self.os);
        evidence.errors.clone_from(&self.errors);
        let folder = self.folder(&mut evidence.errors)?;
        for check in self.checks {
            evidence.add(check.id, NO_TIME);
        }
        self.save(&evidence).map_err(|error| {
            let output = self.output.display();
            io::Error::other(format!(
                "Cannot write selftest.json in {output}: {}",
                code_of(&error)
            ))
        })?;
        println!("selftest.json has the results from now on.");
        if let Some(folder) = &folder {
            folder.clean(&mut evidence.errors);
        }
        match self.record_disks() {
            Ok(disks) => evidence.disks_of_node = disks,
            Err(why) => evidence.errors.push(format!("record the disks: {why}")),
        }
        let disks = self.create_disks(folder.as_ref(), &mut evidence);
        let left = self.longest.saturating_sub(begun.elapsed());
        let run = |command: &mut _, longest| self.machine.run(command, longest);
        facts::check_each(self.checks, &disks, left, run, |id, printed| {
            evidence.add(id, printed);
            evidence.seconds = begun.elapsed().as_secs();
            // What cannot be written now is written after the next check.
            match self.save(&evidence) {
                Ok(()) => println!("{id}: {printed}"),
                Err(error) => println!("{id}: {printed} (not written: {})", code_of(&error)),
            }
        });
        if let Some(folder) = folder {
            folder.remove(&mut evidence.errors);
        }
        evidence.seconds = begun.elapsed().as_secs();
        if let Err(error) = self.save(&evidence) {
            let failed = format!("write selftest.json: {}", code_of(&error));
            evidence.errors.push(failed);
            println!(
                "selftest.json cannot be written. Its content:\n{}",
                evidence.to_json()
            );
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
        let disks = self.create_disks(folder.as_ref(), &mut evidence);
        let result = program(&disks);
        if let Some(folder) = folder {
            folder.remove(&mut evidence.errors);
        }
        for error in evidence.errors {
            println!("Failed: {error}");
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
            Ok(free) if free < FREE_SPACE << 30 => {
                folder.remove(errors);
                Err(io::Error::other(format!(
                    "Drive C: has {} GiB of free space. The self-test needs {FREE_SPACE} GiB",
                    free >> 30
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

    fn create_disks(&self, folder: Option<&Folder<'_>>, evidence: &mut Evidence) -> String {
        folder.map_or_else(String::new, |folder| folder.create_disks(self.os, evidence))
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
        self.replace("selftest.json", &evidence.to_json())?;
        self.replace("selftest.md", &report(evidence))
    }

    fn replace(&self, name: &str, content: &str) -> io::Result<()> {
        let (new, file) = (
            self.output.join(format!("{name}.new")),
            self.output.join(name),
        );
        let mut result = Ok(());
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                self.machine.sleep(Duration::from_millis(300));
            }
            result = self
                .machine
                .write(&new, content)
                .and_then(|()| self.machine.rename(&new, &file));
            if result.is_ok() {
                break;
            }
        }
        result
    }
}
