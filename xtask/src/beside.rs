//! A task in a process of its own, which runs beside other steps: tests under Wine wait much.
//!
//! Its output goes to a file and is printed at its end, so that it does not mix with other output.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, io};

use crate::process::KillOnDrop;
use crate::summary::Summary;
use crate::{Error, workspace};

/// The variable that names the file for the summary of a task.
const SUMMARY: &str = "CSI_PROXY_XTASK_SUMMARY";

/// A task that runs.
pub(crate) struct Beside {
    child: KillOnDrop,
    log: PathBuf,
}

impl Beside {
    /// Starts this program with the words of a task.
    pub(crate) fn start(words: &[&str]) -> Result<Self, Error> {
        let log = workspace::target().join(format!("beside-{}.log", words[0]));
        let _ = fs::remove_file(log.with_extension("json"));
        let output = File::create(&log)?;
        let mut command = Command::new(env::current_exe()?);
        command
            .args(words)
            .env(SUMMARY, log.with_extension("json"))
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        println!("$ cargo xtask {} > {} &", words.join(" "), log.display());
        Ok(Self {
            child: KillOnDrop(command.spawn()?),
            log,
        })
    }

    /// Waits for the end of the task, prints its output, and returns its summary.
    pub(crate) fn end(mut self) -> Result<Summary, Error> {
        let status = self.child.0.wait()?;
        io::copy(&mut File::open(&self.log)?, &mut io::stdout())?;
        let summary = fs::read_to_string(self.log.with_extension("json")).map_err(|_| {
            format!(
                "the task beside ended with {status} and without a summary: see {}",
                self.log.display()
            )
        })?;
        Ok(serde_json::from_str(&summary)?)
    }
}

/// Hands the summary to the process that has started this one with [`Beside::start`], if any.
pub(crate) fn hand_over(summary: &Summary) -> Result<(), Error> {
    if let Some(file) = env::var_os(SUMMARY) {
        fs::write(file, serde_json::to_string(summary)?)?;
    }
    Ok(())
}
