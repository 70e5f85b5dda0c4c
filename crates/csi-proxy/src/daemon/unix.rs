//! Systems other than Windows, on which csi-proxy-sim serves a simulated node.

use std::io::{self, Write};

use ::doctor::System;

use crate::flags::Flags;
use crate::serve::Backend;
use crate::service::Task;

fn windows_only() -> io::Error {
    let text = "this program runs on Windows only; on this system use csi-proxy-sim, which serves \
                a simulated Windows node (cargo sim)";
    io::Error::new(io::ErrorKind::Unsupported, text)
}

/// Returns an error: this system is not a Windows node.
pub fn serve(_flags: Flags, _out: impl Write) -> io::Result<()> {
    Err(windows_only())
}

/// Returns an error: this system has no Windows services.
pub fn manage_service(_task: Task, _out: impl Write) -> io::Result<()> {
    Err(windows_only())
}

/// Returns an error: this system is not a Windows node.
pub fn examined_node() -> io::Result<(Backend, Box<dyn System>)> {
    Err(windows_only())
}
