//! Tests of a session with a fake of WMI: COM objects that this process registers in place of WMI's
//! locator.
//!
//! The fake behaves as WMI is documented. These tests therefore show that each call is made
//! correctly, with real variants and arrays. They do not show that WMI behaves as documented.

mod fake_wmi;

use std::time::Duration;

use os::{CallStatus, Clock as _, Instance, Namespace, OsError, Secret, Time, Value};
use windows::Win32::Foundation::E_ACCESSDENIED;
use windows::Win32::System::Com::{RPC_C_AUTHN_LEVEL_PKT_PRIVACY, RPC_C_IMP_LEVEL_IMPERSONATE};
use windows::Win32::System::Wmi::WBEM_E_FAILED;
use windows::core::HRESULT;

use super::Connector;
use crate::clock::Monotonic;
use crate::wmi::pool::{Method, Pool};
use fake_wmi::FakeWmi;

fn pool() -> (Pool<Connector>, Monotonic) {
    let clock = Monotonic::start();
    (
        Pool::new(
            Connector {
                namespace: Namespace::Storage,
                clock,
            },
            clock,
        ),
        clock,
    )
}

const LONG: Time = Time(Duration::from_mins(1));

fn create_partition(arguments: &[(&str, Value)]) -> Method {
    Method {
        path: r#"MSFT_Disk.ObjectId="1""#.to_owned(),
        name: "CreatePartition".to_owned(),
        arguments: arguments
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
    }
}

#[test]
fn every_proxy_that_is_called_is_encrypted_and_allows_impersonation() {
    let fake_wmi = FakeWmi::new();
    let (pool, _) = pool();
    pool.query("SELECT * FROM MSFT_Partition", LONG).unwrap();
    let wanted = (
        true,
        RPC_C_AUTHN_LEVEL_PKT_PRIVACY.0,
        RPC_C_IMP_LEVEL_IMPERSONATE.0,
    );
    fake_wmi.with_state(|state| {
        assert_eq!(
            state.blankets,
            [("services", wanted), ("enumerator", wanted)]
        );
    });
}

#[test]
fn an_object_has_its_path_and_each_property_with_its_type() {
    let _fake_wmi = FakeWmi::new();
    let (pool, _) = pool();
    let found = pool.query("SELECT * FROM MSFT_Partition", LONG).unwrap();
    let partition: &Instance = &found[0];
    assert_eq!(partition.path, r#"MSFT_Partition.ObjectId="1""#);
    assert_eq!(partition.u64("Size"), Some(u64::MAX));
    assert_eq!(partition.u32("DiskNumber"), Some(u32::MAX));
    assert_eq!(partition.bool("IsReadOnly"), Some(true));
    assert_eq!(
        partition.properties["AccessPaths"],
        Value::Null,
        "a null array is not an empty one"
    );
    let Some(Value::Object(disk)) = partition.get("Disk") else {
        panic!("{partition:?}")
    };
    assert_eq!(disk.text("FriendlyName"), Some("Größe 🦀"));
}

#[test]
fn a_query_returns_any_number_of_objects() {
    for count in [0, 1, 15, 16, 17, 32, 100] {
        let fake_wmi = FakeWmi::new();
        fake_wmi.with_state(|state| state.results = count);
        assert_eq!(
            pool()
                .0
                .query("SELECT * FROM MSFT_Partition", LONG)
                .unwrap()
                .len(),
            count
        );
    }
}

#[test]
fn a_query_releases_its_connection_at_its_deadline() {
    let fake_wmi = FakeWmi::new();
    fake_wmi.with_state(|state| state.hangs = true);
    let (pool, clock) = pool();
    // If connections were not released, each of these queries would take another one, until none is
    // left. On a busy machine the deadline can pass before a query has a connection; such a query
    // takes none.
    while fake_wmi.with_state(|state| state.timeouts.len()) < 9 {
        let deadline = clock.now() + Duration::from_millis(100);
        assert_eq!(
            pool.query("SELECT * FROM MSFT_Partition", deadline),
            Err(OsError::WMI_TIMED_OUT)
        );
    }
    fake_wmi.with_state(|state| state.hangs = false);
    assert_eq!(
        pool.query("SELECT * FROM MSFT_Partition", LONG)
            .unwrap()
            .len(),
        1
    );
    fake_wmi.with_state(|state| {
        assert!(
            state
                .timeouts
                .iter()
                .all(|timeout| (1..=60_000).contains(timeout)),
            "{:?}",
            state.timeouts
        );
    });
}

#[test]
fn arguments_are_passed_with_their_types_and_null_ones_are_omitted() {
    let fake_wmi = FakeWmi::new();
    let (pool, _) = pool();
    let arguments = [
        ("Size", Value::Text(u64::MAX.to_string())),
        ("UseMaximumSize", Value::Bool(true)),
        ("MbrType", Value::U32(65_535)),
        ("Alignment", Value::U32(u32::MAX)),
        (
            "GptType",
            Value::Text("{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}".to_owned()),
        ),
        (
            "Password",
            Value::Secret(Secret::new("pä\\ss:wört 🦀".to_owned())),
        ),
        ("DriveLetter", Value::Null),
    ];
    let returned = match pool.call(create_partition(&arguments), LONG) {
        Ok(CallStatus::Done(returned)) => returned,
        Ok(CallStatus::StillRunning(_)) => panic!("the method is still running"),
        Err(error) => panic!("the method failed: {error}"),
    };
    assert_eq!(returned.code, 42_002);
    let Some(Value::Object(partition)) = returned.out.get("CreatedPartition") else {
        panic!("{returned:?}")
    };
    assert_eq!(partition.path, r#"MSFT_Partition.ObjectId="1""#);
    fake_wmi.with_state(|state| {
        assert_eq!(
            state.called,
            [(
                r#"MSFT_Disk.ObjectId="1""#.to_owned(),
                "CreatePartition".to_owned()
            )]
        );
        let passed: Vec<_> = state
            .arguments
            .iter()
            .map(|(name, kind, text)| (&**name, &**kind, &**text))
            .collect();
        assert_eq!(
            passed,
            [
                ("Size", "BSTR", "18446744073709551615"),
                ("UseMaximumSize", "BOOL", "true"),
                ("MbrType", "I4", "65535"),
                ("Alignment", "I4", "-1"),
                ("GptType", "BSTR", "{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}"),
                ("Password", "BSTR", "pä\\ss:wört 🦀"),
            ]
        );
    });
}

#[test]
fn the_code_that_a_provider_posts_is_that_of_the_error() {
    for (kind, code, expected) in [
        ("WIN32", 1219, OsError::SESSION_CREDENTIAL_CONFLICT),
        ("Win32", 87, OsError::INVALID_PARAMETER),
        (
            "HRESULT",
            0xefff_003f,
            OsError::ISDSC_TARGET_ALREADY_LOGGED_IN,
        ),
        ("HRESULT", 0x8007_0035, OsError::BAD_NETPATH),
        ("WIN32", 170, OsError::BUSY),
        ("WIN32", 1722, OsError(0x8007_06ba)),
        ("HRESULT", 0x8007_06be, OsError(0x8007_06be)),
        ("WIN32", 0, OsError::WBEM_FAILED),
        ("MI", 1, OsError::WBEM_FAILED),
    ] {
        let fake_wmi = FakeWmi::new();
        fake_wmi.with_state(|state| {
            state.method_error = Some(HRESULT(WBEM_E_FAILED.0));
            state.posted = Some((kind, code));
        });
        let (pool, _) = pool();
        assert_eq!(
            pool.call(create_partition(&[]), LONG).err(),
            Some(expected),
            "{kind} {code}"
        );
        // The object does not stay for the next error.
        for (code, expected) in [
            (HRESULT(WBEM_E_FAILED.0), OsError::WBEM_FAILED),
            (E_ACCESSDENIED, OsError::ACCESS_DENIED),
        ] {
            fake_wmi.with_state(|state| {
                state.method_error = Some(code);
                state.posted = None;
            });
            assert_eq!(pool.call(create_partition(&[]), LONG).err(), Some(expected));
        }
    }
}
