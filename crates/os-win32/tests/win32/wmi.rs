//! Tests of WMI queries and methods. Tests of broken connections and full queues are beside the
//! pool, with scripted connections.

use std::time::Duration;

use csi_proxy_os_win32::Windows;
use os::{
    CallStatus, Instance, MethodCall, Namespace, Os as _, OsError, OsResult, Returned, Secret,
    Time, Value,
};

use crate::scratch::turn;
use crate::skip::{is_wine, skipped_by_wine};

const LOCAL_MACHINE: Value = Value::U32(0x8000_0002);
const WINDOWS_NT: &str = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion";

fn in_a_minute(windows: &Windows) -> Time {
    windows.clock().now() + Duration::from_mins(1)
}

fn query(wql: &str) -> OsResult<Vec<Instance>> {
    let _turn = turn();
    let windows = Windows::new();
    windows
        .wmi()
        .query(Namespace::CimV2, wql, in_a_minute(&windows))
}

fn call(path: &str, method: &str, arguments: &[(&str, Value)]) -> OsResult<Returned> {
    let _turn = turn();
    let windows = Windows::new();
    match windows.wmi().call(
        &MethodCall::new(Namespace::CimV2, path, method, arguments),
        in_a_minute(&windows),
    )? {
        CallStatus::Done(returned) => Ok(returned),
        CallStatus::StillRunning(_) => Err(OsError::WMI_TIMED_OUT),
    }
}

#[test]
fn properties_have_the_types_that_os_defines() {
    let wql = "SELECT Primary, FreePhysicalMemory, NumberOfUsers, OSType, Name, LastBootUpTime \
               FROM Win32_OperatingSystem";
    let system = &query(wql).unwrap()[0];
    assert_eq!(system.bool("Primary"), Some(true));
    assert!(
        system.u64("FreePhysicalMemory").unwrap() > 0,
        "uint64 is transferred as text"
    );
    assert_eq!(system.u32("OSType"), Some(18), "uint16");
    assert!(system.text("Name").unwrap().contains("Windows"));
    assert_eq!(
        system.text("LastBootUpTime").unwrap().len(),
        25,
        "a datetime is a text"
    );
}

#[test]
fn arrays_have_their_elements_and_null_is_null() {
    let wql = "SELECT IPAddress FROM Win32_NetworkAdapterConfiguration";
    let addresses: Vec<_> = query(wql)
        .unwrap()
        .into_iter()
        .map(|adapter| adapter.properties.into_values().next().unwrap())
        .collect();
    for address in &addresses {
        match address {
            Value::Null => {}
            Value::Array(texts) => {
                assert!(
                    texts.iter().all(|text| matches!(text, Value::Text(_))) && !texts.is_empty()
                );
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(!addresses.is_empty());
}

#[test]
fn a_method_of_a_class_returns_its_code_and_its_output() {
    for key in [
        Value::Text(WINDOWS_NT.into()),
        Value::Secret(Secret::new(WINDOWS_NT.into())),
    ] {
        let arguments = [
            ("hDefKey", LOCAL_MACHINE),
            ("sSubKeyName", key),
            ("sValueName", Value::Text("ProductName".into())),
        ];
        let returned = call("StdRegProv", "GetStringValue", &arguments).unwrap();
        assert_eq!(returned.code, 0);
        assert!(returned.out.text("sValue").unwrap().contains("Windows"));
        assert_eq!(
            returned.out.get("ReturnValue"),
            None,
            "the code is not among the output parameters"
        );
    }

    let arguments = [
        ("hDefKey", LOCAL_MACHINE),
        ("sSubKeyName", Value::Text("SOFTWARE".into())),
    ];
    let returned = call("StdRegProv", "EnumKey", &arguments).unwrap();
    let Some(Value::Array(keys)) = returned.out.get("sNames") else {
        panic!("{returned:?}")
    };
    assert!(keys.contains(&Value::Text("Microsoft".into())));
}

#[test]
fn a_failure_that_a_method_returns_is_a_code_and_not_an_error() {
    let arguments = [
        ("hDefKey", LOCAL_MACHINE),
        ("sSubKeyName", Value::Text(r"SOFTWARE\no such key".into())),
    ];
    assert_eq!(
        call("StdRegProv", "EnumKey", &arguments).unwrap().code,
        OsError::FILE_NOT_FOUND.0
    );
}

#[test]
fn an_unknown_argument_method_or_class_is_refused() {
    for (class, method, arguments) in [
        (
            "StdRegProv",
            "GetStringValue",
            &[("bogus", Value::U32(1))][..],
        ),
        ("StdRegProv", "NoSuchMethod", &[]),
        ("Win32_NoSuchClass", "GetStringValue", &[]),
    ] {
        let code = call(class, method, arguments).unwrap_err();
        assert_eq!(
            code.0 >> 12,
            0x8_0041,
            "{class}.{method}: {code} is not a code of WMI"
        );
    }
}

#[test]
fn many_threads_can_query_at_once() {
    let _turn = turn();
    if is_wine() {
        return skipped_by_wine("two WMI queries at once crash the process");
    }
    let windows = Windows::new();
    let deadline = in_a_minute(&windows);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let bios =
                        windows
                            .wmi()
                            .query(Namespace::CimV2, "SELECT * FROM Win32_BIOS", deadline);
                    assert_eq!(bios.unwrap().len(), 1);
                }
            });
        }
    });
}
