//! The demonstration on a system where it cannot run.

use std::error::Error;
use std::io::Write;

/// Fails, with where to run the demonstration instead.
pub fn show(_out: impl Write + Send + 'static) -> Result<bool, Box<dyn Error>> {
    Err("the demo needs Unix sockets: run it on Linux".into())
}
