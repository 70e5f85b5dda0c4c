//! On Windows: the node that this program runs on. All files of this folder are for Windows only.

mod named_pipes;
mod service;
mod system;

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;

use ::doctor::System;

use crate::flags::Flags;
use crate::serve::{self, Backend};
pub use named_pipes::{Listener, named_pipes};
pub use service::manage_service;
use system::ThisNode;

/// Serves this node on named pipes: as the Windows service if the flags say so, else in the
/// console.
pub fn serve(flags: Flags, out: impl Write) -> Result<(), Box<dyn Error>> {
    if flags.windows_service {
        return service::run(flags);
    }
    serve::console(&flags, backend(), named_pipes(&flags)?, out)
}

/// Returns this node, and what `doctor` reads of it beyond the traits of `os`.
pub fn examined_node() -> io::Result<(Backend, Box<dyn System>)> {
    Ok((backend(), Box::new(ThisNode)))
}

fn backend() -> Backend {
    Backend {
        os: Arc::new(os_win32::Windows::new()),
        name: "this Windows node".to_owned(),
        is_this_node: true,
    }
}
