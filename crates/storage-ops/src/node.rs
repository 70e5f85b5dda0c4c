//! A node: what it runs on, its settings, its locks.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use os::Os;

use crate::config::Config;
use crate::error::{Error, OperationError};
use crate::executor::context::{Blocked, OperationContext};
use crate::executor::locks::{Guard, LockKey, Locks};
use crate::executor::operation::Operation;
use crate::paths::working_directories::WorkingDirectories;
use crate::windows::Host;

/// How often an operation starts again because its volume has moved to another disk, or because it needs other threads.
pub(crate) const MOVES: usize = 6;

/// One Windows node and the operations on it.
///
/// Clones of the `Arc` it lives in share its locks. Two `Node`s over one system, or a node beside another program
/// that changes disks, do not see each other's locks; what then still holds is that state is read again right
/// before anything is changed, and that Windows' storage provider refuses what would destroy data.
pub struct Node {
    pub(crate) host: Host,
    config: Config,
    pub(crate) locks: Locks,
    pub(crate) directories: WorkingDirectories,
    /// Share to lower-case user, for the mappings this process has made.
    smb_users: Mutex<HashMap<String, String>>,
}

impl Node {
    /// A node over `os`.
    pub fn new(os: Arc<dyn Os>, config: Config) -> Self {
        let directories = WorkingDirectories::new(&config);
        let host = Host::new(os, config.timeouts);
        Self { host, config, locks: Locks::default(), directories, smb_users: Mutex::default() }
    }

    /// Carries `operation` out on this thread and blocks until it has ended.
    pub fn run<O: Operation>(&self, operation: &O) -> Result<O::Output, Error> {
        for _ in 0..MOVES {
            let objects = operation.lock_keys(self).map_err(|fault| failed(operation, fault))?;
            let ctx = OperationContext::new(Arc::new(self.lock(objects)), Arc::new(Blocked), None);
            match operation.run(self, &ctx) {
                Err(fault) if fault.again.is_some() => {}
                outcome => return outcome.map_err(|fault| failed(operation, fault)),
            }
        }
        Err(failed(operation, OperationError::unsettled()))
    }

    fn lock(&self, objects: Vec<LockKey>) -> Guard {
        let mut guard = None;
        {
            let mut wait = pin!(async { guard = Some(self.locks.acquire(objects).await) });
            self.host.clock().block_on(wait.as_mut());
        }
        guard.expect("the wait ends with the locks")
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How many objects are locked or waited for at this moment.
    pub fn locked_objects(&self) -> usize {
        self.locks.held()
    }

    /// The users of the SMB mappings that this process has made.
    pub(crate) fn smb_users(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.smb_users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The failure with what was attempted.
pub(crate) fn failed<O: Operation>(operation: &O, fault: OperationError) -> Error {
    Error::new(O::NAME, operation.describe(), fault)
}
