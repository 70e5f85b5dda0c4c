//! A node as the daemon starts it, and what runs the operations on it.

use std::ops::Deref;
use std::sync::Arc;

use os::Os;
use os_sim::Sim;
use storage_ops::{Config, Executor, Node};

/// What runs the operations of a case. Both run the same course of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// [`Node::run`], on the thread of the caller.
    Thread,
    /// The daemon's executor, on the threads of its pools.
    Executor,
}

/// A node, and the executor of its operations if they do not run on the thread of the caller.
pub struct StartedNode {
    node: Arc<Node>,
    pub(crate) executor: Option<Arc<Executor>>,
    pub(crate) sim: Sim,
}

impl StartedNode {
    /// Starts a node on `os`, a process on `sim`, and does what the daemon does when it starts. The
    /// calls of that are made on `os` too, so that a fault or an attack also meets them.
    pub fn new(sim: &Sim, os: Arc<dyn Os>, config: Config, driver: Driver) -> Self {
        let node = Arc::new(Node::new(os, config));
        node.test_path_lookup();
        let executor = match driver {
            Driver::Thread => None,
            Driver::Executor => Some(Arc::new(Executor::new(Arc::clone(&node)))),
        };
        Self {
            node,
            executor,
            sim: sim.clone(),
        }
    }
}

impl Deref for StartedNode {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}
