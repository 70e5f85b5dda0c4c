//! Ways to alter the outcome of one call.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use faults::Layer;
use os::abi::ControlCode;
use os::{
    CallStatus, FileInfo, FsInfo, Handle, Instance, MethodCall, Namespace, Os, OsResult, PathForm, Returned, Service,
    ServiceConfig, Time, U16Str, U16String, Uuid, Value, Wmi,
};

/// A way to alter the outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alteration {
    /// The call has its effect and fails with a code that no check expects.
    Fail,
    /// The WMI method returns this code.
    Return(u32),
    /// Buffers are filled with zeros; lists, texts and objects are empty.
    Empty,
    /// Each byte of a buffer, each text and each property has another value.
    Change,
}

impl Alteration {
    /// The alterations of what a successful call returns.
    pub(crate) const OF_ANSWERS: [Self; 3] = [Self::Return(0xdead), Self::Empty, Self::Change];
}

/// The number of the call that is being made.
pub(crate) type Progress = Arc<AtomicU64>;

/// A layer that alters what one call returns.
pub(crate) struct AlteredAnswer {
    /// The number of the call, and how to alter it.
    pub(crate) alter: Option<(u64, Alteration)>,
    pub(crate) progress: Progress,
    /// The numbers of the calls that returned something to alter.
    pub(crate) answers: Arc<Mutex<BTreeSet<u64>>>,
}

impl AlteredAnswer {
    /// Returns the answer of the call that was just made, altered if it is the chosen one.
    fn alter<T: Answer>(&self, mut answer: T) -> T {
        let current = self.progress.load(Ordering::SeqCst);
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).insert(current);
        if let Some((call, alteration)) = self.alter
            && call == current
        {
            answer.alter(alteration);
        }
        answer
    }

    /// Returns how many bytes of a buffer are filled, altered together with these bytes.
    fn alter_filled(&self, output: &mut [u8], filled: usize) -> usize {
        let length = filled.min(output.len());
        let (filled, _) = self.alter((filled, &mut output[..length]));
        filled
    }
}

/// Something that a call returns.
trait Answer {
    fn alter(&mut self, alteration: Alteration);
}

impl Answer for &mut [u8] {
    fn alter(&mut self, alteration: Alteration) {
        match alteration {
            Alteration::Empty => self.fill(0),
            Alteration::Change => self.iter_mut().for_each(|byte| *byte = !*byte),
            Alteration::Fail | Alteration::Return(_) => {}
        }
    }
}

/// The number of bytes that a call returned, and the bytes.
impl Answer for (usize, &mut [u8]) {
    fn alter(&mut self, alteration: Alteration) {
        self.1.alter(alteration);
        if alteration == Alteration::Empty {
            self.0 = 0;
        }
    }
}

impl Answer for u32 {
    fn alter(&mut self, alteration: Alteration) {
        match alteration {
            Alteration::Empty => *self = 0,
            Alteration::Change => *self = !*self,
            Alteration::Fail | Alteration::Return(_) => {}
        }
    }
}

impl Answer for U16String {
    fn alter(&mut self, alteration: Alteration) {
        match alteration {
            Alteration::Empty => self.clear(),
            Alteration::Change => self.push_str("altered"),
            Alteration::Fail | Alteration::Return(_) => {}
        }
    }
}

impl Answer for ServiceConfig {
    fn alter(&mut self, alteration: Alteration) {
        self.display_name.alter(alteration);
        self.start_type.alter(alteration);
    }
}

impl<T: Answer + Default> Answer for Vec<T> {
    fn alter(&mut self, alteration: Alteration) {
        match alteration {
            Alteration::Empty => self.clear(),
            Alteration::Change if self.is_empty() => self.push(T::default()),
            _ => self.iter_mut().for_each(|item| item.alter(alteration)),
        }
    }
}

impl Answer for Instance {
    fn alter(&mut self, alteration: Alteration) {
        match alteration {
            Alteration::Empty => self.properties.clear(),
            Alteration::Change => self.properties.values_mut().for_each(change),
            Alteration::Fail | Alteration::Return(_) => {}
        }
    }
}

impl Answer for CallStatus {
    fn alter(&mut self, alteration: Alteration) {
        match (self, alteration) {
            (status, Alteration::Return(code)) => *status = Self::Done(Returned { code, ..Returned::default() }),
            (Self::Done(returned), alteration) => returned.out.alter(alteration),
            (Self::StillRunning(_), _) => {}
        }
    }
}

/// Replaces a property with another value of the same type.
fn change(value: &mut Value) {
    match value {
        Value::Null => *value = Value::U32(0xdead),
        Value::Bool(truth) => *truth = !*truth,
        Value::U32(number) => *number = !*number,
        Value::Text(text) if text.parse::<u64>().is_ok() => text.insert(0, '7'),
        Value::Text(text) => text.push_str("altered"),
        Value::Array(items) if items.is_empty() => items.push(Value::U32(0xdead)),
        Value::Array(items) => items.iter_mut().for_each(change),
        Value::Object(object) => object.alter(Alteration::Change),
        Value::Secret(_) => {}
    }
}

impl Layer for AlteredAnswer {
    fn device_interfaces(&self, node: &dyn Os, class: Uuid) -> OsResult<Vec<U16String>> {
        Ok(self.alter(node.device_interfaces(class)?))
    }

    fn volumes(&self, node: &dyn Os) -> OsResult<Vec<U16String>> {
        Ok(self.alter(node.volumes()?))
    }

    fn volume_paths(&self, node: &dyn Os, volume: &U16Str) -> OsResult<Vec<U16String>> {
        Ok(self.alter(node.volume_paths(volume)?))
    }

    fn firmware_table(&self, node: &dyn Os, provider: u32, table: u32, output: &mut [u8]) -> OsResult<usize> {
        let size = node.firmware_table(provider, table, output)?;
        Ok(self.alter_filled(output, size))
    }

    fn registry_text(&self, node: &dyn Os, key: &U16Str, value: &U16Str) -> OsResult<U16String> {
        Ok(self.alter(node.registry_text(key, value)?))
    }

    fn control(&self, handle: &dyn Handle, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize> {
        let filled = handle.control(code, input, output)?;
        // Codes without an answer have none to alter.
        Ok(if output.is_empty() { filled } else { self.alter_filled(output, filled) })
    }

    fn query(&self, handle: &dyn Handle, class: FileInfo, output: &mut [u8]) -> OsResult<()> {
        handle.query(class, output)?;
        self.alter(output);
        Ok(())
    }

    fn query_fs(&self, handle: &dyn Handle, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        let filled = handle.query_fs(class, output)?;
        Ok(self.alter_filled(output, filled))
    }

    fn list(&self, handle: &dyn Handle, restart: bool, output: &mut [u8]) -> OsResult<()> {
        handle.list(restart, output)?;
        self.alter(output);
        Ok(())
    }

    fn final_path(&self, handle: &dyn Handle, form: PathForm) -> OsResult<U16String> {
        Ok(self.alter(handle.final_path(form)?))
    }

    fn read(&self, handle: &dyn Handle, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        let filled = handle.read(offset, output)?;
        Ok(self.alter_filled(output, filled))
    }

    fn service_config(&self, service: &dyn Service) -> OsResult<ServiceConfig> {
        Ok(self.alter(service.config()?))
    }

    fn service_state(&self, service: &dyn Service) -> OsResult<u32> {
        Ok(self.alter(service.state()?))
    }

    fn active_dependents(&self, service: &dyn Service) -> OsResult<Vec<U16String>> {
        Ok(self.alter(service.active_dependents()?))
    }

    fn wmi_query(&self, wmi: &dyn Wmi, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        Ok(self.alter(wmi.query(namespace, wql, deadline)?))
    }

    fn wmi_call(&self, wmi: &dyn Wmi, call: &MethodCall<'_>, deadline: Time) -> OsResult<CallStatus> {
        Ok(self.alter(wmi.call(call, deadline)?))
    }
}
