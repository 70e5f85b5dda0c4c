//! What a path is for.

/// What old API versions say a path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathContext {
    /// A plugin's own directory.
    Plugin,
    /// A pod's directory.
    Pod,
}
