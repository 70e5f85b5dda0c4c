//! Metrics: the names, help texts and values of everything that the server reports to Prometheus.
//!
//! `rpc.rs` has the metrics of each RPC (`grpc_server_*`), `registry.rs` all others
//! (`csi_proxy_*`).

pub(crate) mod registry;
pub(crate) mod rpc;
mod text_format;
