//! Named pipes, as the daemon opens them.

use std::error::Error;
use std::io::Write;

use csi_proxy::endpoints;

use crate::backend::SimulatedNode;
use crate::flags::SimFlags;
use crate::lives;

/// Serves the node on named pipes until a signal to stop.
pub fn serve(flags: &SimFlags, node: SimulatedNode, out: impl Write) -> Result<(), Box<dyn Error>> {
    lives::serve(&flags.daemon, node, || endpoints::named_pipes(&flags.daemon), out)
}
