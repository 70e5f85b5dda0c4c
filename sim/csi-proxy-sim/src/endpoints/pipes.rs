//! Named pipes, as the daemon opens them.

use std::error::Error;
use std::io::Write;

use csi_proxy::daemon::named_pipes;
use csi_proxy::serve::Endpoints;

use crate::backend::SimulatedNode;
use crate::flags::SimFlags;
use crate::{reflection, serve};

/// Serves the node on named pipes until a signal to stop.
pub fn serve(flags: &SimFlags, node: SimulatedNode, out: impl Write) -> Result<(), Box<dyn Error>> {
    let endpoints = || {
        Ok(Endpoints {
            services: reflection::services,
            ..named_pipes(&flags.daemon)?
        })
    };
    serve::serve(flags, node, endpoints, out)
}
