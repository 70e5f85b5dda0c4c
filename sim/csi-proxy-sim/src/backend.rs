//! The simulated node that the flags select.

use std::path::Path;
use std::{error, fmt, fs, io};

use ::doctor::fixed_system::{FixedSystem, PROGRAM};
use csi_proxy::doctor::{self, DoctorFlags, System};
use csi_proxy::serve::Backend;
use os_sim::{DescriptionError, Sim};

use crate::flags::SimFlags;
use crate::state_file::StateFile;

/// The error of a file from which no node can be created.
#[derive(Debug)]
pub enum NodeError {
    /// The file cannot be read.
    Unreadable(String, io::Error),
    /// The file does not describe a node.
    Description(String, DescriptionError),
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(file, error) => write!(f, "cannot read {file}: {error}"),
            Self::Description(file, error) => write!(f, "{file}: {error}"),
        }
    }
}

impl error::Error for NodeError {}

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
pub fn served(flags: &SimFlags) -> Result<SimulatedNode, Box<dyn error::Error>> {
    let state = flags.state_file.as_deref().map(StateFile::new);
    let kept = match &state {
        Some(state) => state.load()?.map(|sim| (sim, format!("the simulated node of {}", state.path().display()))),
        None => None,
    };
    let mut served = match kept {
        Some((sim, name)) => SimulatedNode { sim, name, state: None },
        None => node(flags.node_file.as_deref())?,
    };
    if flags.is_fast {
        served.sim = served.sim.fast();
    }
    Ok(SimulatedNode { state, ..served })
}

/// Returns the node that `file` describes, else the built-in one.
pub fn node(file: Option<&Path>) -> Result<SimulatedNode, NodeError> {
    match file {
        None => {
            Ok(SimulatedNode { sim: Sim::default_node(), name: "the built-in simulated node".to_owned(), state: None })
        }
        Some(path) => {
            let file = path.display().to_string();
            let text = fs::read_to_string(path).map_err(|error| NodeError::Unreadable(file.clone(), error))?;
            let sim = Sim::from_toml(&text).map_err(|error| NodeError::Description(file.clone(), error))?;
            Ok(SimulatedNode { sim, name: format!("the simulated node of {file}"), state: None })
        }
    }
}

/// Returns the node that the flags select, and the rest of what `doctor` examines: pipes that csi-proxy serves, and its
/// program.
pub fn examined(flags: &DoctorFlags) -> Result<(Backend, Box<dyn System>), Box<dyn error::Error>> {
    let SimulatedNode { sim, name, .. } = node(flags.node_file.as_deref())?;
    let folder = PROGRAM.rsplit_once('\\').map_or(PROGRAM, |(folder, _)| folder);
    sim.external().mkdir_all(folder)?;
    sim.external().write(PROGRAM, [])?;
    let backend = Backend { os: sim.real_time().process(), name, is_this_node: false };
    Ok((backend, Box::new(FixedSystem::serving(&doctor::pipes()))))
}
