//! The command line: every task with its options.

use clap::{Parser, Subcommand};

use crate::summary::Summary;
use crate::{
    Error, bench, bless, checks, ci, differential, facts, fault_injection, fuzz, lint, mutants,
    release, sensitivity, setup, site, soak, test, verify, windows, wine,
};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Builds, tests and checks csi-proxy",
    version
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Subcommand)]
pub(crate) enum Task {
    /// Run all tests: on this machine, as Windows programs, and with Go clients
    Test(test::Options),
    /// Run what a change must pass: checks of format, lints, docs and dependencies, and all tests
    Ci,
    /// Run some of the checks of `ci` that are not tests, such as `clippy` or 'shipped programs'
    Check(checks::Options),
    /// Renew every generated file: lists of names, tables of flags and metrics, collected texts
    Bless,
    /// Run the deep checks: advisories, site, fault-injection, executor model, node plugins,
    /// differential, sensitivity, Windows tests in German, instructions of a call, soak, fuzz,
    /// bench, mutants. Takes hours
    Verify,
    /// Make the files of a release in dist/release, from this checkout, without Docker and secrets
    Release(release::Options),
    /// Check the rules of this source tree: dependencies between packages, file sizes, unsafe code,
    /// cfg, names in docs
    Lint,
    /// Make the documentation as a site with mdBook, in target/site/book
    Site,
    /// Test the storage operations: every fault at every call, every race, and long random runs
    FaultInjection(fault_injection::Options),
    /// Apply patches that each break one rule to a copy of this tree: a test must detect each patch
    Sensitivity,
    /// Change single expressions of the storage operations with cargo-mutants: the tests must
    /// detect each change
    Mutants(mutants::Options),
    /// Check the facts about Windows on the simulated node and under Wine or on Windows, and write
    /// the results to docs/facts.md
    Facts(facts::Options),
    /// Compare the file system RPCs with those of the csi-proxy written in Go, by random calls
    /// under Wine
    Differential(differential::Options),
    /// Run every fuzz target in turn with libFuzzer
    Fuzz(fuzz::Options),
    /// Run the server under the load of 64 clients: no call may be lost, and resource usage must
    /// not grow
    Soak(soak::Options),
    /// Race the server against grpc-go, tonic and, under Wine, the Go program, and write the table
    /// of docs/performance.md
    Bench(bench::Options),
    /// Build, test or lint the Windows programs, on Linux with mingw and Wine or on Windows itself
    #[command(subcommand)]
    Windows(windows::Task),
}

impl Task {
    /// Installs what the task needs besides the compiler. Some tools that only one task needs are
    /// installed by that task.
    pub(crate) fn set_up(&self) {
        match self {
            Self::Test(options) => {
                setup::for_tests();
                test::set_up(options);
            }
            Self::Ci | Self::Verify => {
                setup::for_tests();
                test::set_up(&test::Options::default());
            }
            Self::Facts(_)
            | Self::Differential(_)
            | Self::Soak(_)
            | Self::Bench(_)
            | Self::Windows(_) => {
                setup::for_windows_programs(wine::missing_packages());
            }
            Self::Release(_) => setup::for_releases(),
            Self::Lint
            | Self::Bless
            | Self::Check(_)
            | Self::Site
            | Self::FaultInjection(_)
            | Self::Sensitivity
            | Self::Mutants(_)
            | Self::Fuzz(_) => {}
        }
    }

    pub(crate) fn run(&self) -> Result<Summary, Error> {
        match self {
            Self::Test(options) => Ok(test::task(options)),
            Self::Ci => ci::run(),
            Self::Bless => bless::run(),
            Self::Check(options) => Ok(checks::task(options)),
            Self::Verify => Ok(verify::run()),
            Self::Release(options) => release::run(options),
            Self::Lint => Ok(Summary::of_result("lint", lint::run())),
            Self::Site => Ok(Summary::of_result("site", site::run())),
            Self::FaultInjection(options) => Ok(fault_injection::run(options)),
            Self::Sensitivity => Ok(sensitivity::run()),
            Self::Mutants(options) => mutants::run(options),
            Self::Facts(options) => facts::task(options),
            Self::Differential(options) => differential::run(options),
            Self::Fuzz(options) => fuzz::run(options),
            Self::Soak(options) => soak::run(options),
            Self::Bench(options) => bench::run(options),
            Self::Windows(task) => windows::run(task),
        }
    }
}
