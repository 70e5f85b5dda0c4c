//! A simulated Windows node.

pub mod wql;
