//! Times in seconds, as metrics, status and log show them: with six digits after the point at most.

use std::time::Duration;

/// Returns a time in seconds.
pub fn seconds(time: Duration) -> f64 {
    rounded_seconds(time.as_secs_f64())
}

/// Rounds a time in seconds to microseconds.
pub fn rounded_seconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}
