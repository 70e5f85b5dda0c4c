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

/// The changes that a [`Layered`] node makes to the calls of the node below it.
///
/// Each method receives the object of the node below and forwards the call to it by default; a
/// layer overrides the methods it changes. Calls without a method here are always forwarded. Add a
/// method when a layer needs it.
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

    fn attributes(&self, node: &dyn Os, path: &NtPath) -> OsResult<u32> {
        self.around(|| node.attributes(path))
    }

    fn device_interfaces(&self, node: &dyn Os, class: Uuid) -> OsResult<Vec<U16String>> {
        self.around(|| node.device_interfaces(class))
    }

    fn volumes(&self, node: &dyn Os) -> OsResult<Vec<U16String>> {
        self.around(|| node.volumes())
    }

    fn volume_paths(&self, node: &dyn Os, volume: &U16Str) -> OsResult<Vec<U16String>> {
        self.around(|| node.volume_paths(volume))
    }

    fn set_volume_mount_point(
        &self,
        node: &dyn Os,
        directory: &U16Str,
        volume: &U16Str,
    ) -> OsResult<()> {
        self.around(|| node.set_volume_mount_point(directory, volume))
    }

    fn delete_volume_mount_point(&self, node: &dyn Os, directory: &U16Str) -> OsResult<()> {
        self.around(|| node.delete_volume_mount_point(directory))
    }

    fn firmware_table(
        &self,
        node: &dyn Os,
        provider: u32,
        table: u32,
        output: &mut [u8],
    ) -> OsResult<usize> {
        self.around(|| node.firmware_table(provider, table, output))
    }

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

    fn control(
        &self,
        handle: &dyn Handle,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        self.around(|| handle.control(code, input, output))
    }

    fn set(&self, handle: &dyn Handle, class: FileInfo, input: &[u8]) -> OsResult<()> {
        self.around(|| handle.set(class, input))
    }

    fn query_fs(&self, handle: &dyn Handle, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        self.around(|| handle.query_fs(class, output))
    }

    fn list(&self, handle: &dyn Handle, restart: bool, output: &mut [u8]) -> OsResult<()> {
        self.around(|| handle.list(restart, output))
    }

    fn final_path(&self, handle: &dyn Handle, form: PathForm) -> OsResult<U16String> {
        self.around(|| handle.final_path(form))
    }

    fn read(&self, handle: &dyn Handle, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        self.around(|| handle.read(offset, output))
    }

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
}

impl<L: Layer> Os for Layered<L> {
    fn open(&self, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        Ok(LayeredHandle::wrap(
            self.layer.open(&*self.node, path, how)?,
            &self.layer,
        ))
    }

    fn attributes(&self, path: &NtPath) -> OsResult<u32> {
        self.layer.attributes(&*self.node, path)
    }

    fn device_interfaces(&self, class: Uuid) -> OsResult<Vec<U16String>> {
        self.layer.device_interfaces(&*self.node, class)
    }

    fn reenumerate(&self, interface: &U16Str) -> OsResult<()> {
        self.layer.around(|| self.node.reenumerate(interface))
    }

    fn volumes(&self) -> OsResult<Vec<U16String>> {
        self.layer.volumes(&*self.node)
    }

    fn volume_paths(&self, volume: &U16Str) -> OsResult<Vec<U16String>> {
        self.layer.volume_paths(&*self.node, volume)
    }

    fn set_volume_mount_point(&self, directory: &U16Str, volume: &U16Str) -> OsResult<()> {
        self.layer
            .set_volume_mount_point(&*self.node, directory, volume)
    }

    fn delete_volume_mount_point(&self, directory: &U16Str) -> OsResult<()> {
        self.layer.delete_volume_mount_point(&*self.node, directory)
    }

    fn open_service(&self, name: &U16Str, access: ServiceAccess) -> OsResult<Box<dyn Service>> {
        self.layer.around(|| self.node.open_service(name, access))
    }

    fn firmware_table(&self, provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize> {
        self.layer
            .firmware_table(&*self.node, provider, table, output)
    }

    fn registry_text(&self, key: &U16Str, value: &U16Str) -> OsResult<U16String> {
        self.layer.around(|| self.node.registry_text(key, value))
    }

    fn set_volatile_text(&self, key: &U16Str, value: &U16Str, text: &U16Str) -> OsResult<()> {
        self.layer
            .around(|| self.node.set_volatile_text(key, value, text))
    }

    fn delete_registry_value(&self, key: &U16Str, value: &U16Str) -> OsResult<()> {
        self.layer
            .around(|| self.node.delete_registry_value(key, value))
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

    fn handle(&self) -> &dyn Handle {
        &**self
            .handle
            .as_ref()
            .expect("it is open until it is dropped")
    }
}

impl<L: Layer> Handle for LayeredHandle<L> {
    fn open_child(&self, name: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        Ok(Self::wrap(
            self.layer.open_child(self.handle(), name, how)?,
            &self.layer,
        ))
    }

    fn open_below(&self, path: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        Ok(Self::wrap(
            self.layer.open_below(self.handle(), path, how)?,
            &self.layer,
        ))
    }

    fn control(&self, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize> {
        self.layer.control(self.handle(), code, input, output)
    }

    fn query(&self, class: FileInfo, output: &mut [u8]) -> OsResult<()> {
        self.layer.around(|| self.handle().query(class, output))
    }

    fn set(&self, class: FileInfo, input: &[u8]) -> OsResult<()> {
        self.layer.set(self.handle(), class, input)
    }

    fn query_fs(&self, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        self.layer.query_fs(self.handle(), class, output)
    }

    fn list(&self, restart: bool, output: &mut [u8]) -> OsResult<()> {
        self.layer.list(self.handle(), restart, output)
    }

    fn final_path(&self, form: PathForm) -> OsResult<U16String> {
        self.layer.final_path(self.handle(), form)
    }

    fn security_descriptor(&self) -> OsResult<SecurityDescriptor> {
        self.layer.around(|| self.handle().security_descriptor())
    }

    fn set_access_list(&self, entries: &[AccessEntry]) -> OsResult<()> {
        self.layer.around(|| self.handle().set_access_list(entries))
    }

    fn read(&self, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        self.layer.read(self.handle(), offset, output)
    }

    fn flush(&self) -> OsResult<()> {
        self.layer.around(|| self.handle().flush())
    }
}

impl<L: Layer> Drop for LayeredHandle<L> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.layer.close(handle);
        }
    }
}
