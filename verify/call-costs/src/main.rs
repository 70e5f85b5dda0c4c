//! Counts the instructions of `PathExists` with callgrind, which runs this program with the number
//! of calls to make. Fails if there are more than [`MOST`].

use std::env;
use std::error::Error;

use call_costs::instructions;

/// 20 % more than were counted in November 2026. Another compiler or C library changes the count by
/// a few percent; one more pass over the headers, or one more task for each call, by more.
const MOST: usize = 58_000;

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(calls) = env::args().nth(1) {
        return instructions::make_calls(calls.parse()?);
    }
    let counted = instructions::of_path_exists()?;
    println!("PathExists: {counted} instructions, at most {MOST}");
    if counted > MOST {
        return Err("a call needs too many instructions".into());
    }
    Ok(())
}
