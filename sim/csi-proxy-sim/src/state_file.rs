//! The file that keeps a node from one run of the program to the next: a node file with a last line of its own, by which a
//! damaged one is recognized.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{error, fmt, fs};

use os_sim::{DescriptionError, Sim};
use tempfile::NamedTempFile;

/// The last line. A file without it was cut off.
const END: &str = "# The end of the state of csi-proxy-sim.\n";

/// The file in which a node is kept.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    /// What was written last.
    written: Mutex<String>,
}

/// The error of a file from which the node cannot be restored.
#[derive(Debug)]
pub enum StateError {
    /// The file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// The end of the file is missing.
    CutOff(PathBuf),
    /// The file does not describe a node.
    Description(PathBuf, DescriptionError),
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => write!(f, "cannot read the state in {}: {error}", path.display()),
            Self::CutOff(path) => {
                write!(
                    f,
                    "the state in {} is damaged: its end is missing; remove the file to start anew",
                    path.display()
                )
            }
            Self::Description(path, error) => {
                write!(f, "the state in {} is damaged: {error}; remove the file to start anew", path.display())
            }
        }
    }
}

impl error::Error for StateError {}

impl StateFile {
    /// Keeps a node at `path`.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), written: Mutex::default() }
    }

    /// Returns the node that the file keeps, or `None` if it does not exist.
    pub fn load(&self) -> Result<Option<Sim>, StateError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StateError::Unreadable(self.path.clone(), error)),
        };
        if !text.ends_with(END) {
            return Err(StateError::CutOff(self.path.clone()));
        }
        let sim = Sim::from_toml(&text).map_err(|error| StateError::Description(self.path.clone(), error))?;
        Ok(Some(sim))
    }

    /// Writes the node, if it has changed since it was written. A reader sees the old file or the new one, complete.
    pub fn save(&self, sim: &Sim) -> io::Result<()> {
        let text = sim.node_file() + END;
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if *written == text {
            return Ok(());
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // It has passwords: a temporary file is its owner's alone.
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        *written = text;
        Ok(())
    }

    /// Returns where the node is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use os_sim::Sim;

    use super::StateFile;

    #[test]
    fn a_file_that_was_cut_off_or_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::new(&folder.path().join("state.toml"));
        assert!(file.load().unwrap().is_none());
        let sim = Sim::default_node();
        file.save(&sim).unwrap();
        let same = file.load().unwrap().expect("the node");
        assert_eq!(same.snapshot(), sim.snapshot());

        let text = fs::read_to_string(file.path()).unwrap();
        for length in [0, text.len() / 2, text.len() - 1] {
            fs::write(file.path(), &text[..length]).unwrap();
            let error = file.load().unwrap_err().to_string();
            assert!(error.contains("its end is missing; remove the file to start anew"), "{error}");
        }
        fs::write(file.path(), text.replace("no_automount", "no_automont")).unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(error.contains("is damaged: ") && error.contains("unknown field `no_automont`"), "{error}");
    }
}
