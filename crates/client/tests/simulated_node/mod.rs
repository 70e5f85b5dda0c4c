//! The tests share a [`daemon`].

mod connections;
mod daemon;
mod every_method;
mod examples;
mod versions;
