//! A node whose objects notice when a promise of the executor is broken.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use os::{Clock, Time};

use crate::error::Error;
use crate::executor::Executor;
use crate::scheduling::locks::Locks;

/// The node of the executor.
#[derive(Default)]
pub(crate) struct Node {
    pub(crate) windows: Windows,
    pub(crate) locks: Locks,
    pub(crate) refused_links: RefusedLinks,
    /// Uses the lock of the standard library, so that an access to the objects is no step of the
    /// schedule.
    objects: Mutex<BTreeMap<u32, Object>>,
    executor: OnceLock<Weak<Executor>>,
    pub(crate) gate: Gate,
}

/// Lets nobody pass until it is open.
#[derive(Default)]
pub(crate) struct Gate {
    is_open: shuttle::sync::Mutex<bool>,
    opened: shuttle::sync::Condvar,
}

impl Gate {
    pub(crate) fn pass(&self) {
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
    }

    pub(crate) fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Object {
    exists: bool,
    changing: bool,
    changes: u64,
}

impl Node {
    /// Tells the node its executor.
    pub(crate) fn set_executor(&self, executor: Weak<Executor>) {
        self.executor.set(executor).expect("set once");
    }

    /// Returns whether the object exists.
    pub(crate) fn exists(&self, object: u32) -> bool {
        self.objects().entry(object).or_default().exists
    }

    /// Returns how often the object was changed.
    pub(crate) fn changes(&self, object: u32) -> u64 {
        self.objects().entry(object).or_default().changes
    }

    pub(crate) fn begin_change(&self, object: u32) {
        let executor = self
            .executor
            .get()
            .and_then(Weak::upgrade)
            .expect("the executor exists during a run");
        assert!(
            executor.running() > 0,
            "an object changes while no job is counted as running"
        );
        let mut objects = self.objects();
        let state = objects.entry(object).or_default();
        assert!(
            !state.changing,
            "two operations change object {object} at once"
        );
        state.changing = true;
    }

    pub(crate) fn end_change(&self, object: u32, exists: bool) {
        let executor = self
            .executor
            .get()
            .and_then(Weak::upgrade)
            .expect("the executor exists during a run");
        assert!(
            executor.running() > 0,
            "an object changes while no job is counted as running"
        );
        let mut objects = self.objects();
        let state = objects.entry(object).or_default();
        assert!(
            state.changing,
            "the change of object {object} has ended already"
        );
        *state = Object {
            exists,
            changing: false,
            changes: state.changes + 1,
        };
    }

    /// Checks that no change is in progress.
    pub(crate) fn assert_at_rest(&self) {
        let objects = self.objects();
        let changing: Vec<_> = objects
            .iter()
            .filter(|(_, state)| state.changing)
            .map(|(object, _)| object)
            .collect();
        assert!(
            changing.is_empty(),
            "objects {changing:?} were left in the middle of a change"
        );
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<u32, Object>> {
        os::lock(&self.objects)
    }
}

/// Ignores refused links.
#[derive(Default)]
pub(crate) struct RefusedLinks;

impl RefusedLinks {
    pub(crate) fn record(&self, _error: &Error, _span: impl FnOnce() -> tracing::Span) {}
}

/// One run of an operation.
pub(crate) mod run {
    use std::ops::Deref;

    use crate::node::Node;
    use crate::scheduling::context::OperationContext;

    #[derive(Clone, Copy)]
    pub struct Run<'a> {
        pub(crate) node: &'a Node,
        pub(crate) context: &'a OperationContext,
    }

    impl Deref for Run<'_> {
        type Target = OperationContext;

        fn deref(&self) -> &OperationContext {
            self.context
        }
    }

    impl<'a> Run<'a> {
        pub(crate) fn new(node: &'a Node, context: &'a OperationContext) -> Self {
            Self { node, context }
        }

        pub(crate) fn with_queries_only(self) -> Self {
            self
        }
    }
}

/// Provides the clock, whose time stands still.
#[derive(Default)]
pub(crate) struct Windows;

impl Windows {
    pub(crate) fn clock(&self) -> &dyn Clock {
        self
    }
}

impl Clock for Windows {
    fn now(&self) -> Time {
        Time::default()
    }

    fn since_start_of_windows(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _span: Duration) {
        shuttle::thread::yield_now();
    }
}
