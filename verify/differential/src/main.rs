//! Compares csi-proxy with the csi-proxy written in Go, by random calls of the file system RPCs.
//!
//! `cargo xtask differential` builds the programs, prepares Wine and runs this program. Each
//! program has a Wine prefix of its own, because their pipes have the same names. Each call goes to
//! both programs. Then their results and directory trees are compared. A difference must match one
//! of the [`rules`], which docs/design.md lists under the same keys. After a difference between the
//! trees, both programs get a new tree.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Parser;

mod call;
mod comparison;
mod program;
mod random;
mod rules;
mod spelling;
mod tree;

use call::Generator;
use comparison::Comparison;
use program::Program;

/// How many calls are enough to need every rule.
const CALLS_FOR_ALL_RULES: usize = 20_000;

#[derive(Parser)]
#[command(
    name = "differential",
    about = "Compares csi-proxy with the csi-proxy written in Go, by random calls under Wine"
)]
struct Arguments {
    /// How many calls to make
    #[arg(long, default_value_t = CALLS_FOR_ALL_RULES)]
    calls: usize,
    /// The seed of an earlier run, to repeat its calls
    #[arg(long)]
    seed: Option<u64>,
    /// Wine's loader
    #[arg(long)]
    wine: PathBuf,
    /// The client, verify/go-client built for Windows
    #[arg(long)]
    client: PathBuf,
    /// The Wine prefix of the Go program
    #[arg(long)]
    go_prefix: PathBuf,
    /// The Go program
    #[arg(long)]
    go_program: PathBuf,
    /// The Wine prefix of csi-proxy
    #[arg(long)]
    own_prefix: PathBuf,
    /// csi-proxy.exe
    #[arg(long)]
    own_program: PathBuf,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = Arguments::parse();
    let Arguments {
        calls,
        wine,
        client,
        ..
    } = &arguments;
    let seed = arguments.seed.unwrap_or_else(seed_of_now);
    println!("seed {seed}");
    let mut comparison = Comparison {
        go: Program::start(wine, &arguments.go_prefix, &arguments.go_program, client)?,
        own: Program::start(wine, &arguments.own_prefix, &arguments.own_program, client)?,
        generator: Generator::new(seed),
        counts: rules::Counts::default(),
    };
    comparison.run(*calls)?;
    Ok(comparison.report(*calls, seed))
}

fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| now.as_secs() ^ u64::from(now.subsec_nanos()))
}
