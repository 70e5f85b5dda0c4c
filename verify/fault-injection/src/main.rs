//! `fault-injection`: runs every case and prints a table of the results.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use fault_injection::runner::{
    CaseFilter, Findings, run_faults, run_in_parallel, run_pairs, run_races, run_random,
};
use fault_injection::scenarios;

/// Test csi-proxy's storage operations: every fault at every call, every race, and long random runs
#[derive(Parser)]
#[command(name = "fault-injection", version)]
struct Arguments {
    /// Run only the cases whose names begin with PREFIX; can be repeated
    #[arg(long = "case", value_name = "PREFIX")]
    cases: Vec<String>,
    /// Number of random runs
    #[arg(long, value_name = "N", default_value_t = 500)]
    seeds: u64,
    /// Seed of the first random run
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Maximum number of failures to show
    #[arg(long, value_name = "N", default_value_t = 100)]
    show: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let start = Instant::now();
    // A panic of an operation is reported as a failure of its case.
    std::panic::set_hook(Box::new(|_| {}));
    let findings = run_all(&arguments);
    for failure in findings.failures.iter().take(arguments.show) {
        println!("FAILED --case '{}'", failure.case);
        failure
            .violations
            .iter()
            .for_each(|violation| println!("    {violation}"));
    }
    println!("{}", findings.report);
    println!("{:.1} s", start.elapsed().as_secs_f64());
    println!("{} failures", findings.failures.len());
    if findings.failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run_all(arguments: &Arguments) -> Findings {
    let filter = CaseFilter {
        prefixes: arguments.cases.clone(),
        every: None,
    };
    let mut findings = run_in_parallel(&scenarios::all(), |scenario| run_faults(scenario, &filter));
    findings.add(run_in_parallel(
        &scenarios::races::scenarios(),
        |scenario| run_races(scenario, &filter),
    ));
    findings.add(run_in_parallel(scenarios::pairs::PAIRS, |pair| {
        run_pairs(pair, &filter)
    }));
    let named = arguments
        .cases
        .iter()
        .filter_map(|case| case.strip_prefix("seed ")?.parse().ok());
    let mut seeds: Vec<u64> = named.collect();
    if seeds.is_empty() {
        seeds.extend(arguments.seed..arguments.seed.saturating_add(arguments.seeds));
    }
    findings.add(run_in_parallel(&seeds, |seed| run_random(*seed, &filter)));
    findings
}
