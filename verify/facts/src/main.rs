//! Checks the facts and writes the results to docs/facts.md. `cargo xtask facts` runs this program, also under Wine.

mod isolated;
mod page;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use clap::Parser;
use facts::{SimulatedNode, local_node};

use isolated::Results;

#[derive(Parser)]
#[command(about = "Checks the facts about Windows")]
enum Task {
    /// Check the facts on the simulated node, on Windows also on this machine, and write the results to docs/facts.md
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
            isolated::check_all(|id, result| println!("{id}\t{result}"))?;
            Ok(ExitCode::SUCCESS)
        }
        Task::One { id } => {
            let fact = facts::all().into_iter().find(|fact| fact.id == id).expect("the id of a fact");
            let node = local_node().expect("this machine runs Windows or Wine");
            println!("{}", page::result(&facts::check(&fact, &*node)));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Checks the facts that this machine can check. Returns success if none fails and the page is up to date.
fn write_page(check: bool, wine: Option<&Path>) -> io::Result<ExitCode> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/facts.md");
    let old = fs::read_to_string(&file)?.replace("\r\n", "\n");
    let mut page = old.clone();
    let simulated = facts::all().into_iter().map(|fact| {
        let outcome = facts::check(&fact, &SimulatedNode::new());
        (fact.id.to_owned(), page::result(&outcome))
    });
    let mut systems = vec![("simulator", simulated.collect())];
    if let Some(wine) = wine {
        systems.push(("Wine", isolated::parse(&fs::read_to_string(wine)?)));
    }
    if std::env::consts::OS == "windows" {
        let mut results = Results::new();
        isolated::check_all(|id, result| {
            results.insert(id.to_owned(), result);
        })?;
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
    Ok(if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
