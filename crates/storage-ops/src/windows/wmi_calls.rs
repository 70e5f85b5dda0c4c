//! How many calls of WMI were made, how many failed and how long they took, by class and method.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::sync::{Mutex, lock};

/// The calls of one method of a class, or the queries for its instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WmiCallCount {
    /// The class, such as `MSFT_Disk`.
    pub class: String,
    /// The method, or `query`.
    pub method: String,
    /// How many calls have ended, or have been left behind at the end of their time.
    pub calls: u64,
    /// How many of them failed or did not end in their time.
    pub failures: u64,
    /// How long all of them took.
    pub time: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    calls: u64,
    failures: u64,
    time: Duration,
}

/// The WMI calls of one node.
#[derive(Default)]
pub(crate) struct WmiCalls(Mutex<BTreeMap<(String, String), Usage>>);

impl WmiCalls {
    /// Counts a call.
    pub(crate) fn add(&self, class: &str, method: &str, has_failed: bool, took: Duration) {
        let key = (name(class), name(method));
        let mut calls = lock(&self.0);
        let usage = calls.entry(key).or_default();
        usage.calls += 1;
        usage.failures += u64::from(has_failed);
        usage.time = usage.time.saturating_add(took);
    }

    pub(crate) fn counts(&self) -> Vec<WmiCallCount> {
        let calls = lock(&self.0);
        let count = |((class, method), usage): (&(String, String), &Usage)| {
            let Usage {
                calls,
                failures,
                time,
            } = *usage;
            WmiCallCount {
                class: class.clone(),
                method: method.clone(),
                calls,
                failures,
                time,
            }
        };
        calls.iter().map(count).collect()
    }
}

/// Returns the name of a class or method. What is none, such as a part of a path, would make a
/// series for each object.
fn name(text: &str) -> String {
    let is_name = !text.is_empty()
        && text.len() <= 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name {
        text.to_owned()
    } else {
        "other".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_class_and_method_and_never_by_object() {
        let calls = WmiCalls::default();
        let second = Duration::from_secs(1);
        calls.add("MSFT_Disk", "query", false, second);
        calls.add("MSFT_Disk", "query", true, second);
        calls.add(r"\\host\root:MSFT_Disk", "Online", false, second);
        let count = |class: &str, method: &str, calls, failures| WmiCallCount {
            class: class.into(),
            method: method.into(),
            calls,
            failures,
            time: second * u32::try_from(calls).unwrap(),
        };
        assert_eq!(
            calls.counts(),
            [
                count("MSFT_Disk", "query", 2, 1),
                count("other", "Online", 1, 0)
            ]
        );
    }

    #[test]
    fn the_sum_of_long_times_does_not_overflow() {
        // The clock of a simulated process that has died shows the last time there is.
        let calls = WmiCalls::default();
        for _ in 0..2 {
            calls.add("MSFT_Disk", "query", true, Duration::MAX);
        }
        assert_eq!(calls.counts()[0].time, Duration::MAX);
    }
}
