//! A property-based state machine test: the daemon on a simulated node must behave like a reference
//! model.
//!
//! A transition is a call in one of its versions, sent over gRPC to the daemon
//! ([`system_under_test`]), or an event that changes the node from outside. The [reference
//! model](reference_model) computes the [expected](expected) answer and the expected state of the
//! node, and [`invariants`] compares both after each transition. proptest shrinks a sequence that
//! fails; it is then kept in [`regressions`].
//!
//! The sequences are the same in each run, so that an unrelated change cannot fail the test.
//! `PROPTEST_CASES` sets their number, and `PROPTEST_RNG_SEED` selects others.

mod directory_tree;
mod expected;
mod invariants;
mod messages;
mod reference_model;
mod regressions;
mod strategies;
mod system_under_test;
mod transition;

use std::cell::Cell;
use std::time::Instant;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use crate::reference_model::Model;
use crate::system_under_test::SystemUnderTest;
use crate::transition::Transition;

/// The number of sequences if `PROPTEST_CASES` is not set.
const SEQUENCES: u32 = 32;
/// The seed if `PROPTEST_RNG_SEED` is not set.
const SEED: u64 = 20;
/// Maximum length of a sequence.
const MAX_TRANSITIONS: usize = 120;

struct NodeTest;

impl ReferenceStateMachine for NodeTest {
    type State = Model;
    type Transition = Transition;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::new()).boxed()
    }

    fn transitions(model: &Model) -> BoxedStrategy<Transition> {
        strategies::transition(model)
    }

    fn apply(model: Model, transition: &Transition) -> Model {
        model.apply(transition)
    }

    fn preconditions(model: &Model, transition: &Transition) -> bool {
        model.specifies(transition)
    }
}

impl StateMachineTest for NodeTest {
    type SystemUnderTest = SystemUnderTest;
    type Reference = Self;

    fn init_test(model: &Model) -> SystemUnderTest {
        let mut system = SystemUnderTest::new();
        system.check_state(model);
        system
    }

    fn apply(
        mut system: SystemUnderTest,
        model: &Model,
        transition: Transition,
    ) -> SystemUnderTest {
        system.apply(model, &transition);
        system
    }

    fn teardown(mut system: SystemUnderTest, model: Model) {
        system.check_all_reads(&model);
        system.stop();
    }
}

#[test]
fn every_answer_and_the_state_of_the_node_match_the_reference_model() {
    let configured = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        configured.cases
    } else {
        SEQUENCES
    };
    let rng_seed = if configured.rng_seed == RngSeed::Random {
        RngSeed::Fixed(SEED)
    } else {
        configured.rng_seed
    };
    let config = Config {
        cases,
        rng_seed,
        max_shrink_iters: 4096,
        failure_persistence: None,
        ..configured
    };
    let sequences = NodeTest::sequential_strategy(1..MAX_TRANSITIONS);
    let (began, applied) = (Instant::now(), Cell::new(0));
    let outcome = TestRunner::new(config.clone()).run(&sequences, |(model, transitions, seen)| {
        applied.set(applied.get() + transitions.len());
        NodeTest::test_sequential(config.clone(), model, transitions, seen);
        Ok(())
    });
    println!(
        "{} transitions in {cases} sequences of seed {rng_seed}, {:?}",
        applied.get(),
        began.elapsed()
    );
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
