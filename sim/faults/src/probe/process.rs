//! A probed process: its calls, its open kernel objects and whether it is alive.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use os::{Os, OsError, OsResult, lock};

use super::{Call, FaultAction, Outcome, PRIMITIVES, Probe};

/// The error of every call of a dead process.
const PROCESS_DIED: OsError = OsError::OPERATION_ABORTED;

/// A process whose calls go through a probe.
pub(super) struct ProbedProcess {
    node: Arc<dyn Os>,
    probe: Box<dyn Probe>,
    calls: AtomicU64,
    dead: AtomicBool,
    /// The open kernel objects, in the order in which the process opened them.
    opened: Mutex<Vec<Weak<dyn Close>>>,
}

/// A kernel object, which is closed when its process ends.
trait Close: Send + Sync {
    fn close(&self);
}

/// Holds a kernel object until its process dies: an `Arc`, so that a call does not hold the lock. A
/// call may take long, and the process may die during it.
type Slot<T> = Mutex<Option<Arc<T>>>;

impl<T: ?Sized + Send + Sync> Close for Slot<T> {
    fn close(&self) {
        let object = lock(self).take();
        drop(object);
    }
}

/// A named kernel object that belongs to a process.
pub(super) struct Owned<T: ?Sized, N> {
    pub(super) process: Arc<ProbedProcess>,
    pub(super) name: N,
    slot: Arc<Slot<T>>,
}

impl<T: ?Sized + Send + Sync + 'static, N: Display> Owned<T, N> {
    pub(super) fn new(process: &Arc<ProbedProcess>, name: N, object: Box<T>) -> Self {
        let slot = Arc::new(Slot::new(Some(Arc::from(object))));
        let closed_at_death: Arc<dyn Close> = slot.clone();
        process.register(&closed_at_death);
        Self {
            process: Arc::clone(process),
            name,
            slot,
        }
    }

    /// Calls a primitive of the object through the probe.
    pub(super) fn run<R: PrimitiveResult>(
        &self,
        primitive: impl Into<Cow<'static, str>>,
        mutates: bool,
        forward: impl FnOnce(&T) -> OsResult<R>,
    ) -> OsResult<R> {
        // Get the object inside the call, so that no reference keeps it open if the probe ends the
        // process.
        self.process
            .run(primitive, &self.name, mutates, || forward(&*self.get()?))
    }

    /// Returns the object, or fails if the process has died.
    pub(super) fn get(&self) -> OsResult<Arc<T>> {
        lock(&self.slot).clone().ok_or(PROCESS_DIED)
    }
}

impl ProbedProcess {
    pub(super) fn new(node: Arc<dyn Os>, probe: Box<dyn Probe>) -> Arc<Self> {
        let calls = AtomicU64::new(0);
        let dead = AtomicBool::new(false);
        Arc::new(Self {
            node,
            probe,
            calls,
            dead,
            opened: Mutex::default(),
        })
    }

    pub(super) fn node(&self) -> &dyn Os {
        &*self.node
    }

    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    pub(super) fn die(&self) {
        self.dead.store(true, Ordering::SeqCst);
        let opened = std::mem::take(&mut *lock(&self.opened));
        for object in opened.iter().filter_map(Weak::upgrade) {
            object.close();
        }
    }

    /// Calls a primitive through the probe.
    pub(super) fn run<T: PrimitiveResult>(
        &self,
        primitive: impl Into<Cow<'static, str>>,
        object: &dyn Display,
        mutates: bool,
        forward: impl FnOnce() -> OsResult<T>,
    ) -> OsResult<T> {
        self.check_alive()?;
        let sequence = self.calls.fetch_add(1, Ordering::SeqCst);
        let call = Call {
            sequence,
            primitive: primitive.into(),
            object: object.to_string(),
            mutates,
        };
        let word = call.primitive.split(' ').next().unwrap_or_default();
        debug_assert!(PRIMITIVES.contains(&word), "PRIMITIVES lacks {word}");
        match self.probe.before(&call) {
            FaultAction::Go => {}
            FaultAction::Delay(span) => self.node.clock().sleep(span),
            FaultAction::Fail(error) => {
                self.probe.after(&call, Outcome::Failed(error));
                return Err(error);
            }
            FaultAction::Return(code) => {
                if let Some(result) = T::returned(code) {
                    self.probe.after(&call, result.outcome());
                    return Ok(result);
                }
            }
            FaultAction::Die => {
                self.die();
                self.probe.after(&call, Outcome::Died);
                return Err(PROCESS_DIED);
            }
        }
        // The probe, or another thread during a delay, may have killed the process.
        self.check_alive()?;
        let result = forward();
        let outcome = result
            .as_ref()
            .map_or_else(|error| Outcome::Failed(*error), PrimitiveResult::outcome);
        match self.probe.after(&call, outcome) {
            FaultAction::Return(code) if matches!(outcome, Outcome::Returned(_)) => {
                return T::returned(code).map_or(result, Ok);
            }
            FaultAction::Go | FaultAction::Return(_) => {}
            FaultAction::Delay(span) => self.node.clock().sleep(span),
            FaultAction::Fail(error) => return Err(error),
            FaultAction::Die => self.die(),
        }
        self.check_alive()?;
        result
    }

    fn check_alive(&self) -> OsResult<()> {
        if self.is_dead() {
            Err(PROCESS_DIED)
        } else {
            Ok(())
        }
    }

    fn register(&self, object: &Arc<dyn Close>) {
        let mut opened = lock(&self.opened);
        opened.retain(|object| object.strong_count() > 0);
        opened.push(Arc::downgrade(object));
        drop(opened);
        // Another thread may have killed the process since the object was opened.
        if self.is_dead() {
            object.close();
        }
    }
}

/// The result of a primitive, from which the outcome for the probe is taken.
pub(super) trait PrimitiveResult: Sized {
    fn outcome(&self) -> Outcome {
        Outcome::Done
    }

    /// Returns the result of a WMI method that returned `code`, or `None` for another primitive.
    fn returned(_code: u32) -> Option<Self> {
        None
    }
}

impl PrimitiveResult for () {}
impl PrimitiveResult for u32 {}
impl PrimitiveResult for usize {}
impl PrimitiveResult for os::U16String {}
impl PrimitiveResult for os::ServiceConfig {}
impl PrimitiveResult for os::abi::SecurityDescriptor {}
impl<T> PrimitiveResult for Vec<T> {}
impl<T: ?Sized> PrimitiveResult for Box<T> {}

impl PrimitiveResult for os::CallStatus {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Done(returned) => Outcome::Returned(returned.code),
            Self::StillRunning(_) => Outcome::StillRunning,
        }
    }

    fn returned(code: u32) -> Option<Self> {
        Some(Self::Done(os::Returned {
            code,
            ..os::Returned::default()
        }))
    }
}
