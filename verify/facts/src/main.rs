//! Checks the facts and writes the results to docs/facts.md. `cargo xtask facts` runs this program,
//! also under Wine.

mod page;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs, io};

use clap::Parser;
use facts::{Results, SimulatedNode};

#[derive(Parser)]
#[command(about = "Checks the facts about Windows")]
enum Task {
    /// Check the facts on the simulated node, on Windows also on this machine, and write the
    /// results to docs/facts.md
    Page {
        /// Write nothing, and fail if docs/facts.md has other results
        #[arg(long)]
        check: bool,
        /// What `facts local` printed under Wine
        #[arg(long, value_name = "FILE")]
        wine: Option<PathBuf>,
    },
    /// Check the facts on this machine, which runs Windows or Wine, and print the results
    Local,
    /// Check one fact on this machine, and print the result
    #[command(hide = true)]
    One {
        /// The id of the fact
        id: String,
    },
}

fn main() -> io::Result<ExitCode> {
    match Task::parse() {
        Task::Page { check, wine } => write_page(check, wine.as_deref()),
        Task::Local => {
            check_each(|id, result| println!("{id}\t{result}"));
            Ok(ExitCode::SUCCESS)
        }
        Task::One { id } => {
            facts::check_one(&facts::all(), &id);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Checks all facts on this machine, and calls `found` with each id and result.
fn check_each(found: impl FnMut(&str, &str)) {
    let disks = env::var(facts::DISKS).unwrap_or_default();
    facts::check_each(&facts::all(), &disks, Duration::MAX, facts::run, found);
}

/// Checks the facts that this machine can check. Returns success if none fails and the page is up
/// to date.
fn write_page(check: bool, wine: Option<&Path>) -> io::Result<ExitCode> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/facts.md");
    let old = fs::read_to_string(&file)?.replace("\r\n", "\n");
    let mut page = old.clone();
    let simulated = facts::all().into_iter().map(|fact| {
        let outcome = facts::check(&fact, &SimulatedNode::default());
        (fact.id.to_owned(), outcome.to_string())
    });
    let mut systems = vec![("simulator", simulated.collect())];
    if let Some(wine) = wine {
        systems.push(("Wine", parse(&fs::read_to_string(wine)?)));
    }
    if env::consts::OS == "windows" {
        let mut results = Results::new();
        check_each(|id, result| {
            results.insert(id.to_owned(), result.to_owned());
        });
        systems.push(("Windows", results));
    }
    let mut succeeded = true;
    for (system, results) in &systems {
        succeeded &= page::print(system, results);
        // Another version of Wine can behave otherwise.
        if !check || *system == "simulator" {
            page = page::with_results(&page, system, results);
        }
    }
    if !check {
        fs::write(&file, page)?;
        println!("{} is written", file.display());
    } else if page != old {
        println!("FAILED docs/facts.md has other results: run `cargo xtask facts`");
        succeeded = false;
    }
    Ok(if succeeded {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Parses the lines of `facts local`: id, tab, result.
fn parse(lines: &str) -> Results {
    let pairs = lines
        .lines()
        .filter_map(|line| line.trim_end().split_once('\t'));
    pairs
        .map(|(id, result)| (id.to_owned(), result.to_owned()))
        .collect()
}
