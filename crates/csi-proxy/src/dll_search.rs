//! Where the system looks for libraries that are loaded by their name.

#[cfg(windows)]
mod imp {
    pub use os_win32::dll_search::system_only;
}

#[cfg(not(windows))]
mod imp {
    use std::io;

    /// Does nothing: the loader of this system looks neither beside the program nor in the current directory.
    pub fn system_only() -> io::Result<()> {
        Ok(())
    }
}

pub use imp::system_only;
