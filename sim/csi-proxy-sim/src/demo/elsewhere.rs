//! What the demonstration says where it cannot be played.

use std::error::Error;
use std::io::Write;

/// Says where to look at it.
pub fn show(_out: impl Write + Send + 'static) -> Result<bool, Box<dyn Error>> {
    Err("the demo is played over Unix sockets: run it on Linux".into())
}
