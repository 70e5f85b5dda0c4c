//! Windows Management Instrumentation (WMI): queries, and methods that may run longer than their
//! caller waits.

use std::collections::BTreeMap;

use crate::{OsError, OsResult, Secret, Time};

/// A WMI namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Namespace {
    /// `root\cimv2`.
    CimV2,
    /// `root\Microsoft\Windows\Storage`: disks, partitions, volumes.
    Storage,
    /// The same namespace, through connections of its own: calls of the iSCSI initiator wait for
    /// servers.
    Iscsi,
    /// `root\Microsoft\Windows\SMB`.
    Smb,
}

impl Namespace {
    /// All namespaces, in the order of the variants.
    pub const ALL: [Self; 4] = [Self::CimV2, Self::Storage, Self::Iscsi, Self::Smb];

    /// Returns the path of the namespace.
    pub const fn path(self) -> &'static str {
        match self {
            Self::CimV2 => r"root\cimv2",
            Self::Storage | Self::Iscsi => r"root\Microsoft\Windows\Storage",
            Self::Smb => r"root\Microsoft\Windows\SMB",
        }
    }
}

/// The value of a property or argument, of one of WMI's types.
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
    /// A `string` argument that is never printed.
    Secret(Secret),
    /// An array.
    Array(Vec<Value>),
    /// An embedded object, such as a method's `CreatedPartition`.
    Object(Box<Instance>),
}

/// A WMI object: the result of a query, or an output parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    /// The `__RELPATH`, by which its methods are called; empty for an object without a key.
    pub path: String,
    /// The properties, by their names in the class.
    pub properties: BTreeMap<String, Value>,
}

impl Instance {
    /// Returns the property `name` if the object has it and it is not null. Names are compared
    /// without case.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let value = self.properties.get(name).or_else(|| {
            self.properties
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value)
        });
        value.filter(|value| !matches!(value, Value::Null))
    }

    /// Returns the text property `name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the property `name` of 32 bits or fewer.
    pub fn u32(&self, name: &str) -> Option<u32> {
        match self.get(name)? {
            Value::U32(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the 64-bit property `name`, which WMI transfers as text.
    pub fn u64(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Returns the code of Windows in an error object that a provider has posted, an
    /// `MSFT_WmiError`.
    ///
    /// `error_Type` says what kind of code `error_Code` is. Where they are missing or of another
    /// kind, `MessageID` may have the code, as PowerShell shows it: `Windows System Error 1219`,
    /// `HRESULT 0x800704c3`.
    ///
    /// `RPC_SERVER_UNAVAILABLE` and `RPC_CALL_FAILED` mean that the connection to WMI itself broke.
    /// A provider that posts them has answered, so they are kept as `HRESULT`s here: `0x800706ba`,
    /// `0x800706be`.
    /// <https://learn.microsoft.com/previous-versions/windows/desktop/wmi_v2/msft-wmierror>
    pub fn posted_code(&self) -> Option<OsError> {
        let of_kind = |kind: &str, code: u32| {
            if kind.eq_ignore_ascii_case("WIN32") {
                Some(OsError(code))
            } else if kind.eq_ignore_ascii_case("HRESULT") {
                Some(OsError::from_hresult(code))
            } else {
                None
            }
        };
        let code = self
            .u32("error_Code")
            .and_then(|code| of_kind(self.text("error_Type")?, code));
        let from_message = || {
            let message = self.text("MessageID")?;
            let (kind, code) = match message.strip_prefix("Windows System Error ") {
                Some(number) => ("WIN32", number.parse().ok()?),
                None => (
                    "HRESULT",
                    u32::from_str_radix(message.strip_prefix("HRESULT 0x")?, 16).ok()?,
                ),
            };
            of_kind(kind, code)
        };
        let code = code
            .filter(|code| code.0 != 0)
            .or_else(from_message)
            .filter(|code| code.0 != 0)?;
        let is_of_rpc = [OsError::RPC_SERVER_UNAVAILABLE, OsError::RPC_CALL_FAILED].contains(&code);
        Some(if is_of_rpc {
            OsError(0x8007_0000 | code.0)
        } else {
            code
        })
    }

    /// Returns the boolean property `name`.
    pub fn bool(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

/// A call of a WMI method.
#[derive(Clone, Copy, Debug)]
pub struct MethodCall<'a> {
    /// The namespace of the object.
    pub namespace: Namespace,
    /// The `__RELPATH` of the object, or the name of the class for a static method.
    pub path: &'a str,
    /// The name of the method.
    pub method: &'a str,
    /// The arguments by name. Those that are missing are null.
    pub arguments: &'a [(&'a str, Value)],
}

impl<'a> MethodCall<'a> {
    /// Returns a call of `method` of the object or class at `path`.
    pub fn new(
        namespace: Namespace,
        path: &'a str,
        method: &'a str,
        arguments: &'a [(&'a str, Value)],
    ) -> Self {
        Self {
            namespace,
            path,
            method,
            arguments,
        }
    }
}

/// The result of a WMI method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Returned {
    /// The `ReturnValue`: 0 is success; the class defines the other values.
    pub code: u32,
    /// The output parameters, without `ReturnValue`.
    pub out: Instance,
}

/// The status of a method call when it has ended or its deadline has passed.
pub enum CallStatus {
    /// The method has ended.
    Done(Returned),
    /// The method is still running, and cannot be cancelled.
    StillRunning(Box<dyn PendingCall>),
}

/// A method call that is still running although its caller has stopped waiting.
pub trait PendingCall: Send {
    /// Runs `then` when the call has ended, on any thread; at once if the call has already ended.
    fn when_ended(self: Box<Self>, then: Box<dyn FnOnce() + Send>);
}

/// The most objects that a query returns, so that no list can fill the memory.
pub const MAX_OBJECTS: usize = 4096;

/// Access to WMI. The implementation keeps the connections and reconnects.
pub trait Wmi: Send + Sync {
    /// Returns the objects that a WQL query (`SELECT` or `ASSOCIATORS OF`) finds.
    ///
    /// Errors: WMI's codes; `WMI_TIMED_OUT` if the query has not ended by `deadline`, or no
    /// connection was free in time; `WMI_QUEUE_FULL` if too many requests wait for a connection;
    /// `WMI_TOO_MANY_OBJECTS` if there are more than [`MAX_OBJECTS`].
    /// <https://learn.microsoft.com/windows/win32/api/wbemcli/nf-wbemcli-iwbemservices-execquery>
    fn query(&self, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>>;

    /// Calls a method.
    ///
    /// Errors: WMI's codes, and those that the provider posts: Win32 codes of the SMB classes,
    /// codes of the iSCSI initiator (`ISDSC_...`). With `WMI_TIMED_OUT` (no connection was free in
    /// time) or `WMI_QUEUE_FULL` (too many requests wait for a connection), the method was not
    /// called. With `RPC_CALL_FAILED` or `WBEM_TRANSPORT_FAILURE` it is unknown whether the method
    /// was called, and the caller must read the state. A provider that posts such a code of RPC,
    /// with which the method has ended, is distinguished: its code is kept as an `HRESULT`,
    /// `0x8007....`.
    /// <https://learn.microsoft.com/windows/win32/api/wbemcli/nf-wbemcli-iwbemservices-execmethod>
    fn call(&self, call: &MethodCall<'_>, deadline: Time) -> OsResult<CallStatus>;
}

/// Returns the class in the path of a class or of an instance, such as `MSFT_Disk.ObjectId="..."`
/// or `MSFT_StorageSetting=@`.
pub fn class_of(path: &str) -> &str {
    path.split(['.', '=']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::{Instance, Value, class_of};
    use crate::OsError;

    fn posted(properties: &[(&str, Value)]) -> Option<OsError> {
        let properties = properties
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        Instance {
            path: String::new(),
            properties,
        }
        .posted_code()
    }

    #[test]
    fn a_posted_error_has_its_code_by_type_or_in_the_id_of_its_message() {
        let text = |text: &str| Value::Text(text.to_owned());
        let typed = |kind: &str, code: u32| {
            posted(&[("error_Type", text(kind)), ("error_Code", Value::U32(code))])
        };
        assert_eq!(
            typed("Win32", 1219),
            Some(OsError::SESSION_CREDENTIAL_CONFLICT)
        );
        assert_eq!(
            typed("HRESULT", 0x8007_04c3),
            Some(OsError::SESSION_CREDENTIAL_CONFLICT)
        );
        assert_eq!(
            typed("HRESULT", 0x8004_1010),
            Some(OsError::WBEM_INVALID_CLASS)
        );
        assert_eq!(
            (typed("MI", 1), typed("Win32", 0)),
            (None, None),
            "not a code of Windows"
        );
        for (kind, code) in [("Win32", 1722), ("HRESULT", 0x8007_06ba)] {
            assert_eq!(
                typed(kind, code),
                Some(OsError(0x8007_06ba)),
                "the connection to WMI has not broken"
            );
        }
        for (id, code) in [
            ("Windows System Error 53", 53),
            ("HRESULT 0x80070056", 86),
            ("HRESULT 0x80041001", 0x8004_1001),
        ] {
            assert_eq!(
                posted(&[("MessageID", text(id))]),
                Some(OsError(code)),
                "{id}"
            );
            let other = [
                ("MessageID", text(id)),
                ("error_Type", text("MI")),
                ("error_Code", Value::U32(1)),
            ];
            assert_eq!(posted(&other), Some(OsError(code)), "{id}");
        }
        for id in [
            "",
            "MI RESULT 1",
            "Windows System Error",
            "Windows System Error 0",
            "HRESULT 0x",
            "HRESULT 0xfffffffff",
        ] {
            assert_eq!(posted(&[("MessageID", text(id))]), None, "{id}");
        }
    }

    #[test]
    fn a_path_begins_with_its_class() {
        assert_eq!(
            class_of(r#"MSFT_Disk.ObjectId="{1}\\\\NODE\\root/x:MSFT_Disk.y=""#),
            "MSFT_Disk"
        );
        assert_eq!(class_of("MSFT_StorageSetting=@"), "MSFT_StorageSetting");
        assert_eq!(class_of("MSFT_SmbGlobalMapping"), "MSFT_SmbGlobalMapping");
    }
}
