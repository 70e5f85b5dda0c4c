//! What the daemon runs on.

use std::fs;
use std::sync::Arc;
use std::{fmt, io};

use os::Os;
use os_sim::{DescriptionError, Sim};

use crate::flags::Flags;

/// A system, and what to call it.
pub struct System {
    /// Its primitives.
    pub os: Arc<dyn Os>,
    /// What it is, to go after "serves".
    pub name: String,
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("System").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why there is nothing to run on.
#[derive(Debug)]
pub enum SystemError {
    /// The file that describes the node cannot be read.
    Unreadable(String, io::Error),
    /// It does not describe a node.
    Description(String, DescriptionError),
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(file, error) => write!(f, "cannot read {file}: {error}"),
            Self::Description(file, error) => write!(f, "{file}: {error}"),
        }
    }
}

impl std::error::Error for SystemError {}

/// The system that the flags ask for: Windows where this is Windows, unless they want a simulated node.
pub fn open(flags: &Flags) -> Result<System, SystemError> {
    let simulate = flags.simulate || flags.node_file.is_some();
    match imp::native() {
        Some(native) if !simulate => Ok(native),
        _ => simulated(flags),
    }
}

fn simulated(flags: &Flags) -> Result<System, SystemError> {
    let (sim, name) = match &flags.node_file {
        None => (Sim::default_node(), "the built-in simulated node".to_owned()),
        Some(path) => {
            let file = path.display().to_string();
            let text = fs::read_to_string(path).map_err(|error| SystemError::Unreadable(file.clone(), error))?;
            let sim = Sim::from_toml(&text).map_err(|error| SystemError::Description(file.clone(), error))?;
            (sim, format!("the simulated node of {file}"))
        }
    };
    Ok(System { os: sim.real_time().process(), name })
}

#[cfg(windows)]
mod imp {
    use std::sync::Arc;

    use super::System;

    #[expect(clippy::unnecessary_wraps, reason = "elsewhere there is none")]
    pub(super) fn native() -> Option<System> {
        Some(System { os: Arc::new(os_win32::Windows::new()), name: "this Windows node".to_owned() })
    }
}

#[cfg(not(windows))]
mod imp {
    use super::System;

    pub(super) fn native() -> Option<System> {
        None
    }
}
