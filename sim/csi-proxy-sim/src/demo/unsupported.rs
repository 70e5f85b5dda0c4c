//! The demonstration on a system where it cannot run.

use std::error::Error;
use std::io::Write;

use crate::backend::SimulatedNode;
use crate::flags::SimFlags;

/// Fails, with where to run the demonstration instead.
pub fn replay(
    _flags: &SimFlags,
    _node: SimulatedNode,
    _out: impl Write,
) -> Result<bool, Box<dyn Error>> {
    Err("replay needs Unix sockets: run it on Linux".into())
}

/// Fails, with where to run the demonstration instead.
pub fn show(_out: impl Write + Send + 'static) -> Result<bool, Box<dyn Error>> {
    Err("the demo needs Unix sockets: run it on Linux".into())
}
