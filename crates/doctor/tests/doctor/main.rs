//! The findings and the comparison, on simulated nodes.

mod faults_in_readings;
mod findings;
mod misleading;
mod output;
mod parity;
mod servers;
mod setup;
