//! The purpose of a path, in old API versions.

/// The purpose that a request of an old API version states for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathContext {
    /// The path is in the directory of a plugin.
    Plugin,
    /// The path is in the directory of a pod.
    Pod,
}
