//! A line on standard error while something takes long.

use std::future::Future;
use std::io::{self, IsTerminal as _, Write as _};
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, interval_at};

/// How long a call takes before the line appears.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits for `work`. After [`PATIENCE`], a line on standard error counts the seconds, if it is a terminal.
pub(crate) async fn with_progress<T>(what: &str, work: impl Future<Output = T>) -> T {
    if !io::stderr().is_terminal() {
        return work.await;
    }
    let started = Instant::now();
    let mut ticks = interval_at(started + PATIENCE, Duration::from_secs(1));
    let mut work = pin!(work);
    let mut is_shown = false;
    loop {
        tokio::select! {
            output = &mut work => {
                if is_shown {
                    show("");
                }
                return output;
            }
            _ = ticks.tick() => {
                is_shown = true;
                show(&format!("{what}: {} s", started.elapsed().as_secs()));
            }
        }
    }
}

/// Replaces the line of the cursor.
fn show(text: &str) {
    // A line that cannot be shown is no reason to fail.
    let _ = write!(anstream::stderr(), "\r\u{1b}[K{text}");
    let _ = io::stderr().flush();
}
