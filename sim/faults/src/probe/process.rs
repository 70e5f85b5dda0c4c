//! One life of a process: what it has called, what it holds open, and whether it still lives.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use os::{Os, OsError, OsResult};

use super::{Call, FaultAction, Outcome, Probe};

/// What every answer to a dead process is.
const DEAD: OsError = OsError::OPERATION_ABORTED;

pub(super) struct Process {
    node: Arc<dyn Os>,
    probe: Box<dyn Probe>,
    calls: AtomicU64,
    dead: AtomicBool,
    objects: Mutex<Objects>,
}

/// The kernel objects a process holds open, in the order it opened them.
#[derive(Default)]
struct Objects {
    opened: u64,
    open: BTreeMap<u64, Weak<dyn Close>>,
}

/// What the kernel closes when its process ends.
pub(super) trait Close: Send + Sync {
    fn close(&self);
}

/// A place for one kernel object; empty once its process has died.
pub(super) struct Slot<T: ?Sized> {
    // An `Arc`, so that no lock is held during a call, which may take long and go on while the process dies.
    object: Mutex<Option<Arc<T>>>,
}

impl<T: ?Sized + Send + Sync> Close for Slot<T> {
    fn close(&self) {
        let object = lock(&self.object).take();
        drop(object);
    }
}

/// A kernel object that belongs to a process.
pub(super) struct Owned<T: ?Sized + Send + Sync> {
    process: Arc<Process>,
    id: u64,
    slot: Arc<Slot<T>>,
}

impl<T: ?Sized + Send + Sync + 'static> Owned<T> {
    pub(super) fn new(process: &Arc<Process>, object: Arc<T>) -> Self {
        let slot = Arc::new(Slot { object: Mutex::new(Some(object)) });
        let as_close: Arc<dyn Close> = slot.clone();
        let id = process.register(&as_close);
        Self { process: Arc::clone(process), id, slot }
    }

    /// The process it belongs to.
    pub(super) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// The object, as long as the process lives.
    pub(super) fn get(&self) -> OsResult<Arc<T>> {
        lock(&self.slot.object).clone().ok_or(DEAD)
    }
}

impl<T: ?Sized + Send + Sync> Drop for Owned<T> {
    fn drop(&mut self) {
        lock(&self.process.objects).open.remove(&self.id);
    }
}

impl Process {
    pub(super) fn new(node: Arc<dyn Os>, probe: Box<dyn Probe>) -> Arc<Self> {
        let (calls, dead) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { node, probe, calls, dead, objects: Mutex::default() })
    }

    pub(super) fn node(&self) -> &dyn Os {
        &*self.node
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    pub(super) fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
        let open = std::mem::take(&mut lock(&self.objects).open);
        for object in open.into_values().filter_map(|object| object.upgrade()) {
            object.close();
        }
    }

    /// Sends one primitive through the probe.
    pub(super) fn run<T: Answer>(
        &self,
        primitive: impl Into<Cow<'static, str>>,
        object: &dyn Display,
        mutates: bool,
        forward: impl FnOnce() -> OsResult<T>,
    ) -> OsResult<T> {
        self.alive()?;
        let sequence = self.calls.fetch_add(1, Ordering::SeqCst);
        let call = Call { sequence, primitive: primitive.into(), object: object.to_string(), mutates };
        match self.probe.before(&call) {
            FaultAction::Go => {}
            FaultAction::Delay(span) => self.node.clock().sleep(span),
            FaultAction::Fail(error) => {
                self.probe.after(&call, Outcome::Failed(error));
                return Err(error);
            }
            FaultAction::Die => {
                self.die();
                self.probe.after(&call, Outcome::Died);
                return Err(DEAD);
            }
        }
        // The probe, or another thread while this one was delayed, may have killed the process.
        self.alive()?;
        let result = forward();
        let outcome = result.as_ref().map_or_else(|error| Outcome::Failed(*error), Answer::outcome);
        match self.probe.after(&call, outcome) {
            FaultAction::Go => {}
            FaultAction::Delay(span) => self.node.clock().sleep(span),
            FaultAction::Fail(error) => return Err(error),
            FaultAction::Die => self.die(),
        }
        self.alive()?;
        result
    }

    fn alive(&self) -> OsResult<()> {
        if self.is_dead() { Err(DEAD) } else { Ok(()) }
    }

    fn register(&self, object: &Arc<dyn Close>) -> u64 {
        let mut objects = lock(&self.objects);
        objects.opened += 1;
        let id = objects.opened;
        objects.open.insert(id, Arc::downgrade(object));
        drop(objects);
        // Another thread may have killed the process between the call that opened the object and now.
        if self.is_dead() {
            object.close();
        }
        id
    }
}

/// What a primitive answers with, as far as a probe is told of it.
pub(super) trait Answer {
    fn outcome(&self) -> Outcome {
        Outcome::Done
    }
}

impl Answer for () {}
impl Answer for u32 {}
impl Answer for usize {}
impl Answer for os::U16String {}
impl Answer for os::ServiceConfig {}
impl<T> Answer for Vec<T> {}
impl<T: ?Sized> Answer for Box<T> {}

impl Answer for os::CallStatus {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Done(returned) => Outcome::Returned(returned.code),
            Self::StillRunning(_) => Outcome::StillRunning,
        }
    }
}

/// A panic elsewhere leaves these tables whole: each change to them is one insertion or removal.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
