//! A node as the daemon starts it.

use std::sync::Arc;

use os::Os;
use storage_ops::{Config, Node};

/// Returns a node on `os` with these settings, after what the daemon does when it starts. The calls
/// of that are made on `os` too, so that a fault or an attack also meets them.
pub(crate) fn started(os: Arc<dyn Os>, config: Config) -> Node {
    let node = Node::new(os, config);
    node.test_path_lookup();
    node
}
