//! Metrics of the server, in the text format of Prometheus.

pub(crate) mod active_count;
pub(crate) mod rpc_metrics;
pub(crate) mod server_state;
