//! Named pipes, as the daemon opens them.

use std::error::Error;
use std::io::Write;

use csi_proxy::backend::Backend;
use csi_proxy::{endpoints, serve};

use crate::flags::SimFlags;

/// Serves `backend` on named pipes until a signal to stop.
pub fn serve(flags: &SimFlags, backend: Backend, out: impl Write) -> Result<(), Box<dyn Error>> {
    serve::console(&flags.daemon, backend, endpoints::named_pipes(&flags.daemon)?, out)
}
