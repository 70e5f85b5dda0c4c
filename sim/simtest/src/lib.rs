//! The control API of csi-proxy-sim, for the tests of CSI node plugins.

pub mod control_api;
