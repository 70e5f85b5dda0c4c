//! Counts the instructions of calls with callgrind, and compares them with `docs/call-costs.md`.

use std::error::Error;
use std::fs;

use call_costs::call::Call;
use call_costs::{instructions, table};
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(version, about = "Counts what a call costs")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Count the instructions of all calls and compare them with docs/call-costs.md
    Instructions {
        /// Write the counts to the page
        #[arg(long)]
        bless: bool,
    },
    /// Make calls, for callgrind
    Run {
        /// The name of the call in the page
        call: String,
        /// How many
        count: usize,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    match Arguments::parse().command {
        Command::Instructions { bless } => count_instructions(bless),
        Command::Run { call, count } => instructions::run(&named(&call)?, count),
    }
}

fn named(name: &str) -> Result<Call, Box<dyn Error>> {
    Ok(Call::all()?
        .into_iter()
        .find(|call| call.name == name)
        .ok_or("no such call")?)
}

fn count_instructions(bless: bool) -> Result<(), Box<dyn Error>> {
    let page = table::page()?;
    if let Some(why) = table::why_instructions_incomparable(&page) {
        if bless {
            return Err(
                format!("{why}; write the versions of this machine into the page first").into(),
            );
        }
        println!("skipped: the instructions of calls: {why}");
        println!("0 passed, 0 failed, 1 skipped");
        return Ok(());
    }
    let mut rows = Vec::new();
    for call in Call::all()? {
        let row = instructions::of(&call)?;
        println!("{}: {:.0} instructions", call.name, row.1[0]);
        rows.push(row);
    }
    if bless {
        return Ok(fs::write(
            table::file(),
            table::INSTRUCTIONS.replaced(&page, &rows)?,
        )?);
    }
    let differences = table::INSTRUCTIONS.differences(&page, &rows)?;
    for difference in &differences {
        println!("FAILED {difference}");
    }
    println!(
        "{} passed, {} failed, 0 skipped",
        rows.len() - differences.len(),
        differences.len()
    );
    if differences.is_empty() {
        return Ok(());
    }
    Err(
        "renew docs/call-costs.md with `cargo run --release -p csi-proxy-call-costs -- \
         instructions --bless`"
            .into(),
    )
}
