//! Metrics: the names, help texts and values of everything that the server reports to Prometheus.

pub(crate) mod registry;
pub(crate) mod rpc;
mod text_format;
