//! The log file and the old files beside it, which together stay below a limit.
//!
//! klog empties the file when it reaches `-log_file_max_size`. csi-proxy keeps three old files;
//! `FILE.1` is the newest. The limit has five parts: one for each old file, and two for the current
//! file. The file is rotated when it has filled one part. If the rotation fails, because another
//! program holds a file open or the folder may not be changed, the file grows into its second part,
//! and each line tries the rotation again. When the second part is full, the file is emptied.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::platform::restrict_to_owner;

/// The number of old files.
const KEPT_FILES: u64 = 3;

/// A file that each call of `write` appends one line to.
#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    /// Maximum bytes of an old file.
    part: Option<u64>,
    /// `None` after a failure. The next line opens the file again.
    file: Option<File>,
    length: u64,
}

impl RotatingFile {
    /// Opens the file to append to it. Without a limit it grows forever.
    pub(super) fn open(path: &Path, limit: Option<u64>) -> io::Result<Self> {
        let part = limit.map(|limit| limit / (KEPT_FILES + 2));
        let mut rotating = Self {
            path: path.to_owned(),
            part,
            file: None,
            length: 0,
        };
        rotating.delete_oldest();
        rotating.reopen()?;
        Ok(rotating)
    }

    fn reopen(&mut self) -> io::Result<&mut File> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        restrict_to_owner(&mut options);
        let file = options.open(&self.path)?;
        self.length = file.metadata()?.len();
        Ok(self.file.insert(file))
    }

    /// Returns the path of an old file. 0 stands for the current one.
    fn old(&self, number: u64) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        if number > 0 {
            path.push(format!(".{number}"));
        }
        path.into()
    }

    /// Renames the files and begins an empty one.
    ///
    /// Renames only up to the first free name. If the current file cannot be renamed, its new name
    /// stays free, and further attempts do not rename the old files again, which would delete one
    /// of them each time.
    fn rotate(&mut self) -> io::Result<()> {
        let free = (1..=KEPT_FILES)
            .find(|number| !self.old(*number).exists())
            .unwrap_or(KEPT_FILES);
        for number in (0..free).rev() {
            match fs::rename(self.old(number), self.old(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.file = None;
        self.reopen()?;
        self.delete_oldest();
        Ok(())
    }

    /// Deletes old files that exceed their parts of the limit, such as files of a higher limit.
    fn delete_oldest(&self) {
        let Some(part) = self.part else { return };
        let mut bytes = 0;
        for path in (1..=KEPT_FILES).map(|number| self.old(number)) {
            bytes += fs::metadata(&path).map_or(0, |metadata| metadata.len());
            if bytes > KEPT_FILES * part {
                // The next rotation tries it again.
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Empties the file because it cannot be rotated.
    fn empty(&mut self, reason: &io::Error) -> io::Result<()> {
        // Windows does not let the handle that appends change the length.
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&self.path)?;
        let note = format!("The log was emptied, because it could not be rotated: {reason}\n");
        self.reopen()?.write_all(note.as_bytes())?;
        self.length = note.len() as u64;
        Ok(())
    }

    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            self.reopen()?;
        }
        let length = self.length + line.len() as u64;
        if let Some(part) = self.part
            && length > part
            && self.length > 0
            && let Err(reason) = self.rotate()
            && length > 2 * part
        {
            self.empty(&reason)?;
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.reopen()?,
        };
        file.write_all(line)?;
        self.length += line.len() as u64;
        Ok(())
    }
}

impl Write for RotatingFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // After a failure, such as a full disk, the next line opens the file again.
        self.write_line(line).inspect_err(|_| self.file = None)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    const LIMIT: u64 = 10_000;

    fn folder() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("csi-proxy.log");
        (folder, path)
    }

    fn write(file: &mut RotatingFile, first: usize, lines: usize) {
        for number in first..first + lines {
            file.write_all(format!("{number:099}\n").as_bytes())
                .unwrap();
        }
    }

    /// Returns the numbers of the lines in all files, oldest first.
    fn numbers(path: &Path) -> Vec<usize> {
        let paths = ["log.3", "log.2", "log.1", "log"].map(|name| path.with_extension(name));
        let text: String = paths
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok())
            .collect();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn bytes(folder: &TempDir) -> u64 {
        let files = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap());
        files
            .filter(fs::Metadata::is_file)
            .map(|metadata| metadata.len())
            .sum()
    }

    #[test]
    fn all_files_together_stay_below_the_limit_and_have_the_newest_lines() {
        let (folder, path) = folder();
        let mut file = RotatingFile::open(&path, Some(LIMIT)).unwrap();
        for line in 0..500 {
            write(&mut file, line, 1);
            assert!(bytes(&folder) <= LIMIT);
        }
        let kept = numbers(&path);
        assert_eq!(kept, (500 - kept.len()..500).collect::<Vec<_>>());
        assert!(kept.len() > 60, "three old files are kept: {}", kept.len());
        drop(file);
        // Another start continues the file, and a lower limit deletes old files.
        let mut file = RotatingFile::open(&path, Some(LIMIT / 2)).unwrap();
        write(&mut file, 500, 1);
        assert!(
            bytes(&folder) <= LIMIT / 2 + LIMIT / 5,
            "{}",
            bytes(&folder)
        );
        write(&mut file, 501, 10);
        assert!(bytes(&folder) <= LIMIT / 2 && numbers(&path).ends_with(&[510]));
    }

    #[test]
    fn no_old_file_is_deleted_while_a_name_is_free() {
        let (_folder, path) = folder();
        let mut file = RotatingFile::open(&path, Some(LIMIT)).unwrap();
        write(&mut file, 0, 80);
        let oldest = fs::read(file.old(3)).unwrap();
        fs::remove_file(file.old(1)).unwrap();
        write(&mut file, 80, 20);
        assert!(file.old(1).is_file() && fs::read(file.old(3)).unwrap() == oldest);
        write(&mut file, 100, 20);
        assert!(fs::read(file.old(3)).unwrap() != oldest);
    }

    #[test]
    fn a_file_of_any_size_is_brought_below_the_limit() {
        let (folder, path) = folder();
        fs::write(&path, vec![b'x'; 50_000]).unwrap();
        let mut file = RotatingFile::open(&path, Some(LIMIT)).unwrap();
        write(&mut file, 0, 1);
        assert!(bytes(&folder) <= LIMIT, "{}", bytes(&folder));
    }

    /// On Windows a program that holds an old file open lets neither it be renamed nor another take
    /// its place. Here folders stand in the way.
    #[test]
    fn while_no_file_can_be_renamed_the_log_continues_and_stays_below_the_limit() {
        let (folder, path) = folder();
        let mut file = RotatingFile::open(&path, Some(LIMIT)).unwrap();
        let obstacles = [1, 2, 3].map(|number| file.old(number).join("held"));
        for obstacle in &obstacles {
            fs::create_dir_all(obstacle).unwrap();
        }
        for line in 0..200 {
            write(&mut file, line, 1);
            assert_eq!(
                numbers(&path).last(),
                Some(&line),
                "no line is lost when it is written"
            );
            assert!(bytes(&folder) <= 2 * LIMIT / 5 + 100, "{}", bytes(&folder));
        }
        assert!(
            fs::read_to_string(&path)
                .unwrap()
                .starts_with("The log was emptied, because it could not be rotated: ")
        );
        for obstacle in &obstacles {
            fs::remove_dir_all(obstacle.parent().unwrap()).unwrap();
        }
        write(&mut file, 200, 200);
        assert_eq!(numbers(&path).last(), Some(&399));
        assert!(file.old(3).is_file(), "the log is rotated again");
        assert!(bytes(&folder) <= LIMIT);
    }

    #[test]
    fn after_a_failure_the_next_line_opens_the_file_again() {
        let (folder, path) = folder();
        let logs = folder.path().join("logs");
        fs::create_dir(&logs).unwrap();
        let mut file = RotatingFile::open(&logs.join("csi-proxy.log"), Some(LIMIT)).unwrap();
        write(&mut file, 0, 20);
        // Windows does not let the folder of an open file be renamed.
        file.file = None;
        fs::rename(&logs, &path).unwrap();
        assert!(file.write_all(&[b'x'; 100]).is_err());
        file.file = Some(File::create(folder.path().join("another")).unwrap());
        assert!(
            file.write_all(&[b'x'; 100]).is_err(),
            "the folder is gone when the file is to be rotated"
        );
        fs::rename(&path, &logs).unwrap();
        write(&mut file, 20, 30);
        assert_eq!(
            numbers(&logs.join("csi-proxy.log")),
            (0..50).collect::<Vec<_>>()
        );
    }

    #[test]
    fn without_a_limit_one_file_is_appended_to() {
        let (folder, path) = folder();
        for first in [0, 1000] {
            write(&mut RotatingFile::open(&path, None).unwrap(), first, 1000);
        }
        assert_eq!(numbers(&path), (0..2000).collect::<Vec<_>>());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(RotatingFile::open(folder.path(), Some(LIMIT)).is_err());
    }
}
