//! The costs of removing a directory tree, for each entry.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

use api::filesystem::v1::RmdirRequest;
use faults::{Probed, Trace};
use os_sim::Sim;

use crate::call::Call;
use crate::client::Client;
use crate::counts::{Allocations, average};
use crate::daemon::{Daemon, Threads};
use crate::excluded::excluded;
use crate::growth::Cost;

const TREE: &str = r"C:\var\lib\kubelet\pods\tree";
const FIRST: &str = r"C:\var\lib\kubelet\pods\first";

/// How the entries of a tree are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Files in one directory.
    Flat,
    /// Ten entries in each directory.
    Tens,
    /// Each directory in another.
    Nested,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 3] = [Self::Flat, Self::Tens, Self::Nested];

    /// Returns the name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flat => "files in one directory",
            Self::Tens => "ten entries in each directory",
            Self::Nested => "each directory in another",
        }
    }

    /// Returns whether trees of this shape and so many entries are measured. The time of the simulator grows with the square
    /// of the depth.
    pub fn allows(self, entries: usize) -> bool {
        self != Self::Nested || entries <= 1000
    }

    fn build(self, entries: usize) -> Sim {
        let node = os_sim::node().dir(FIRST).dir(TREE);
        match self {
            Self::Flat => (0..entries).fold(node, |node, at| node.file(&format!(r"{TREE}\file-{at:06}"), "")),
            Self::Tens => {
                // The directory of an entry is the entry with a tenth of its number, and 0 is the tree itself.
                let path = |mut at: usize| {
                    let mut names = Vec::new();
                    while at > 0 {
                        names.push(at);
                        at = (at - 1) / 10;
                    }
                    names.iter().rev().fold(TREE.to_owned(), |mut path, name| {
                        // Writing to a text does not fail.
                        let _ = write!(path, r"\{name:06}");
                        path
                    })
                };
                let is_directory = |at: usize| at * 10 < entries;
                (1..=entries).fold(
                    node,
                    |node, at| {
                        if is_directory(at) { node.dir(&path(at)) } else { node.file(&path(at), "") }
                    },
                )
            }
            Self::Nested => node.dir(&format!("{TREE}{}", r"\d".repeat(entries))),
        }
        .build()
    }
}

fn remove(path: &str) -> Call {
    Call::new("Rmdir", "v1.Filesystem", "Rmdir", &RmdirRequest { path: path.to_owned(), force: true })
}

/// Returns what removing a tree of so many entries costs for each of them.
pub fn cost(shape: Shape, entries: usize) -> Result<Cost, Box<dyn Error>> {
    let sim = shape.build(entries);
    let trace = Arc::new(Trace::counting());
    let daemon = Daemon::start(Arc::new(Probed::new(sim.process(), Arc::clone(&trace))), Threads::AsInService)?;
    let (calls, allocations) = daemon.run(async |daemon: &Daemon| {
        // What the first calls allocate for all.
        let mut client = Client::connect(daemon, &remove(FIRST)).await?;
        client.call(8).await?;
        client.set_long_call(&remove(TREE));
        let requests = client.prepare(1);
        let (calls, allocations) = (excluded(|| trace.counts()), Allocations::counted());
        client.send(&requests).await?;
        let allocations = Allocations::counted() - allocations;
        Ok((trace.counts() - &calls, allocations))
    })?;
    if sim.external().exists(TREE) {
        return Err("the tree is still there".into());
    }
    let [primitives, wmi] = [calls.primitives, calls.wmi].map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    let [primitives, wmi, allocations, bytes] =
        [primitives, wmi, allocations.count, allocations.bytes].map(|count| average(count, entries));
    Ok(Cost { primitives, wmi, allocations, bytes })
}
