//! The simulated node as a program of its own. Its files move here; crates/csi-proxy compiles them until the next commit.
