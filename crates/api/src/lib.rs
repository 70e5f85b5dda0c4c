//! The messages, stubs and table of all group-versions of csi-proxy.
