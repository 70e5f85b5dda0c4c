//! The one door for everything a developer or CI does: `cargo xtask test`.
//!
//! `cargo xtask help` lists the rest. What a task needs and does not find it installs with apt-get where it may
//! (as root, or in CI); otherwise it says what is missing and what is skipped for it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod apt;
mod ci;
mod fuzz;
mod go;
mod libtest;
mod lint;
mod mutants;
mod process;
mod prove;
mod python;
mod sensitivity;
mod soak;
mod summary;
mod test;
mod tools;
mod vhd;
mod windows;
mod wine;
mod workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Builds, tests and checks csi-proxy", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every test: here, as a Windows program, and with Go clients
    Test {
        /// Only these parts
        parts: Vec<test::Part>,
    },
    /// Check formatting, lints, documentation and dependencies, then run every test
    Ci,
    /// Check the rules of this source tree: dependency arrows, file sizes, unsafe, cfg
    Lint,
    /// Prove the storage operations: every fault at every call, every race, and long random runs
    Prove {
        /// What to hand on, such as `--seeds 100` or `--case ...`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Break one rule after the other in a copy of this tree, and see that the proof notices
    Broken,
    /// Change the operations word by word and demand that their tests notice
    Mutants(mutants::Options),
    /// Run libFuzzer on every fuzz target in turn
    Fuzz(fuzz::Options),
    /// Run the daemon under 64 clients and see that it loses nothing and stays as large as it was
    Soak(soak::Options),
    /// Build, test or lint the Windows program, from Linux with mingw and Wine or on Windows itself
    Windows {
        #[command(subcommand)]
        task: windows::Task,
    },
}

/// What a task answers: whether all is well, or why it could not be done.
type Outcome = Result<bool, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Test { parts } => test::run(&parts),
        Task::Ci => ci::run(),
        Task::Lint => lint::run(),
        Task::Prove { arguments } => prove::run(&arguments),
        Task::Broken => sensitivity::run(),
        Task::Mutants(options) => mutants::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::Windows { task } => windows::run(&task),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
