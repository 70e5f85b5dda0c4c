//! The tasks of developers and CI: `cargo xtask test` and others. `cargo xtask help` lists them.
//!
//! A task that tests first runs [`setup`], which installs missing programs as root or in CI.
//! Elsewhere, `setup` reports the missing programs, and the tests that need them are skipped and
//! listed.

use std::fmt;
use std::process::ExitCode;

use clap::Parser as _;

mod bench;
mod beside;
mod bless;
mod checks;
mod ci;
mod deploy;
mod differential;
mod facts;
mod fault_injection;
mod fuzz;
mod go;
mod lint;
mod mutants;
mod process;
mod release;
mod sensitivity;
mod setup;
mod site;
mod soak;
mod summary;
mod tasks;
mod test;
mod test_output;
mod test_programs;
mod verify;
mod windows;
mod wine;
mod workspace;

use summary::Summary;
use tasks::Arguments;

/// The reason why a task could not be completed.
type Error = Box<dyn std::error::Error>;

/// What this machine lacks for a task, which is then skipped.
#[derive(Debug)]
struct Missing(String);

impl std::error::Error for Missing {}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn main() -> ExitCode {
    let Arguments { task } = Arguments::parse();
    task.set_up();
    let summary = Summary::of_attempt("cargo xtask", task.run());
    let succeeded = match beside::hand_over(&summary) {
        Ok(()) => summary.print(),
        Err(error) => {
            eprintln!("error: {error}");
            false
        }
    };
    if succeeded {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
