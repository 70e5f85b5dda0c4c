//! What operations read of a node: from a device or, if its answer says nothing, from the storage provider.

pub(crate) mod node_volumes;
