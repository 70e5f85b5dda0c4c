//! Windows Management Instrumentation: queries, and methods that may outlive their caller.

use std::collections::BTreeMap;

use crate::{OsResult, Secret, Time};

/// A WMI namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Namespace {
    /// `root\cimv2`.
    CimV2,
    /// `root\Microsoft\Windows\Storage`: disks, partitions, volumes, iSCSI.
    Storage,
    /// `root\Microsoft\Windows\SMB`.
    Smb,
}

impl Namespace {
    /// Its path.
    pub const fn path(self) -> &'static str {
        match self {
            Self::CimV2 => r"root\cimv2",
            Self::Storage => r"root\Microsoft\Windows\Storage",
            Self::Smb => r"root\Microsoft\Windows\SMB",
        }
    }
}

/// A property or argument, in the forms WMI's variants have.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// `boolean`.
    Bool(bool),
    /// `uint8`, `uint16` and `uint32`.
    U32(u32),
    /// `string`; also `uint64` and `sint64`, in decimal.
    Text(String),
    /// A `string` argument that must never be shown.
    Secret(Secret),
    /// An array.
    Array(Vec<Value>),
    /// An embedded object, such as a method's `CreatedPartition`.
    Object(Box<Instance>),
}

/// An object WMI answered with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    /// Its `__RELPATH`, by which a method is called on it; empty for what has no key.
    pub path: String,
    /// Its properties, with the names the class gives them.
    pub properties: BTreeMap<String, Value>,
}

impl Instance {
    /// The property `name`, if it is there and not null. Names compare without case.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let value = self
            .properties
            .get(name)
            .or_else(|| self.properties.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value));
        value.filter(|value| !matches!(value, Value::Null))
    }

    /// The text property `name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The 32-bit (or smaller) property `name`.
    pub fn u32(&self, name: &str) -> Option<u32> {
        match self.get(name)? {
            Value::U32(number) => Some(*number),
            _ => None,
        }
    }

    /// The 64-bit property `name`, which travels as text.
    pub fn u64(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// The boolean property `name`.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

/// What a method returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Returned {
    /// Its `ReturnValue`: 0 is success, all else is the class's own.
    pub code: u32,
    /// Its output parameters, without `ReturnValue`.
    pub out: Instance,
}

/// What has become of a method call when its deadline came.
pub enum CallStatus {
    /// It has ended.
    Done(Returned),
    /// It goes on; nothing can stop it.
    StillRunning(Box<dyn PendingCall>),
}

/// A method call that goes on without its caller.
pub trait PendingCall: Send {
    /// Runs `then` once the call has ended, at once if it has already, on whatever thread notices.
    fn when_ended(self: Box<Self>, then: Box<dyn FnOnce() + Send>);
}

/// A connection to WMI, kept and renewed by whoever implements it.
pub trait Wmi: Send + Sync {
    /// The answers to a WQL query (`SELECT` or `ASSOCIATORS OF`).
    ///
    /// Errors: WMI's codes; `WAIT_TIMEOUT` when `deadline` came first.
    /// <https://learn.microsoft.com/windows/win32/api/wbemcli/nf-wbemcli-iwbemservices-execquery>
    fn query(&self, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>>;

    /// Calls `method` of the object or class at `path` with `arguments`, those left out being null.
    ///
    /// Errors: WMI's codes. After `WAIT_TIMEOUT` and `BUSY` (no connection was free in time, or too many wait for
    /// one) nothing was done; after `RPC_CALL_FAILED` or `WBEM_TRANSPORT_FAILURE` nobody knows, and the state must be
    /// read.
    /// <https://learn.microsoft.com/windows/win32/api/wbemcli/nf-wbemcli-iwbemservices-execmethod>
    fn call(
        &self,
        namespace: Namespace,
        path: &str,
        method: &str,
        arguments: &[(&str, Value)],
        deadline: Time,
    ) -> OsResult<CallStatus>;
}
