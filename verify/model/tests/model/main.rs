//! Random sequences of calls, held to a model of the node.
//!
//! Each step is a call in one of its versions, over gRPC to the whole daemon on a simulated node, or something that
//! happens to a node by itself. The [model](reference_model) says what must be answered and what the node must have become. A
//! sequence that shows a disagreement is shrunk to its essence, and kept in [`regressions`].
//!
//! The sequences are the same each time, so that a change that breaks nothing fails nothing. `PROPTEST_CASES` says how
//! many there are, and `PROPTEST_RNG_SEED` which.

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

/// How many sequences there are if `PROPTEST_CASES` does not say it.
const SEQUENCES: u32 = 32;
/// What decides them if `PROPTEST_RNG_SEED` does not.
const SEED: u64 = 20;
/// How long a sequence is at most.
const LONGEST: usize = 120;

struct Driver;

impl ReferenceStateMachine for Driver {
    type State = Model;
    type Transition = Transition;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::new()).boxed()
    }

    fn transitions(node: &Model) -> BoxedStrategy<Transition> {
        strategies::step(node)
    }

    fn apply(node: Model, step: &Transition) -> Model {
        node.step(step)
    }

    fn preconditions(node: &Model, step: &Transition) -> bool {
        node.decides(step)
    }
}

impl StateMachineTest for Driver {
    type SystemUnderTest = SystemUnderTest;
    type Reference = Self;

    fn init_test(node: &Model) -> SystemUnderTest {
        let mut served = SystemUnderTest::new();
        served.agree(node);
        served
    }

    fn apply(mut served: SystemUnderTest, node: &Model, step: Transition) -> SystemUnderTest {
        served.take(node, &step);
        served
    }

    fn teardown(mut served: SystemUnderTest, node: Model) {
        served.audit(&node);
        served.stop();
    }
}

#[test]
fn every_answer_and_the_node_are_as_the_model_says() {
    let asked = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { asked.cases } else { SEQUENCES };
    let rng_seed = if asked.rng_seed == RngSeed::Random { RngSeed::Fixed(SEED) } else { asked.rng_seed };
    let config = Config { cases, rng_seed, max_shrink_iters: 4096, failure_persistence: None, ..asked };
    let sequences = Driver::sequential_strategy(1..LONGEST);
    let (began, taken) = (Instant::now(), Cell::new(0));
    let outcome = TestRunner::new(config.clone()).run(&sequences, |(node, steps, seen)| {
        taken.set(taken.get() + steps.len());
        Driver::test_sequential(config.clone(), node, steps, seen);
        Ok(())
    });
    println!("{} steps in {cases} sequences of seed {rng_seed}, {:?}", taken.get(), began.elapsed());
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
