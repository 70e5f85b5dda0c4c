//! The file that keeps a node from one run of the program to the next: a node file whose last line
//! marks it as complete.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use os_sim::Sim;
use tempfile::NamedTempFile;

/// The last line. A file without it was cut off.
const END: &str = "# The end of the state of csi-proxy-sim.\n";

/// The file in which a node is kept.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    /// What was written last.
    written: Mutex<String>,
    /// Locked as long as this process keeps the node.
    _lock: File,
}

impl StateFile {
    /// Keeps a node at `path`, with a file beside it that no other process may lock meanwhile.
    pub fn open(path: &Path) -> Result<Self, String> {
        let mut lock_path = path.as_os_str().to_owned();
        lock_path.push(".lock");
        let lock = File::create(&lock_path)
            .and_then(|file| file.try_lock().map(|()| file).map_err(io::Error::from));
        let lock = lock.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                format!("another csi-proxy-sim keeps its node in {}", path.display())
            }
            _ => format!("cannot keep the state in {}: {error}", path.display()),
        })?;
        Ok(Self {
            path: path.to_owned(),
            written: Mutex::default(),
            _lock: lock,
        })
    }

    /// Returns the node that the file keeps, or `None` if it does not exist.
    pub fn load(&self) -> Result<Option<Sim>, String> {
        let file = self.path.display();
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot read the state in {file}: {error}")),
        };
        let damaged = |reason: &dyn Display| {
            format!("the state in {file} is damaged: {reason}; remove the file to start anew")
        };
        if !text.ends_with(END) {
            return Err(damaged(&"its end is missing"));
        }
        Sim::from_toml(&text)
            .map(Some)
            .map_err(|error| damaged(&error))
    }

    /// Writes the node, if it has changed since it was written. A reader sees the old file or the
    /// new one, complete.
    pub fn save(&self, sim: &Sim) -> Result<(), String> {
        let text = sim.node_file() + END;
        let mut written = os::lock(&self.written);
        if *written != text {
            self.write(&text).map_err(|error| {
                format!("cannot write the state to {}: {error}", self.path.display())
            })?;
            *written = text;
        }
        Ok(())
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let folder = self
            .path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        // It has passwords: a temporary file is its owner's alone.
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
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
        let file = StateFile::open(&folder.path().join("state.toml")).unwrap();
        assert!(file.load().unwrap().is_none());
        let sim = Sim::default_node();
        file.save(&sim).unwrap();
        let same = file.load().unwrap().expect("the node");
        assert_eq!(same.snapshot(), sim.snapshot());

        let text = fs::read_to_string(file.path()).unwrap();
        for length in [0, text.len() / 2, text.len() - 1] {
            fs::write(file.path(), &text[..length]).unwrap();
            let error = file.load().unwrap_err();
            assert!(
                error.contains("its end is missing; remove the file to start anew"),
                "{error}"
            );
        }
        fs::write(file.path(), text.replace("no_automount", "no_automont")).unwrap();
        let error = file.load().unwrap_err();
        assert!(
            error.contains("is damaged: ") && error.contains("unknown field `no_automont`"),
            "{error}"
        );
    }
}
