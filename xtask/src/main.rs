//! The tasks of developers and CI: `cargo xtask test` and others.
//!
//! `cargo xtask help` lists them. A task installs missing programs with apt-get if it runs as root or in CI. Otherwise
//! it reports what is missing, and lists the tests that were skipped for that reason.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod apt;
mod bench;
mod call_costs;
mod checks;
mod ci;
mod docs;
mod durations;
mod facts;
mod fuzz;
mod go;
mod imports;
mod libtest;
mod lint;
mod mutants;
mod parity;
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

/// The reason why a task could not be completed.
type Error = Box<dyn std::error::Error>;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Builds, tests and checks csi-proxy", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all tests: on this machine, as Windows programs, and with Go clients
    Test(test::Options),
    /// Check format, lints, documentation and dependencies, then run all tests
    Ci,
    /// Check the rules of this source tree: dependencies between packages, file sizes, unsafe code, cfg, words
    Lint,
    /// Make the documentation as a site with mdBook, in target/site/book
    Docs(docs::Options),
    /// Prove the storage operations: every fault at every call, every race, and long random runs
    Prove(prove::Options),
    /// Break one rule at a time in a copy of this tree: the simulation tests must detect each one
    Sensitivity,
    /// Make one small change at a time to the storage operations with cargo-mutants: the tests must detect each one
    Mutants(mutants::Options),
    /// Check the facts about Windows on the simulated node and under Wine or on Windows, and write docs/facts.md
    Facts(facts::Options),
    /// Compare the file system RPCs with those of the csi-proxy written in Go, by random calls under Wine
    Parity(parity::Options),
    /// Run every fuzz target in turn with libFuzzer
    Fuzz(fuzz::Options),
    /// Run the server under the load of 64 clients: no call may be lost, and resource usage must not grow
    Soak(soak::Options),
    /// Measure the speed beside minimal servers and, under Wine, the Go program, and write docs/performance.md
    Bench(bench::Options),
    /// Build, test or lint the Windows programs, on Linux with mingw and Wine or on Windows itself
    #[command(subcommand)]
    Windows(windows::Task),
}

fn main() -> ExitCode {
    let succeeded = match Arguments::parse().task {
        Task::Test(options) => test::task(&options).map(|summary| summary.print()),
        Task::Ci => Ok(ci::run().print()),
        Task::Lint => lint::run(),
        Task::Docs(options) => docs::run(&options),
        Task::Prove(options) => prove::run(&options),
        Task::Sensitivity => sensitivity::run().map(|summary| summary.print()),
        Task::Mutants(options) => mutants::run(&options),
        Task::Facts(options) => facts::task(&options).map(|summary| summary.print()),
        Task::Parity(options) => parity::task(&options).map(|summary| summary.print()),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Windows(task) => windows::run(&task),
    };
    let succeeded = succeeded.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        false
    });
    if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
