//! The comparison: calls of both programs, and the differences between their results.

use std::error::Error;
use std::process::ExitCode;

use crate::CALLS_FOR_ALL_RULES;
use crate::call::{Call, Generator};
use crate::program::{Answer, Program};
use crate::rules::{Counts, Difference, Judgement};
use crate::tree::Tree;

/// How many calls are made on one tree before both programs get a new one.
const CALLS_PER_TREE: usize = 60;

/// Both programs, and what has been found so far.
pub(crate) struct Comparison {
    pub(crate) go: Program,
    pub(crate) own: Program,
    pub(crate) generator: Generator,
    pub(crate) counts: Counts,
}

impl Comparison {
    pub(crate) fn run(&mut self, calls: usize) -> Result<(), Box<dyn Error>> {
        let mut left_on_tree = 0;
        let mut before = Tree::default();
        for number in 1..=calls {
            if left_on_tree == 0 {
                let tree = self.generator.tree();
                for program in [&self.go, &self.own] {
                    program.drive.create(&tree)?;
                }
                before = self.go.drive.read()?;
                left_on_tree = CALLS_PER_TREE;
            }
            if self.generator.replaces_working_directory() {
                for program in [&self.go, &self.own] {
                    program.drive.replace_working_directory()?;
                }
                before = self.go.drive.read()?;
            }
            let call = self.generator.call(&before);
            let results = (self.go.call(&call)?, self.own.call(&call)?);
            let trees = (self.go.drive.read()?, self.own.drive.read()?);
            let equal = trees.0 == trees.1;
            self.judge(number, &call, &before, &results, &trees);
            left_on_tree = if equal { left_on_tree - 1 } else { 0 };
            before = trees.0;
            if number % 1000 == 0 {
                println!(
                    "{number} calls, {} undeclared differences",
                    self.counts.undeclared
                );
            }
        }
        Ok(())
    }

    fn judge(
        &mut self,
        number: usize,
        call: &Call,
        before: &Tree,
        results: &(Answer, Answer),
        trees: &(Tree, Tree),
    ) {
        let difference = Difference {
            call,
            before,
            go: &results.0,
            own: &results.1,
            trees,
        };
        let judgement = difference.judge();
        self.counts.add(judgement);
        if let Judgement::Undeclared = judgement {
            println!("undeclared: call {number}: {difference}");
        }
    }

    /// Prints the counts and the failures.
    pub(crate) fn report(&self, calls: usize, seed: u64) -> ExitCode {
        println!("{}", self.counts);
        let mut failures = Vec::new();
        if self.counts.undeclared > 0 {
            failures.push(format!(
                "{} undeclared differences, which are printed above",
                self.counts.undeclared
            ));
        }
        // A rule that no call needs would hide a difference some day.
        if calls >= CALLS_FOR_ALL_RULES {
            let unused = self.counts.unused();
            failures.extend(
                unused.map(|key| format!("no call has shown the declared difference `{key}`")),
            );
        }
        for failure in &failures {
            println!("FAILED {failure}");
        }
        println!(
            "{} passed, {} failed, 0 skipped",
            u8::from(failures.is_empty()),
            failures.len()
        );
        if failures.is_empty() {
            return ExitCode::SUCCESS;
        }
        println!("repeat this run with: cargo xtask differential --calls {calls} --seed {seed}");
        ExitCode::FAILURE
    }
}
