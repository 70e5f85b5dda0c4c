//! A wrapper of an [`Os`] that changes a few of its calls and forwards all others.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use os::abi::{AccessEntry, ControlCode, SecurityDescriptor};
use os::{
    CallStatus, Clock, FileInfo, FsInfo, Handle, Instance, MethodCall, Namespace, NtPath, Open, Os,
    OsResult, PathForm, Service, ServiceAccess, Time, U16Str, U16String, Uuid, WatchedWork, Wmi,
};

use crate::primitives::{handle_primitives, node_primitives};

/// Makes the default methods of a layer for the primitives of an object.
macro_rules! defaults {
    ($object:ty; $($name:ident($($argument:ident: $kind:ty),*) -> $result:ty,
        changes: $changes:expr, $key:ident: $what:expr;)*) => {
        $(fn $name(&self, below: &$object, $($argument: $kind),*) -> OsResult<$result> {
            self.around(|| below.$name($($argument),*))
        })*
    };
}

/// Makes the methods of a layered object, which forward to its layer.
macro_rules! forwards {
    ($object:ty; $($name:ident($($argument:ident: $kind:ty),*) -> $result:ty,
        changes: $changes:expr, $key:ident: $what:expr;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> OsResult<$result> {
            self.layer.$name(self.below(), $($argument),*)
        })*
    };
}

/// The changes that a [`Layered`] node makes to the calls of the node below it.
///
/// Each method receives the object of the node below and forwards the call to it by default; a
/// layer overrides the methods it changes. Calls without a method here are always forwarded.
#[expect(
    missing_docs,
    reason = "each method is the primitive of the same name, on the object it receives"
)]
pub trait Layer: Send + Sync + 'static {
    /// Makes a call that the layer forwards. A layer that treats all calls alike overrides only
    /// this method.
    fn around<T>(&self, call: impl FnOnce() -> T) -> T {
        call()
    }

    fn open(&self, node: &dyn Os, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        self.around(|| node.open(path, how))
    }

    node_primitives!(defaults);

    fn open_child(
        &self,
        parent: &dyn Handle,
        name: &U16Str,
        how: &Open,
    ) -> OsResult<Box<dyn Handle>> {
        self.around(|| parent.open_child(name, how))
    }

    fn open_below(
        &self,
        parent: &dyn Handle,
        path: &U16Str,
        how: &Open,
    ) -> OsResult<Box<dyn Handle>> {
        self.around(|| parent.open_below(path, how))
    }

    handle_primitives!(defaults);

    fn close(&self, handle: Box<dyn Handle>) {
        self.around(|| drop(handle));
    }

    fn wmi_query(
        &self,
        wmi: &dyn Wmi,
        namespace: Namespace,
        wql: &str,
        deadline: Time,
    ) -> OsResult<Vec<Instance>> {
        let mut found = self.around(|| wmi.query(namespace, wql, deadline))?;
        self.change_instances(wql, &mut found);
        Ok(found)
    }

    /// Changes the instances that a query has returned. Most layers change nothing else of queries,
    /// and need no [`wmi_query`](Self::wmi_query).
    fn change_instances(&self, _wql: &str, _found: &mut Vec<Instance>) {}

    fn wmi_call(
        &self,
        wmi: &dyn Wmi,
        call: &MethodCall<'_>,
        deadline: Time,
    ) -> OsResult<CallStatus> {
        self.around(|| wmi.call(call, deadline))
    }

    fn block_on(&self, clock: &dyn Clock, wait: Pin<&mut dyn Future<Output = ()>>) {
        self.around(|| clock.block_on(wait));
    }

    fn run_watched(&self, clock: &dyn Clock, patience: Duration, work: WatchedWork) -> bool {
        self.around(|| clock.run_watched(patience, work))
    }
}

/// A node with a [`Layer`] around it. The layer also surrounds every handle that is opened through
/// it.
pub struct Layered<L> {
    node: Arc<dyn Os>,
    layer: Arc<L>,
}

impl<L: Layer> Layered<L> {
    /// Puts `layer` around `node`.
    pub fn around(node: Arc<dyn Os>, layer: L) -> Self {
        Self {
            node,
            layer: Arc::new(layer),
        }
    }

    fn below(&self) -> &dyn Os {
        &*self.node
    }
}

impl<L: Layer> Os for Layered<L> {
    fn open(&self, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        Ok(LayeredHandle::wrap(
            self.layer.open(self.below(), path, how)?,
            &self.layer,
        ))
    }

    node_primitives!(forwards);

    fn open_service(&self, name: &U16Str, access: ServiceAccess) -> OsResult<Box<dyn Service>> {
        self.layer.around(|| self.node.open_service(name, access))
    }

    fn wmi(&self) -> &dyn Wmi {
        self
    }

    fn clock(&self) -> &dyn Clock {
        self
    }
}

impl<L: Layer> Wmi for Layered<L> {
    fn query(&self, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        self.layer
            .wmi_query(self.node.wmi(), namespace, wql, deadline)
    }

    fn call(&self, call: &MethodCall<'_>, deadline: Time) -> OsResult<CallStatus> {
        self.layer.wmi_call(self.node.wmi(), call, deadline)
    }
}

impl<L: Layer> Clock for Layered<L> {
    fn now(&self) -> Time {
        self.node.clock().now()
    }

    fn since_start_of_windows(&self) -> Duration {
        self.node.clock().since_start_of_windows()
    }

    fn sleep(&self, span: Duration) {
        self.node.clock().sleep(span);
    }

    fn block_on(&self, wait: Pin<&mut dyn Future<Output = ()>>) {
        self.layer.block_on(self.node.clock(), wait);
    }

    fn run_watched(&self, patience: Duration, work: WatchedWork) -> bool {
        self.layer.run_watched(self.node.clock(), patience, work)
    }
}

struct LayeredHandle<L: Layer> {
    /// Taken when it is closed.
    handle: Option<Box<dyn Handle>>,
    layer: Arc<L>,
}

impl<L: Layer> LayeredHandle<L> {
    fn wrap(handle: Box<dyn Handle>, layer: &Arc<L>) -> Box<dyn Handle> {
        Box::new(Self {
            handle: Some(handle),
            layer: Arc::clone(layer),
        })
    }

    fn below(&self) -> &dyn Handle {
        &**self
            .handle
            .as_ref()
            .expect("it is open until it is dropped")
    }
}

impl<L: Layer> Handle for LayeredHandle<L> {
    fn open_child(&self, name: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        Ok(Self::wrap(
            self.layer.open_child(self.below(), name, how)?,
            &self.layer,
        ))
    }

    fn open_below(&self, path: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        Ok(Self::wrap(
            self.layer.open_below(self.below(), path, how)?,
            &self.layer,
        ))
    }

    handle_primitives!(forwards);
}

impl<L: Layer> Drop for LayeredHandle<L> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.layer.close(handle);
        }
    }
}
