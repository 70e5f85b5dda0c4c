//! `prove`: runs the whole proof and prints what it took.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use proof::scenarios::contested;
use proof::scenarios::pairs::PAIRS;
use proof::sweep::{Choice, faults, interleavings, on_all_processors, races};

/// Prove csi-proxy's operations by every fault at every call
#[derive(Parser)]
#[command(name = "prove", version)]
struct Arguments {
    /// Only the cases whose names begin so
    #[arg(long)]
    case: Option<String>,
    /// Show at most so many failures
    #[arg(long, default_value_t = 100)]
    show: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let begin = Instant::now();
    // Panics are failures like others, and told with them.
    std::panic::set_hook(Box::new(|_| {}));
    let choice = Choice { case: arguments.case, every: None };
    let mut findings = on_all_processors(&proof::scenarios::all(), |scenario| faults(scenario, &choice));
    findings.add(on_all_processors(&contested::scenarios(), |scenario| races(scenario, &choice)));
    findings.add(on_all_processors(PAIRS, |pair| interleavings(pair, &choice)));
    for failure in findings.failures.iter().take(arguments.show) {
        println!("FAILED --case '{}'", failure.case);
        failure.broken.iter().for_each(|what| println!("    {what}"));
    }
    println!("{}", findings.report);
    println!("{:.1} s", begin.elapsed().as_secs_f64());
    println!("{} failures", findings.failures.len());
    if findings.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
