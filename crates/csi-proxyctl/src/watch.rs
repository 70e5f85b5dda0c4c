//! Output that is refreshed: `--watch`, and `top`.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anstyle::Style;
use clap::{Arg, ArgMatches};
use tokio::time::sleep;

use crate::failure::Failure;
use crate::quantity;

const DIMMED: Style = Style::new().dimmed();
/// Moves the cursor to the first line, and erases from there to the end of the screen.
const TOP: &str = "\u{1b}[H";
const ERASE_REST: &str = "\u{1b}[J";
const ERASE_LINE: &str = "\u{1b}[K";

const INTERVAL: &str = "interval";
const DEFAULT: Duration = Duration::from_secs(2);

/// Returns the flag for the time between two frames.
pub(crate) fn interval_arg() -> Arg {
    Arg::new(INTERVAL)
        .long(INTERVAL)
        .value_name("TIME")
        .value_parser(|text: &str| quantity::duration(text))
        .help(format!("Time between refreshes, such as 10s [default: {}s]", DEFAULT.as_secs()))
}

/// Returns the time between two frames.
pub(crate) fn interval(matches: &ArgMatches) -> Duration {
    matches.get_one(INTERVAL).copied().unwrap_or(DEFAULT)
}

/// Writes what `frame` returns, every `period`, until the program is killed. On a terminal, a frame replaces the last.
pub(crate) async fn watch(
    title: &str,
    period: Duration,
    mut frame: impl AsyncFnMut() -> String,
) -> Result<(), Failure> {
    let is_terminal = io::stdout().is_terminal();
    let mut out = anstream::stdout();
    if is_terminal {
        write!(out, "{TOP}{ERASE_REST}")?;
    }
    loop {
        let text = frame().await;
        if is_terminal {
            let heading = format!("{DIMMED}{title}, every {} s; Ctrl-C ends{DIMMED:#}", period.as_secs_f64());
            // Erasing line by line does not flicker.
            // A frame that is higher than the terminal would scroll, and the next one would not replace it.
            let height =
                terminal_size::terminal_size_of(io::stdout()).map_or(usize::MAX, |(_, height)| height.0.into());
            let shown: Vec<&str> = text.lines().take(height.saturating_sub(3)).collect();
            let lines = shown.join(&format!("{ERASE_LINE}\n")) + ERASE_LINE;
            write!(out, "{TOP}{heading}{ERASE_LINE}\n{ERASE_LINE}\n{lines}\n{ERASE_REST}")?;
        } else {
            write!(out, "{text}")?;
        }
        out.flush()?;
        sleep(period).await;
    }
}
