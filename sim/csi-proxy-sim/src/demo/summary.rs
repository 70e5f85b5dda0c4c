//! The end of the demonstration: a table with a row for each driver, and the result.

use std::io;
use std::time::Duration;

use server::Unfinished;

use super::Report;
use super::screen::{Row, Screen};
use super::short_form::milliseconds;

/// Writes the summary, and returns whether every result was expected.
pub(super) fn show(
    screen: &mut Screen,
    reports: &[Report],
    unfinished: Unfinished,
    time: Duration,
) -> io::Result<bool> {
    screen.heading(
        "Summary",
        &[
            "calls: RPCs; refused: those that failed as the driver expects; median: in ms;",
            "Win32, WMI: calls to the node; checks: of responses and of the node's state",
        ],
    )?;
    screen.row(Row::Head, ["driver", "calls", "refused", "median", "Win32", "WMI", "checks", "unexpected"])?;
    for report in reports {
        screen.row(
            if report.unexpected.is_empty() { Row::Good } else { Row::Bad },
            [
                &report.driver,
                &report.call_times.len().to_string(),
                &report.refused.to_string(),
                &milliseconds(report.median_time()),
                &(report.node_calls.primitives - report.node_calls.wmi).to_string(),
                &report.node_calls.wmi.to_string(),
                &report.checks.to_string(),
                &report.unexpected.len().to_string(),
            ],
        )?;
    }
    let calls: usize = reports.iter().map(|report| report.call_times.len()).sum();
    let unexpected: usize = reports.iter().map(|report| report.unexpected.len()).sum();
    let drained = unfinished == Unfinished::default();
    if !drained {
        screen.result(false, &format!("The daemon stopped with unfinished work: {unfinished:?}"))?;
    }
    let results = if unexpected == 1 { "result" } else { "results" };
    let sentence = format!("{calls} calls, {unexpected} unexpected {results}, {:.2} s", time.as_secs_f64());
    screen.result(unexpected == 0, &sentence)?;
    Ok(unexpected == 0 && drained)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use server::Unfinished;

    use super::{Report, Screen, show};

    #[test]
    fn an_unexpected_result_fails_the_demo() {
        let mut screen = Screen::new(io::sink());
        let mut reports = [Report::default(), Report::default()];
        assert!(show(&mut screen, &reports, Unfinished::default(), Duration::ZERO).unwrap());
        reports[0].unexpected.push("the disk is offline".to_owned());
        assert!(!show(&mut screen, &reports, Unfinished::default(), Duration::ZERO).unwrap());
    }
}
