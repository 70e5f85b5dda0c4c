//! The executor of storage-ops, compiled from its sources, under the scheduler of shuttle.
//!
//! shuttle runs all tasks and threads on one thread and chooses which of them continues after each access to a lock, an
//! atomic or a channel. A scenario runs under many such schedules. The build script replaces the locks of the standard
//! library by shuttle's; `tokio` is shuttle's stand-in for it. The node is `model/node.rs`, the scenarios are
//! `model/scenarios.rs`.

#![cfg(test)]

include!(concat!(env!("OUT_DIR"), "/variants.rs"));

/// Runs `scenario` under schedules chosen uniformly, and under schedules with few, well-placed preemptions.
fn explore(scenario: fn()) {
    const RANDOM_SCHEDULES: usize = 2_000;
    const PREEMPTIVE_SCHEDULES: usize = 10_000;
    const PREEMPTIONS: usize = 3;
    let config = || {
        let mut config = shuttle::Config::new();
        config.stack_size = 0x10_0000;
        config
    };
    shuttle::Runner::new(shuttle::scheduler::RandomScheduler::new_from_seed(1, RANDOM_SCHEDULES), config())
        .run(scenario);
    let preemptions = shuttle::scheduler::PctScheduler::new_from_seed(1, PREEMPTIONS + 1, PREEMPTIVE_SCHEDULES);
    shuttle::Runner::new(preemptions, config()).run(scenario);
}

/// The promises hold under every schedule.
mod promises {
    use crate::as_it_is::scenarios;
    use crate::explore;

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
    fn a_change_goes_to_another_pool_with_its_locks() {
        explore(scenarios::two_pools);
    }

    #[test]
    fn a_volume_that_moves_is_changed_under_the_lock_of_its_new_disk() {
        explore(scenarios::moving_volume);
    }

    #[test]
    fn locks_are_exclusive_granted_in_order_and_leave_nothing_behind() {
        explore(scenarios::locks_alone);
    }
}

/// Each defect is detected.
mod defects {
    use crate::explore;

    #[test]
    #[should_panic(expected = "were left in the middle of a change")]
    fn changing_job_abandoned() {
        explore(crate::changing_job_abandoned::scenarios::cancelled_and_retried);
    }

    #[test]
    #[should_panic(expected = "answered by a job from before the opposite change")]
    fn job_unregistered_after_its_locks() {
        explore(crate::job_unregistered_after_its_locks::scenarios::opposite_changes);
    }

    #[test]
    #[should_panic(expected = "older than its request")]
    fn older_result_shared() {
        explore(crate::older_result_shared::scenarios::results_of_queued_jobs);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn thread_not_passed_on() {
        explore(crate::thread_not_passed_on::scenarios::two_pools);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn next_in_line_not_woken() {
        explore(crate::next_in_line_not_woken::scenarios::locks_alone);
    }
}
