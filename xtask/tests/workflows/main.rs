//! Runs the jobs of .github/workflows/windows.yml here, with each step failing in turn.
//!
//! Whatever fails, the self-test runs and its report is kept, and a step is skipped if, and only
//! if, what it uses is missing. Steps of bash are executed, with the stand-ins of this folder for
//! programs that only a machine of GitHub has. Scripts of PowerShell are only read for the programs
//! that they use.
#![cfg(unix)]

mod evidence;
mod expression;
mod job;
mod machine;
