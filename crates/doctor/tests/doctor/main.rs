//! The findings and the comparison, on simulated nodes.

mod faults_in_readings;
mod findings;
mod misleading;
mod one_step_away;
mod output;
mod provider_comparison;
mod servers;
mod setup;
#[path = "../../../../sim/csi-proxy-sim/src/simulated_system.rs"]
mod simulated_system;
