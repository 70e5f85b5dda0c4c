//! A temporary directory for each test on drive C:, and functions that all tests use.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use csi_proxy_os_win32::Windows;
use os::{Access, Handle, NtPath, Open, Options, Os as _, U16String};

/// A temporary directory, which is deleted when dropped.
pub(crate) struct Scratch {
    path: PathBuf,
    pub(crate) windows: Windows,
}

impl Scratch {
    pub(crate) fn new(test: &str) -> Self {
        let path = PathBuf::from(format!(r"C:\csi-proxy-test\{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self {
            path,
            windows: Windows::new(),
        }
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the NT path of the entry `name`.
    pub(crate) fn nt(&self, name: &str) -> NtPath {
        nt(&self.join(name))
    }

    /// Opens the directory, for listing and for opening its entries.
    pub(crate) fn open(&self) -> Box<dyn Handle> {
        self.windows.open(&nt(&self.path), &directory()).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

pub(crate) fn wide(text: &str) -> U16String {
    U16String::from_str(text)
}

fn nt(path: &Path) -> NtPath {
    NtPath::from_win32(&U16String::from_os_str(path))
}

pub(crate) fn directory() -> Open {
    Open::existing(
        Access::READ_DATA | Access::READ_ATTRIBUTES,
        Options::DIRECTORY,
    )
}

/// Lets one test at a time use services or WMI. Wine's WMI does not lock its tables, so two
/// concurrent queries crash the process; it fails a query for services while a service is created
/// or deleted; and Wine's service control manager confuses the handles of concurrent calls.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    os::lock(&TURN)
}
