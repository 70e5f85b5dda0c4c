//! A session against a WMI of the tests' own: COM objects that this process registers in the place of WMI's locator.
//!
//! What they answer is WMI's behaviour as its documentation has it, so these tests show that our side of each call is
//! what it should be, with real variants and arrays; not that WMI keeps its word.

mod fake_wmi;

use std::time::Duration;

use os::{CallStatus, Clock as _, Instance, Namespace, OsError, Secret, Time, Value};
use windows::Win32::Foundation::E_ACCESSDENIED;
use windows::Win32::System::Com::{RPC_C_AUTHN_LEVEL_PKT_PRIVACY, RPC_C_IMP_LEVEL_IMPERSONATE};

use super::{Connector, class_of};
use crate::clock::Monotonic;
use crate::wmi::pool::{Method, Pool};
use fake_wmi::{SERVER_UNAVAILABLE, StandIn};

fn pool() -> (Pool<Connector>, Monotonic) {
    let clock = Monotonic::start();
    (Pool::new(Connector { namespace: Namespace::Storage, clock }, clock), clock)
}

const LONG: Time = Time(Duration::from_mins(1));

fn create_partition(arguments: &[(&str, Value)]) -> Method {
    Method {
        path: r#"MSFT_Disk.ObjectId="1""#.to_owned(),
        name: "CreatePartition".to_owned(),
        arguments: arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
    }
}

#[test]
fn a_path_begins_with_its_class() {
    assert_eq!(class_of(r#"MSFT_Disk.ObjectId="{1}\\\\NODE\\root/x:MSFT_Disk.y=""#), "MSFT_Disk");
    assert_eq!(class_of("MSFT_StorageSetting=@"), "MSFT_StorageSetting");
    assert_eq!(class_of("MSFT_SmbGlobalMapping"), "MSFT_SmbGlobalMapping");
}

#[test]
fn every_proxy_that_is_called_is_encrypted_and_may_impersonate() {
    let stand_in = StandIn::new();
    let (pool, _) = pool();
    pool.query("SELECT * FROM MSFT_Partition", LONG).unwrap();
    let wanted = (true, RPC_C_AUTHN_LEVEL_PKT_PRIVACY.0, RPC_C_IMP_LEVEL_IMPERSONATE.0);
    stand_in.look(|world| assert_eq!(world.blankets, [("services", wanted), ("answers", wanted)]));
}

#[test]
fn an_object_comes_with_its_path_and_each_property_in_its_form() {
    let _stand_in = StandIn::new();
    let (pool, _) = pool();
    let found = pool.query("SELECT * FROM MSFT_Partition", LONG).unwrap();
    let partition: &Instance = &found[0];
    assert_eq!(partition.path, r#"MSFT_Partition.ObjectId="1""#);
    assert_eq!(partition.u64("Size"), Some(u64::MAX));
    assert_eq!(partition.u32("DiskNumber"), Some(u32::MAX));
    assert_eq!(partition.bool("IsReadOnly"), Some(true));
    assert_eq!(partition.properties["AccessPaths"], Value::Null, "an array without a value is not an empty one");
    let Some(Value::Object(disk)) = partition.get("Disk") else { panic!("{partition:?}") };
    assert_eq!(disk.text("FriendlyName"), Some("Größe 🦀"));
}

#[test]
fn answers_come_however_many_there_are() {
    for count in [0, 1, 15, 16, 17, 32, 100] {
        let stand_in = StandIn::new();
        stand_in.look(|world| world.answers = count);
        assert_eq!(pool().0.query("SELECT * FROM MSFT_Partition", LONG).unwrap().len(), count);
    }
}

#[test]
fn a_query_gives_its_connection_back_when_its_time_is_up() {
    let stand_in = StandIn::new();
    stand_in.look(|world| world.hangs = true);
    let (pool, clock) = pool();
    let deadline = clock.now() + Duration::from_millis(100);
    assert_eq!(pool.query("SELECT * FROM MSFT_Partition", deadline), Err(OsError::WAIT_TIMEOUT));
    // Were it not given back, each of these would take another connection, and the last none.
    for _ in 0..8 {
        let deadline = clock.now() + Duration::from_millis(10);
        assert_eq!(pool.query("SELECT * FROM MSFT_Partition", deadline), Err(OsError::WAIT_TIMEOUT));
    }
    stand_in.look(|world| world.hangs = false);
    assert_eq!(pool.query("SELECT * FROM MSFT_Partition", LONG).unwrap().len(), 1);
    stand_in.look(|world| assert!(world.patience.iter().all(|&patience| (1..=60_000).contains(&patience))));
}

#[test]
fn when_the_service_has_restarted_a_query_is_asked_over_a_new_connection() {
    let stand_in = StandIn::new();
    let (pool, _) = pool();
    pool.query("SELECT * FROM MSFT_Partition", LONG).unwrap();
    stand_in.look(|world| world.broken = world.connections);
    assert_eq!(pool.query("SELECT * FROM MSFT_Partition", LONG).unwrap().len(), 1);
    stand_in.look(|world| assert_eq!(world.connections, world.broken + 1));
}

#[test]
fn arguments_arrive_in_the_form_of_their_type_and_null_ones_are_left_out() {
    let stand_in = StandIn::new();
    let (pool, _) = pool();
    let arguments = [
        ("Size", Value::Text(u64::MAX.to_string())),
        ("UseMaximumSize", Value::Bool(true)),
        ("MbrType", Value::U32(65_535)),
        ("Alignment", Value::U32(u32::MAX)),
        ("GptType", Value::Text("{ebd0a0a2-b9e5-4433-87c0-68b6b72699c7}".to_owned())),
        ("Password", Value::Secret(Secret::new("pä\\ss:wört 🦀".to_owned()))),
        ("DriveLetter", Value::Null),
    ];
    let Ok(CallStatus::Done(returned)) = pool.call(create_partition(&arguments), LONG) else { panic!("it has failed") };
    assert_eq!(returned.code, 42_002);
    let Some(Value::Object(partition)) = returned.out.get("CreatedPartition") else { panic!("{returned:?}") };
    assert_eq!(partition.path, r#"MSFT_Partition.ObjectId="1""#);
    stand_in.look(|world| {
        assert_eq!(world.called, [(r#"MSFT_Disk.ObjectId="1""#.to_owned(), "CreatePartition".to_owned())]);
        let arrived: Vec<_> = world.arguments.iter().map(|(name, form, text)| (&**name, &**form, &**text)).collect();
        assert_eq!(
            arrived,
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
fn a_method_that_windows_refuses_is_an_error_with_windows_code() {
    let stand_in = StandIn::new();
    stand_in.look(|world| world.refuses = Some(E_ACCESSDENIED));
    assert_eq!(pool().0.call(create_partition(&[]), LONG).err(), Some(OsError::ACCESS_DENIED));
}

#[test]
fn a_method_is_sent_once_even_if_the_service_goes_away_meanwhile() {
    let stand_in = StandIn::new();
    stand_in.look(|world| world.refuses = Some(SERVER_UNAVAILABLE));
    let (pool, _) = pool();
    assert_eq!(pool.call(create_partition(&[]), LONG).err(), Some(OsError::RPC_SERVER_UNAVAILABLE));
    assert_eq!(stand_in.look(|world| world.called.len()), 1);
}

#[test]
fn an_argument_that_the_method_does_not_have_is_refused_before_it_is_called() {
    let stand_in = StandIn::new();
    assert!(pool().0.call(create_partition(&[("NoSuchArgument", Value::U32(1))]), LONG).is_err());
    assert!(stand_in.look(|world| world.called.is_empty()));
}

#[test]
fn a_namespace_that_is_not_there_is_an_error() {
    let stand_in = StandIn::new();
    stand_in.look(|world| world.namespace = r"root\other");
    assert_eq!(pool().0.query("SELECT * FROM MSFT_Partition", LONG), Err(OsError::WBEM_INVALID_NAMESPACE));
}
