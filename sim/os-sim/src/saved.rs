//! A node in a file.
//!
//! The file holds the servers with the passwords that their users have, for they are part of the world; of what
//! the node itself was told it holds no secret.

use std::path::Path;
use std::{fmt, fs, io};

use crate::sim::Sim;
use crate::state::State;

/// Why a node could not be saved or loaded.
#[derive(Debug)]
pub enum SavedError {
    /// The file could not be read or written.
    File(io::Error),
    /// The file does not hold a node.
    Content(String),
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => write!(f, "the saved node cannot be reached: {error}"),
            Self::Content(what) => write!(f, "the file does not hold a node: {what}"),
        }
    }
}

impl std::error::Error for SavedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File(error) => Some(error),
            Self::Content(_) => None,
        }
    }
}

impl Sim {
    /// Saves the node, as it would be found if every process on it ended now. Running jobs go on after loading.
    pub fn save(&self, path: &Path) -> Result<(), SavedError> {
        let text = self.with(|state| serde_json::to_vec(state));
        let text = text.map_err(|error| SavedError::Content(error.to_string()))?;
        // A reader never sees half a node.
        let beside = path.with_extension("saving");
        fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)).map_err(SavedError::File)
    }

    /// Loads a node that was saved.
    pub fn load(path: &Path) -> Result<Self, SavedError> {
        let text = fs::read(path).map_err(SavedError::File)?;
        let mut state: State = serde_json::from_slice(&text)
            .map_err(|error| SavedError::Content(format!("line {} column {}", error.line(), error.column())))?;
        state.restore();
        state.check().map_err(SavedError::Content)?;
        Ok(Self::new(state))
    }
}
