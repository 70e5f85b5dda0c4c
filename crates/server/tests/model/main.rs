//! Random sequences of calls, held to a model of the node.
//!
//! Each step is a call in one of its versions, over gRPC to the whole daemon on a simulated node, or something that
//! happens to a node by itself. The [model](node) says what must be answered and what the node must have become. A
//! sequence that shows a disagreement is shrunk to its essence, and kept in [`regressions`].
//!
//! The sequences are the same each time, so that a change that breaks nothing fails nothing. `PROPTEST_CASES` says how
//! many there are, and `PROPTEST_RNG_SEED` which.

mod agreement;
mod choice;
#[path = "../sockets/dynamic.rs"]
mod dynamic;
mod expect;
mod node;
mod regressions;
mod served;
mod step;
mod tree;
mod wire;

use std::cell::Cell;
use std::time::Instant;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use crate::node::Model;
use crate::served::Served;
use crate::step::Step;

/// How many sequences there are if `PROPTEST_CASES` does not say it.
const SEQUENCES: u32 = 32;
/// What decides them if `PROPTEST_RNG_SEED` does not.
const SEED: u64 = 20;
/// How long a sequence is at most.
const LONGEST: usize = 120;

struct Driver;

impl ReferenceStateMachine for Driver {
    type State = Model;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::new()).boxed()
    }

    fn transitions(node: &Model) -> BoxedStrategy<Step> {
        choice::step(node)
    }

    fn apply(node: Model, step: &Step) -> Model {
        node.step(step)
    }

    fn preconditions(node: &Model, step: &Step) -> bool {
        node.decides(step)
    }
}

impl StateMachineTest for Driver {
    type SystemUnderTest = Served;
    type Reference = Self;

    fn init_test(node: &Model) -> Served {
        let mut served = Served::new();
        served.agree(node);
        served
    }

    fn apply(mut served: Served, node: &Model, step: Step) -> Served {
        served.take(node, &step);
        served
    }

    fn teardown(mut served: Served, node: Model) {
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
