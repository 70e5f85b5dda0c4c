//! The calls to WMI and to devices that the sequences of the drivers cause, and how long they would take. Makes the tables of
//! docs/performance.md.
#![cfg(unix)]

mod go_program;
mod measurement;
mod reasons;
mod tables;
