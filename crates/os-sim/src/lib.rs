//! A simulated Windows node.

pub mod fault;
pub mod probe;
pub mod race;
pub mod trace;
pub mod wql;
