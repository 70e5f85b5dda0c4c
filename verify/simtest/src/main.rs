//! `prove`: runs the whole proof and prints what it took.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use simtest::runner::{Choice, Findings, faults, interleavings, on_all_processors, races, voyage};
use simtest::scenarios::pairs::PAIRS;
use simtest::scenarios::races;

/// Prove csi-proxy's operations: every fault at every call, every race, and long random runs
#[derive(Parser)]
#[command(name = "prove", version)]
struct Arguments {
    /// Only the cases whose names begin so; may be given again
    #[arg(long = "case")]
    cases: Vec<String>,
    /// How many long random runs to make
    #[arg(long, default_value_t = 500)]
    seeds: u64,
    /// The first of their seeds
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Show at most so many failures
    #[arg(long, default_value_t = 100)]
    show: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let begin = Instant::now();
    // Panics are failures like others, and told with them.
    std::panic::set_hook(Box::new(|_| {}));
    let findings = all(&arguments);
    for failure in findings.failures.iter().take(arguments.show) {
        println!("FAILED --case '{}'", failure.case);
        failure.broken.iter().for_each(|what| println!("    {what}"));
    }
    println!("{}", findings.report);
    println!("{:.1} s", begin.elapsed().as_secs_f64());
    println!("{} failures", findings.failures.len());
    if findings.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn all(arguments: &Arguments) -> Findings {
    let choice = Choice { cases: arguments.cases.clone(), every: None };
    let mut findings = on_all_processors(&simtest::scenarios::all(), |scenario| faults(scenario, &choice));
    findings.add(on_all_processors(&races::scenarios(), |scenario| races(scenario, &choice)));
    findings.add(on_all_processors(PAIRS, |pair| interleavings(pair, &choice)));
    let named = arguments.cases.iter().filter_map(|case| case.strip_prefix("seed ")?.parse().ok());
    let mut seeds: Vec<u64> = named.collect();
    if seeds.is_empty() {
        seeds.extend(arguments.seed..arguments.seed.saturating_add(arguments.seeds));
    }
    findings.add(on_all_processors(&seeds, |seed| voyage(*seed, &choice)));
    findings
}
