//! What the self-test does to a machine, so that a test can let each step fail.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use facts::Ended;

/// A machine, or one of a test.
pub trait Machine {
    /// Runs a program until it ends, or for at most `longest`.
    fn run(&self, command: &mut Command, longest: Duration) -> io::Result<Ended>;

    /// Runs a script of diskpart, whose file is in the folder.
    fn diskpart(&self, folder: &Path, script: &str) -> io::Result<Ended>;

    /// Creates a file for a virtual disk of `size` bytes, with sectors of `sector_size` bytes.
    fn create_virtual_disk(&self, file: &Path, size: u64, sector_size: u32) -> io::Result<()>;

    /// Returns the number of the disk for an attached file.
    fn disk_number(&self, file: &Path) -> io::Result<u32>;

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
}

/// The machine on which this program runs.
pub struct LocalMachine;

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

    fn disk_number(&self, file: &Path) -> io::Result<u32> {
        facts::virtual_disk_number(file)
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
        let mut file = File::create(file)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if fs::symlink_metadata(path)?.is_dir() {
            facts::remove_folder(path)
        } else {
            fs::remove_file(path)
        }
    }

    fn remove_empty(&self, folder: &Path) -> io::Result<()> {
        fs::remove_dir(folder)
    }

    fn lock(&self, file: &Path) -> io::Result<File> {
        let file = File::create(file)?;
        file.try_lock()?;
        Ok(file)
    }

    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }
}
