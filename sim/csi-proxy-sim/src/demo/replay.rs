//! Replays sequences of files against the whole program, with all its flags.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use csi_proxy_client::Client;
use faults::Trace;
use server::Unfinished;
use transport::address::Location;

use super::daemon::Daemon;
use super::screen::Screen;
use super::sequence::Sequence;
use super::{run, summarize};
use crate::backend::SimulatedNode;
use crate::endpoints;
use crate::flags::SimFlags;

/// How long the program may take to serve.
const PATIENCE: Duration = Duration::from_mins(1);

/// Serves the node, runs the sequences of the files that follow the flags, writes each call to
/// `out`, and returns whether every result was as recorded.
pub fn replay(
    flags: &SimFlags,
    node: SimulatedNode,
    out: impl Write + Send + 'static,
) -> Result<bool, Box<dyn Error>> {
    let mut flags = flags.clone();
    let files = std::mem::take(&mut flags.daemon.rest);
    if files.is_empty() {
        return Err("give the files to replay".into());
    }
    let mut sequences = Vec::new();
    for file in &files {
        let text =
            fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
        let in_file = |error| format!("{file}: {error}");
        let mut sequence = text.parse::<Sequence>().map_err(in_file)?;
        let variables = &mut sequence.variables;
        variables
            .complete(|name| env::var(name).ok())
            .map_err(in_file)?;
        sequences.push(sequence);
    }
    let folder = tempfile::Builder::new().prefix("csi-proxy-").tempdir()?;
    let sockets = folder.path().join("sockets");
    flags.socket_folder = Some(sockets.clone());
    let (sim, is_like_go) = (node.sim.clone(), flags.go_version.is_some());
    // The thread and its connections end with the process.
    let serving = thread::spawn(move || {
        endpoints::serve(&flags, node, io::sink()).map_err(|error| error.to_string())
    });

    csi_proxy::serve::runtime()?.block_on(async {
        let location = Location::Directory(sockets.clone());
        let begin = Instant::now();
        let control = loop {
            if let Some(control) = csi_proxy_simtest::serving(&location).await {
                break control;
            }
            if serving.is_finished() {
                let served = serving.join();
                return Err(served
                    .ok()
                    .and_then(Result::err)
                    .unwrap_or("the simulator has ended".to_owned())
                    .into());
            }
            if begin.elapsed() > PATIENCE {
                return Err("the simulator does not serve".into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let client = Client::builder().socket_folder(sockets).build();
        let mut screen = Screen::new(out);
        screen.columns();
        let begin = Instant::now();
        let daemon = Daemon {
            sim,
            trace: Arc::new(Trace::counting()),
            folder,
            client,
            control: Some(control),
            serving: None,
            is_like_go,
        };
        let mut reports = Vec::with_capacity(sequences.len());
        for sequence in &sequences {
            screen.heading(&sequence.driver, &sequence.about);
            reports.push(run(sequence, &daemon, &mut screen).await);
        }
        Ok(summarize(
            &mut screen,
            &reports,
            Unfinished::default(),
            begin.elapsed(),
        ))
    })
}
