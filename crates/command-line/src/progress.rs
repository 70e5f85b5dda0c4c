//! A line on standard error while something takes long.

use std::future::Future;
use std::io::{self, IsTerminal as _, Write as _};
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, interval_at};

/// How long a call takes before the line appears.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits for `work`. After two seconds, a line on standard error counts the seconds, if it is a
/// terminal.
pub async fn with_progress<T>(what: &str, work: impl Future<Output = T>) -> T {
    if io::stderr().is_terminal() {
        counted(what, work, show).await
    } else {
        work.await
    }
}

/// Waits for `work`. After two seconds, shows a line each second, and an empty one at the end.
async fn counted<T>(what: &str, work: impl Future<Output = T>, mut show: impl FnMut(&str)) -> T {
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

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    async fn shown_for(milliseconds: u64) -> Vec<String> {
        let mut shown = Vec::new();
        let work = async {
            sleep(Duration::from_millis(milliseconds)).await;
            7
        };
        assert_eq!(
            counted("Rescan", work, |line| shown.push(line.to_owned())).await,
            7
        );
        shown
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_counts_the_seconds_of_what_takes_long_and_is_erased_at_the_end() {
        assert!(shown_for(1_900).await.is_empty());
        assert_eq!(
            shown_for(4_500).await,
            ["Rescan: 2 s", "Rescan: 3 s", "Rescan: 4 s", ""]
        );
    }
}
