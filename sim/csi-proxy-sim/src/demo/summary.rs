//! What is shown at the end: a line a driver, and whether all is as it should be.

use std::error::Error;
use std::time::Duration;

use server::Unfinished;

use super::Played;
use super::screen::{Screen, milliseconds};

/// Shows it, and says whether all is as it should be.
pub(super) fn show(
    screen: &mut Screen,
    played: &[Played],
    unfinished: Unfinished,
    time: Duration,
) -> Result<bool, Box<dyn Error>> {
    screen
        .heading("In short", "calls, those refused as the driver expects, and what they cost in calls to the node")?;
    let heads = ["driver", "calls", "refused", "median", "native", "WMI", "checks", "wrong"];
    screen.head(&heads)?;
    for Played { name, tally, cost } in played {
        let numbers = [
            (*name).to_owned(),
            tally.times.len().to_string(),
            tally.refused.to_string(),
            milliseconds(tally.median()),
            (cost.primitives - cost.wmi).to_string(),
            cost.wmi.to_string(),
            tally.held.to_string(),
            tally.differences.len().to_string(),
        ];
        screen.row(&numbers, tally.differences.is_empty())?;
    }
    let wrong: usize = played.iter().map(|played| played.tally.differences.len()).sum();
    let calls: usize = played.iter().map(|played| played.tally.times.len()).sum();
    let drained = unfinished == Unfinished::default();
    if !drained {
        screen.verdict(false, &format!("The daemon did not come to rest: {unfinished:?}."))?;
    }
    let took = format!("{calls} calls, {:.2} s", time.as_secs_f64());
    let sentence = match wrong {
        0 => format!("Every state of the node was as it should be, at every step and at the end ({took})."),
        _ => format!("{wrong} states of the node were not as they should be ({took})."),
    };
    screen.verdict(wrong == 0, &sentence)?;
    Ok(wrong == 0 && drained)
}
