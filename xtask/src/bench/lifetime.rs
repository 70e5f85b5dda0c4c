//! What a server is in its life: its start, its size, and its memory and threads before, under and after a load.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::client::{Client, Load};
use super::counters::Counters;
use super::server::{Program, Site};
use super::workload::{Connections, WORKLOADS};
use crate::Error;

/// How many callers the load has.
const CALLERS: u32 = 128;

/// The load that is not measured, after which a server is idle.
const NO_LOAD: Duration = Duration::from_millis(10);

/// One server.
pub(super) struct Lifetime {
    pub(super) name: String,
    pub(super) first_answer: Duration,
    /// The size of the executable.
    pub(super) megabytes: f64,
    /// After one answer.
    pub(super) idle: State,
    /// At the end of the load, with 128 connections.
    pub(super) loaded: State,
    /// A second after the load, when the connections are closed.
    pub(super) after: State,
    /// After [`Options::quiet`](super::Options) without a call.
    pub(super) quiet: State,
}

/// A server at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    pub(super) resident_mb: f64,
    pub(super) threads: usize,
}

impl State {
    fn of(process: u32) -> Result<Self, Error> {
        let counters = Counters::of(process)?;
        Ok(Self { resident_mb: counters.resident_mb, threads: counters.threads() })
    }
}

/// Starts the servers, loads one after the other for two windows, and looks at all of them when they have been quiet.
pub(super) fn measure(
    site: &Site,
    programs: &[&Program],
    client: &Client,
    window: Duration,
    quiet: Duration,
) -> Result<Vec<Lifetime>, Error> {
    let mut lifetimes = Vec::new();
    for program in programs {
        println!("  {}", program.name);
        let load =
            |connections, callers, window| Load { workload: &WORKLOADS[0], connections, callers, window, during: None };
        let mut first = client.start(site, program, &load(Connections::Shared, 1, NO_LOAD))?;
        let begin = Instant::now();
        let server = program.start(site)?;
        first.expect_line("answered")?;
        let first_answer = begin.elapsed();
        first.measure(&server)?;
        let idle = State::of(server.pid())?;
        let mut loaded = idle;
        for connections in [Connections::Shared, Connections::Each] {
            let mut process = client.start(site, program, &load(connections, CALLERS, window))?;
            process.expect_line("answered")?;
            let sample = process.measure(&server)?;
            loaded = State { resident_mb: sample.resident_mb, threads: usize::try_from(sample.threads)? };
        }
        sleep(Duration::from_secs(1));
        let after = State::of(server.pid())?;
        #[expect(clippy::cast_precision_loss, reason = "a rounded number of megabytes")]
        let megabytes = fs::metadata(&program.path)?.len() as f64 / 1e6;
        let name = program.name.clone();
        lifetimes.push((Lifetime { name, first_answer, megabytes, idle, loaded, after, quiet: after }, server));
    }
    println!("  waiting for {} s without a call", quiet.as_secs_f64());
    sleep(quiet);
    let at_end = |(lifetime, server): (Lifetime, super::server::Running)| {
        Ok(Lifetime { quiet: State::of(server.pid())?, ..lifetime })
    };
    lifetimes.into_iter().map(at_end).collect()
}
