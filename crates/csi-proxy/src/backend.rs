//! The system that the storage operations run on.

use std::fmt;
use std::sync::Arc;

use os::Os;

#[cfg(windows)]
#[path = "backend/windows.rs"]
mod imp;

#[cfg(not(windows))]
#[path = "backend/unsupported.rs"]
mod imp;

pub use imp::windows;

/// A system's primitives, and a name to announce it by.
pub struct Backend {
    /// Its primitives.
    pub os: Arc<dyn Os>,
    /// What is served, such as "this Windows node".
    pub name: String,
    /// Whether it is the node that this program runs on, so that the program's own files are on it.
    pub is_this_node: bool,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend").field("name", &self.name).finish_non_exhaustive()
    }
}
