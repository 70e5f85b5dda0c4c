//! Proves on this machine, on disks of its own, what csi-proxy depends on, and writes a report
//! without names.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::{Parser, Subcommand};
use facts::{SimulatedNode, TestNode, local_node};
use selftest::{FREE_SPACE, LocalMachine, Machine as _, RECORD_DISKS, Run, recorded_disks, report};
use storage_ops::{Config, Node};

/// The exit code of a run that has not begun.
const NOT_BEGUN: u8 = 2;

#[derive(Parser)]
#[command(
    about = "Proves on this machine what csi-proxy depends on, and writes the results to \
             selftest.json and selftest.md",
    long_about = "Proves on this machine what csi-proxy depends on, on virtual disks of its own, \
                  which are files in C:\\Program Files\\csi-proxy-selftest. No other disk is \
                  changed. The results are in selftest.json and selftest.md after each check.\n\n\
                  Exit code 0: each check that ran holds. 1: a check or a step failed, or a disk \
                  is missing. 2: the run has not begun.",
    args_conflicts_with_subcommands = true
)]
struct Flags {
    /// Create the virtual disks, overwrite them and remove them
    #[arg(long)]
    create_disks: bool,
    /// Remove what a run has left behind that was ended, and do nothing else
    #[arg(long, conflicts_with = "create_disks")]
    clean: bool,
    /// Run only the checks whose ids begin with this text
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "TEXT"
    )]
    only: String,
    /// How long the checks may take. Checks that are not reached are reported as not run
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Where to write selftest.json and selftest.md
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    output: PathBuf,
    #[command(subcommand)]
    other: Option<Other>,
}

#[derive(Subcommand)]
enum Other {
    /// Run one check in this process
    #[command(hide = true)]
    One {
        /// The id of the check
        id: String,
    },
    /// Print how the disks of this machine identify themselves
    #[command(hide = true, name = RECORD_DISKS)]
    RecordDisks,
    /// Create the virtual disks, run a program that finds their numbers in its environment, and
    /// remove them
    #[command(hide = true)]
    CreateDisksFor {
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    run(Flags::parse()).unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(NOT_BEGUN)
    })
}

fn run(flags: Flags) -> io::Result<ExitCode> {
    let mut checks = selftest::checks();
    if let Some(Other::One { id }) = flags.other {
        facts::check_one(&checks, &id);
        return Ok(ExitCode::SUCCESS);
    }
    let node =
        local_node().unwrap_or_else(|| Box::new(SimulatedNode::default()) as Box<dyn TestNode>);
    if let Some(Other::RecordDisks) = flags.other {
        let operations = Node::new(node.process(), Config::default());
        let disks = recorded_disks(&operations, node.os());
        println!("{}", serde_json::to_string(&disks)?);
        return Ok(ExitCode::SUCCESS);
    }
    if !flags.create_disks && !flags.clean && flags.other.is_none() {
        return Err(io::Error::other(
            "csi-proxy-selftest creates virtual disks in C:\\Program Files\\csi-proxy-selftest, \
             overwrites and removes them, and changes no other disk. Repeat the command with \
             --create-disks, as administrator",
        ));
    }
    // Without a job object, what a killed run has started runs on: this is reported.
    let job = facts::end_children_with_this_process().err();
    checks.retain(|check| check.id.starts_with(&flags.only));
    let machine = LocalMachine::start();
    let run = Run {
        machine: &machine,
        system: node.system(),
        os: node.os(),
        checks: &checks,
        longest: Duration::from_mins(flags.minutes),
        output: flags.output,
        free_space: FREE_SPACE,
        errors: job.iter().map(ToString::to_string).collect(),
    };
    let succeeded = if flags.clean {
        let errors = run.clean()?;
        for error in &errors {
            eprintln!("Failed: {error}");
        }
        errors.is_empty()
    } else if let Some(Other::CreateDisksFor { command }) = flags.other {
        run.with_disks(|disks| {
            Command::new(&command[0])
                .args(&command[1..])
                .env(facts::DISKS, disks)
                .status()
        })?
        .success()
    } else {
        let evidence = run.run()?;
        machine.show(&format!(
            "{}\nselftest.json names no machine, disk or account. Please send the file, also if \
             checks have failed: {}/issues/new?template=windows.yml",
            report(&evidence),
            env!("CARGO_PKG_REPOSITORY")
        ));
        evidence.is_complete()
    };
    Ok(if succeeded {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
