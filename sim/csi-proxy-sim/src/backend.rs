//! The simulated node that the flags select.

use std::path::Path;
use std::{error, fs};

use csi_proxy::doctor::{self, DoctorFlags, System};
use csi_proxy::serve::Backend;
use os_sim::Sim;

use crate::flags::SimFlags;
use crate::simulated_system::{PROGRAM, SimulatedSystem};
use crate::state_file::StateFile;

/// A simulated node, and a name to announce it by.
#[derive(Debug)]
pub struct SimulatedNode {
    /// The node.
    pub sim: Sim,
    /// What it is, such as "the built-in simulated node".
    pub name: String,
    /// The file that keeps it.
    pub state: Option<StateFile>,
}

/// Returns the node that the flags select for serving: the one that was kept, else a new one.
pub fn served(flags: &SimFlags) -> Result<SimulatedNode, String> {
    let state = flags
        .state_file
        .as_deref()
        .map(StateFile::open)
        .transpose()?;
    let kept = state.as_ref().map(StateFile::load).transpose()?.flatten();
    let (sim, name) = match (kept, &state) {
        (Some(sim), Some(state)) => (
            sim,
            format!("the simulated node of {}", state.path().display()),
        ),
        _ => node(flags.node_file.as_deref())?,
    };
    let sim = if flags.is_fast { sim.fast() } else { sim };
    Ok(SimulatedNode { sim, name, state })
}

/// Returns the node that `file` describes, else the built-in one, and a name to announce it by.
fn node(file: Option<&Path>) -> Result<(Sim, String), String> {
    let Some(file) = file else {
        return Ok((
            Sim::default_node(),
            "the built-in simulated node".to_owned(),
        ));
    };
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let sim = Sim::from_toml(&text).map_err(|error| format!("{shown}: {error}"))?;
    Ok((sim, format!("the simulated node of {shown}")))
}

/// Returns the node that the flags select, and the rest of what `doctor` examines: pipes that
/// csi-proxy serves, and its program.
pub fn examined(flags: &DoctorFlags) -> Result<(Backend, Box<dyn System>), Box<dyn error::Error>> {
    let (sim, name) = node(flags.node_file.as_deref())?;
    let folder = PROGRAM
        .rsplit_once('\\')
        .map_or(PROGRAM, |(folder, _)| folder);
    sim.external().mkdir_all(folder)?;
    sim.external().write(PROGRAM, [])?;
    let backend = Backend {
        os: sim.real_time().process(),
        name,
        is_this_node: false,
    };
    Ok((
        backend,
        Box::new(SimulatedSystem::serving(&doctor::pipes())),
    ))
}
