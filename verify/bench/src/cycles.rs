//! The drivers' cycles on the simulated node, beside the calls of WMI that the Go program makes for
//! the same RPCs.
//!
//! A cycle stages, publishes, expands, unpublishes and unstages a new volume. Its time follows from
//! its calls: one of WMI takes 100 ms, any other one 50 microseconds. Both are assumed.

#[cfg(unix)]
mod imp {
    use std::error::Error;
    use std::io;

    use csi_proxy_sim::demo::{Daemon, Screen, Sequence, run};
    use os_sim::Sim;

    const WMI: f64 = 0.1;
    const OTHER: f64 = 50e-6;

    /// The calls of WMI that version 1.3.0 of the Go program makes: each query and each method is
    /// one.
    const OF_GO_PROGRAM: [(&str, f64); 5] = [
        ("azuredisk", 41.0),
        ("gce-pd", 55.0),
        ("aws-ebs", 42.0),
        ("vsphere", 39.0),
        ("longhorn-fork", 67.0),
    ];

    /// Returns for each driver the time of its cycle, divided by the time of the Go program's calls
    /// of WMI.
    pub(crate) async fn ratios() -> Result<Vec<(&'static str, f64)>, Box<dyn Error>> {
        let sequences = Sequence::all()?;
        let mut ratios = Vec::new();
        for (driver, of_go_program) in OF_GO_PROGRAM {
            let sequence = sequences
                .iter()
                .find(|sequence| sequence.driver == driver)
                .ok_or("a driver has no sequence")?;
            let daemon = Daemon::start_on(Sim::default_node().fast(), Vec::new())?;
            let counts = run(sequence, &daemon, &mut Screen::new(io::sink()))
                .await
                .node_calls;
            daemon.stop().await?;
            let number = |count: u64| u32::try_from(count).map(f64::from);
            let time = number(counts.wmi)? * WMI + number(counts.primitives - counts.wmi)? * OTHER;
            ratios.push((driver, time / (of_go_program * WMI)));
        }
        Ok(ratios)
    }
}

#[cfg(not(unix))]
mod imp {
    use std::error::Error;

    pub(crate) async fn ratios() -> Result<Vec<(&'static str, f64)>, Box<dyn Error>> {
        Err("the simulated drivers need Unix sockets".into())
    }
}

pub(crate) use imp::ratios;
