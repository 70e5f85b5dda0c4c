//! Tests of the measurements of this process.

use csi_proxy_os_win32::own_process::{cpu_time, handle_count, working_set};

use crate::skip::skipped_by_wine;

#[test]
fn a_running_process_uses_memory_and_handles() {
    assert!(working_set().unwrap() > 1 << 16);
    let before = cpu_time().unwrap();
    assert!(cpu_time().unwrap() >= before);
    if handle_count().unwrap() == 0 {
        skipped_by_wine("the number of handles is always 0");
    }
}
