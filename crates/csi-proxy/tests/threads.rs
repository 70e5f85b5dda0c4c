//! How many threads the daemon's runtime keeps. This is a test binary by itself because it counts
//! the threads of its whole process.
#![cfg(target_os = "linux")]

use std::fs;
use std::sync::{Arc, Barrier};
use std::thread::sleep;
use std::time::Duration;

use csi_proxy::serve;

const BUSY: usize = 64;

fn threads() -> usize {
    fs::read_dir("/proc/self/task")
        .expect("the threads of this process")
        .count()
}

#[test]
fn threads_for_operations_end_within_a_quiet_minute() {
    let runtime = serve::runtime().expect("a runtime");
    let at_start = threads();
    let all_run = Arc::new(Barrier::new(BUSY));
    let operations: Vec<_> = (0..BUSY)
        .map(|_| {
            let all_run = Arc::clone(&all_run);
            runtime.spawn_blocking(move || {
                all_run.wait();
                let count = threads();
                all_run.wait();
                count
            })
        })
        .collect();
    for operation in operations {
        let count = runtime.block_on(operation).expect("no panic");
        assert_eq!(count, at_start + BUSY, "each operation has a thread");
    }
    let minute = (0..600).any(|_| {
        sleep(Duration::from_millis(100));
        threads() <= at_start
    });
    assert!(
        minute,
        "{} threads are left, and {at_start} were there at the start",
        threads()
    );
}
