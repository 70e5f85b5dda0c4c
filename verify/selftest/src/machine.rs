//! What the self-test does to a machine, so that a test can let each step fail.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use facts::{Ended, while_held};

/// A machine, or one of a test.
pub trait Machine {
    /// Runs a program until it ends, or for at most `longest`.
    fn run(&self, command: &mut Command, longest: Duration) -> io::Result<Ended>;

    /// Runs a script of diskpart, whose file is in the folder.
    fn diskpart(&self, folder: &Path, script: &str) -> io::Result<Ended>;

    /// Creates a file for a virtual disk of `size` bytes, with sectors of `sector_size` bytes.
    fn create_virtual_disk(&self, file: &Path, size: u64, sector_size: u32) -> io::Result<()>;

    /// Creates a folder to which only administrators have access.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// Returns the paths of what is in a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// Creates a file, or replaces its content, which is on the medium afterwards.
    fn write(&self, file: &Path, content: &str) -> io::Result<()>;

    /// Renames a file, and replaces the file that has the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file, or a folder with its content.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Removes a folder if it is empty.
    fn remove_empty(&self, folder: &Path) -> io::Result<()>;

    /// Locks a file, which is created if it is missing, until the result is dropped. Errors:
    /// `WouldBlock` if another program has locked the file.
    fn lock(&self, file: &Path) -> io::Result<File>;

    /// Waits.
    fn sleep(&self, time: Duration);

    /// Shows a text to the person who runs the program.
    fn show(&self, text: &str);
}

/// The machine on which this program runs. A file that another program has open, such as a virus
/// scanner, is tried again for some seconds.
pub struct LocalMachine {
    /// What the thread that prints has still to print.
    texts: Option<Sender<String>>,
    printed: Receiver<()>,
}

impl LocalMachine {
    /// Starts to print in a thread of its own: a console stops a program that prints while a person
    /// selects text, and a pipe may be closed.
    pub fn start() -> Self {
        let (texts, to_print) = mpsc::channel::<String>();
        let (ended, printed) = mpsc::channel();
        thread::spawn(move || {
            for text in to_print {
                let _ = writeln!(io::stdout(), "{text}");
            }
            let _ = ended.send(());
        });
        Self {
            texts: Some(texts),
            printed,
        }
    }
}

impl Drop for LocalMachine {
    fn drop(&mut self) {
        self.texts = None;
        let _ = self.printed.recv_timeout(Duration::from_secs(5));
    }
}

impl Machine for LocalMachine {
    fn run(&self, command: &mut Command, longest: Duration) -> io::Result<Ended> {
        facts::run(command, longest)
    }

    fn diskpart(&self, folder: &Path, script: &str) -> io::Result<Ended> {
        facts::diskpart(folder, script)
    }

    fn create_virtual_disk(&self, file: &Path, size: u64, sector_size: u32) -> io::Result<()> {
        facts::create_virtual_disk(file, size, sector_size)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        facts::create_folder(folder)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    }

    fn write(&self, file: &Path, content: &str) -> io::Result<()> {
        while_held(|| {
            let mut file = File::create(file)?;
            file.write_all(content.as_bytes())?;
            file.sync_all()
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        while_held(|| fs::rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let is_folder = fs::symlink_metadata(path)?.is_dir();
        while_held(|| {
            if is_folder {
                facts::remove_folder(path)
            } else {
                fs::remove_file(path)
            }
        })
    }

    fn remove_empty(&self, folder: &Path) -> io::Result<()> {
        while_held(|| fs::remove_dir(folder))
    }

    fn lock(&self, file: &Path) -> io::Result<File> {
        let file = while_held(|| File::create(file))?;
        file.try_lock()?;
        Ok(file)
    }

    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }

    fn show(&self, text: &str) {
        if let Some(texts) = &self.texts {
            let _ = texts.send(text.to_owned());
        }
    }
}
