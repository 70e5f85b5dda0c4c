//! Tests of what concerns this process: its measurements and its children.

use std::process::{self, Command};
use std::time::{Duration, Instant};
use std::{env, thread};

use csi_proxy_os_win32::own_process::{
    cpu_time, end_children_with_this_process, handle_count, working_set,
};

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

#[test]
fn a_code_without_a_sentence_here_has_the_one_of_windows() {
    let text = os::OsError(1400).to_string(); // ERROR_INVALID_WINDOW_HANDLE
    let sentence = text.strip_suffix(" (1400)").unwrap();
    assert!(
        !sentence.is_empty() && !text.starts_with("Windows error"),
        "{text}"
    );
    assert!(
        !sentence.ends_with('.') && !sentence.contains('\n'),
        "{text}"
    );
    assert_eq!(os::OsError(4711).to_string(), "Windows error 4711");
}

#[test]
fn children_end_with_their_process() {
    const STEP: &str = "CSI_PROXY_TEST_STEP";
    let mut again = Command::new(env::current_exe().unwrap());
    again.args(["--exact", "system::children_end_with_their_process"]);
    match env::var(STEP).as_deref() {
        Ok("child") => {
            end_children_with_this_process().unwrap();
            let _running = again.env(STEP, "grandchild").spawn().unwrap();
            process::exit(0);
        }
        Ok(_) => thread::sleep(Duration::from_mins(1)),
        Err(_) => {
            let begun = Instant::now();
            // The output ends when no process has it open any more.
            assert!(again.env(STEP, "child").output().unwrap().status.success());
            assert!(begun.elapsed() < Duration::from_secs(30));
        }
    }
}
