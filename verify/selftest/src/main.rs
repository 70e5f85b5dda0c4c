//! Proves on this machine, on disks of its own, what csi-proxy depends on, and writes a report
//! without names.

mod disks;
mod vhd;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{fs, io, process};

use clap::{Parser, Subcommand};
use facts::{SimulatedNode, System, TestNode, local_node};
use selftest::{ACCEPTANCE, Evidence, report};

use disks::Disks;

#[derive(Parser)]
#[command(
    about = "Proves on this machine what csi-proxy depends on",
    args_conflicts_with_subcommands = true
)]
struct Flags {
    /// Create virtual disks in C:\Program Files\csi-proxy-selftest, overwrite them and remove them
    #[arg(long)]
    create_disks: bool,
    /// Run only the checks whose ids begin with this text
    #[arg(long, default_value = "", value_name = "TEXT")]
    only: String,
    /// How long the checks may take
    #[arg(long, default_value_t = 9)]
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
    /// Create the virtual disks, run a program that finds their numbers in its environment, and
    /// remove them
    #[command(hide = true)]
    CreateDisksFor {
        /// The program and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
}

fn main() -> io::Result<ExitCode> {
    let flags = Flags::parse();
    // Each run begins with other facts, so that the last ones are also checked on a slow machine.
    let mut facts = facts::all();
    let first = usize::try_from(process::id()).expect("an id") % facts.len();
    facts.rotate_left(first);
    let mut checks = [&ACCEPTANCE[..], &facts].concat();
    if let Some(Other::One { id }) = flags.other {
        facts::check_one(&checks, &id)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !flags.create_disks && flags.other.is_none() {
        eprintln!(
            "csi-proxy-selftest creates virtual disks, overwrites and removes them, mounts volumes \
             in new folders C:\\csi-proxy-facts-*, and changes no other disk. Repeat the command \
             with --create-disks, as administrator"
        );
        return Ok(ExitCode::from(2));
    }
    facts::end_children_with_this_process()?;
    checks.retain(|check| check.id.starts_with(&flags.only));
    let begun = Instant::now();
    let node =
        local_node().unwrap_or_else(|| Box::new(SimulatedNode::default()) as Box<dyn TestNode>);
    let mut evidence = Evidence::new(&format!("{:?}", node.system()), node.os());
    // Wine has no disks, and a simulated node brings its own.
    let disks = if node.system() == System::Windows {
        Disks::create(node.os())?
    } else {
        Disks::none()
    };
    if let Some(Other::CreateDisksFor { command }) = flags.other {
        let status = Command::new(&command[0])
            .args(&command[1..])
            .env(facts::DISKS, &disks.variable)
            .status()?;
        return Ok(if status.success() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    let left = Duration::from_mins(flags.minutes).saturating_sub(begun.elapsed());
    facts::check_each(
        &checks,
        &disks.variable,
        &disks.folder,
        left,
        |id, printed| {
            println!("{id}: {printed}");
            evidence.add(id, printed);
        },
    )?;
    drop(disks);
    evidence.seconds = begun.elapsed().as_secs();
    fs::write(
        flags.output.join("selftest.json"),
        serde_json::to_string_pretty(&evidence)? + "\n",
    )?;
    fs::write(flags.output.join("selftest.md"), report(&evidence))?;
    println!(
        "{}\nselftest.json names no machine, disk or account. Please attach it to an issue.",
        report(&evidence)
    );
    Ok(if evidence.fails.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
