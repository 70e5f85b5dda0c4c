//! Waiting for a drain to end, while progress is reported.

use std::fmt::Display;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;

/// The interval at which progress is reported.
const INTERVAL: Duration = Duration::from_secs(1);

/// Waits for `work`, and calls `report` with a growing checkpoint before each second of waiting.
///
/// A report that fails is logged once, and does not end the work: running calls would be cut off.
pub async fn reported<T, E: Display>(
    mut work: Pin<&mut impl Future<Output = T>>,
    mut report: impl FnMut(u32) -> Result<(), E>,
) -> T {
    let mut has_failed = false;
    let mut checkpoint = 0;
    loop {
        checkpoint += 1;
        if let Err(error) = report(checkpoint)
            && !has_failed
        {
            tracing::warn!(%error, "cannot report progress; waiting for running calls all the same");
            has_failed = true;
        }
        if let Ok(done) = timeout(INTERVAL, work.as_mut()).await {
            return done;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use tokio::time::sleep;

    use super::reported;

    async fn checkpoints(answer: Result<(), &str>) -> Vec<u32> {
        let mut checkpoints = Vec::new();
        let work = pin!(async {
            sleep(Duration::from_millis(3500)).await;
            "drained"
        });
        let done = reported(work, |checkpoint| {
            checkpoints.push(checkpoint);
            answer
        });
        assert_eq!(done.await, "drained");
        checkpoints
    }

    #[tokio::test(start_paused = true)]
    async fn progress_is_reported_until_the_work_is_done() {
        assert_eq!(checkpoints(Ok(())).await, [1, 2, 3, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_that_fails_does_not_end_the_work() {
        assert_eq!(checkpoints(Err("the handle is invalid")).await, [1, 2, 3, 4]);
    }
}
