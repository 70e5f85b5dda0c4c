//! gRPC clients of a daemon, and what its metrics count of them.

use hyper_util::rt::TokioIo;
use os_sim::Sim;
use tonic::transport::Channel;
use transport::address::Address;
use transport::listener::connect;

use super::daemon::{Daemon, Setup, until};

impl Daemon {
    /// A daemon that also serves the pipes without a group in their names.
    pub(crate) fn groupless(sim: &Sim) -> Self {
        Setup {
            groupless: true,
            ..Setup::default()
        }
        .on(sim)
    }

    /// Opens a tonic channel with a new connection.
    pub(crate) async fn channel(&self, pipe: &str) -> Channel {
        channel(self.address(pipe))
            .await
            .expect("the endpoint accepts")
    }

    /// Waits until a metric whose line begins with `metric` is not 0.
    pub(crate) async fn counted(&self, metric: &str) {
        until(|| {
            self.server
                .metrics()
                .render()
                .lines()
                .any(|line| line.starts_with(metric) && !line.ends_with(" 0"))
        })
        .await;
    }
}

/// Opens a tonic channel to `address`.
pub(crate) async fn channel(address: Address) -> Result<Channel, tonic::transport::Error> {
    let dial = tower::service_fn(move |_| {
        let address = address.clone();
        async move { connect(&address).await.map(TokioIo::new) }
    });
    tonic::transport::Endpoint::from_static("http://localhost")
        .connect_with_connector(dial)
        .await
}
