//! The promises of the executor hold under every schedule.

use executor_model::scenarios;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// Runs `scenario` under schedules chosen uniformly, and under schedules with few, well-placed
/// preemptions.
fn explore(scenario: fn()) {
    const RANDOM_SCHEDULES: usize = 2_000;
    const PREEMPTIVE_SCHEDULES: usize = 10_000;
    const PREEMPTIONS: usize = 3;
    let mut config = Config::new();
    config.stack_size = 0x10_0000;
    Runner::new(
        RandomScheduler::new_from_seed(1, RANDOM_SCHEDULES),
        config.clone(),
    )
    .run(scenario);
    Runner::new(
        PctScheduler::new_from_seed(1, PREEMPTIONS + 1, PREEMPTIVE_SCHEDULES),
        config,
    )
    .run(scenario);
}

#[test]
fn callers_that_cancel_and_retry_share_changes_that_never_overlap() {
    explore(scenarios::cancelled_and_retried);
}

#[test]
fn a_request_after_the_opposite_change_is_not_answered_by_an_earlier_job() {
    explore(scenarios::opposite_changes);
}

#[test]
fn a_shared_result_is_not_older_than_its_request_where_the_operation_demands_it() {
    explore(scenarios::results_of_queued_jobs);
}

#[test]
fn changes_go_from_any_pool_to_any_other_with_their_locks_and_never_wait_for_each_other() {
    explore(scenarios::two_pools);
}

#[test]
fn wmi_that_does_not_answer_delays_no_file_and_no_other_disk() {
    explore(scenarios::hung_wmi);
}

#[test]
fn a_volume_that_moves_is_changed_under_the_lock_of_its_new_disk() {
    explore(scenarios::moving_volume);
}

#[test]
fn locks_are_exclusive_granted_in_order_and_leave_nothing_behind() {
    explore(scenarios::locks_alone);
}
