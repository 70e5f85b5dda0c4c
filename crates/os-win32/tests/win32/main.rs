//! Every primitive on a real system: Windows, or Wine as far as it goes.
//!
//! What a system cannot do is found out by the test that needs it, and printed: a line
//! `skipped: <test>: <why>` stands for what was not tested.
#![cfg(windows)]

mod control;
mod files;
mod firmware;
mod pipes;
mod scratch;
mod services;
mod volumes;
mod wmi;
