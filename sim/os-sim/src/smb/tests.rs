//! The rules of global mappings, which are those of Windows' SMB client.

use std::time::Duration;

use os::{OsError, OsResult, Secret, Uuid, Value};

use super::{ALREADY_ASSIGNED, CONNECT_TIMEOUT, Credential, GLOBAL_MAPPING, Server, Share, Smb, Status, User};
use crate::wmi::method_call::INVALID_METHOD_PARAMETERS;
use crate::wmi::wql::ObjectPath;

const DATA: Uuid = Uuid::from_u128(1);
const PUBLIC: Uuid = Uuid::from_u128(2);

fn network() -> Smb {
    let mut server = Server::new("nas");
    server.shares = vec![
        Share { name: "Data".to_owned(), tree: DATA, guest: false },
        Share { name: "public".to_owned(), tree: PUBLIC, guest: true },
    ];
    server.users = vec![User::new(r"AZURE\acct", "right:1"), User::new("anna", "right:2")];
    let mut dead = Server::new("dead");
    dead.reachable = false;
    Smb { servers: vec![server, dead], ..Smb::default() }
}

fn map(smb: &mut Smb, remote: &str, credential: Option<&str>) -> u32 {
    let credential = credential.map_or(Value::Null, |text| Value::Secret(Secret::new(text.to_owned())));
    let arguments = [
        ("RemotePath", Value::Text(remote.to_owned())),
        ("RequirePrivacy", Value::Bool(true)),
        ("Credential", credential),
    ];
    smb.call(&ObjectPath::class(GLOBAL_MAPPING), "Create", &arguments).expect("an answer").code
}

fn unmap(smb: &mut Smb, remote: &str) -> OsResult<u32> {
    let target = ObjectPath::object(GLOBAL_MAPPING, "RemotePath", remote);
    Ok(smb.call(&target, "Remove", &[("Force", Value::Bool(true))])?.code)
}

#[test]
fn a_share_can_be_opened_while_it_is_mapped() {
    let mut smb = network();
    assert_eq!(smb.open(r"\\nas\data"), Err(OsError::LOGON_FAILURE));
    assert_eq!(map(&mut smb, r"\\NAS\data", Some(r"azure\\ACCT:right:1")), 0);
    assert_eq!(smb.open(r"\\nas\DATA\dir\file"), Ok(DATA));
    let rows = smb.rows();
    assert_eq!((rows[0].text("RemotePath"), rows[0].u32("Status")), (Some(r"\\nas\data"), Some(0)));
    assert_eq!(rows[0].path, r#"MSFT_SmbGlobalMapping.RemotePath="\\\\nas\\data""#);
    assert_eq!(rows[0].bool("RequirePrivacy"), Some(true));

    assert_eq!(unmap(&mut smb, r"\\nas\data"), Ok(0));
    assert!(smb.rows().is_empty());
    assert_eq!(unmap(&mut smb, r"\\nas\data"), Err(OsError::WBEM_NOT_FOUND));
}

#[test]
fn a_mapping_that_cannot_be_created_fails_with_the_code_of_windows() {
    let mut smb = network();
    for (remote, credential, error) in [
        (r"\\unknown\data", Some("anna:right:2"), OsError::BAD_NETPATH),
        (r"\\dead\data", Some("anna:right:2"), OsError::BAD_NETPATH),
        (r"\\nas\nothing", Some("anna:right:2"), OsError::BAD_NET_NAME),
        (r"\\nas", Some("anna:right:2"), OsError::BAD_NET_NAME),
        (r"\\nas\data", Some("anna:wrong"), OsError::LOGON_FAILURE),
        (r"\\nas\data", Some("otto:right:2"), OsError::LOGON_FAILURE),
        (r"\\nas\data", None, OsError::LOGON_FAILURE),
        (r"\\nas\data", Some(r"AZURE\acct:right:1"), OsError::INVALID_PARAMETER),
        (r"\\nas\data", Some("anna"), OsError::INVALID_PARAMETER),
    ] {
        assert_eq!(map(&mut smb, remote, credential), error.0, "{remote} {credential:?}");
    }
    assert!(smb.mappings().is_empty());
}

#[test]
fn all_mappings_to_a_server_must_have_the_same_user() {
    let mut smb = network();
    assert_eq!(map(&mut smb, r"\\nas\data", Some("anna:right:2")), 0);
    assert_eq!(map(&mut smb, r"\\nas\data", Some("anna:right:2")), ALREADY_ASSIGNED.0);
    assert_eq!(map(&mut smb, r"\\nas\public", Some(r"AZURE\\acct:right:1")), 1219);
    assert_eq!(map(&mut smb, r"\\nas\public", Some("anna:wrong")), 86);
    assert_eq!(map(&mut smb, r"\\nas\public", Some("anna:right:2")), 0);
}

#[test]
fn a_guest_can_open_a_share_that_allows_guests() {
    let mut smb = network();
    assert_eq!(smb.open(r"\\nas\public"), Ok(PUBLIC));
    assert_eq!(map(&mut smb, r"\\nas\public", Some("")), 0);
    assert_eq!(smb.open(r"\\nas\public"), Ok(PUBLIC));
    assert_eq!(smb.mappings()[0].user, None);
}

#[test]
fn after_a_reboot_a_mapping_is_disconnected_until_it_is_used() {
    let mut smb = network();
    map(&mut smb, r"\\nas\data", Some("anna:right:2"));
    smb.reboot();
    assert_eq!(smb.rows()[0].u32("Status"), Some(Status::Disconnected as u32));
    assert_eq!(smb.open(r"\\nas\data"), Ok(DATA));
    assert_eq!(smb.rows()[0].u32("Status"), Some(0));
}

#[test]
fn a_mapping_with_an_old_password_has_status_ok_but_cannot_be_used() {
    let mut smb = network();
    map(&mut smb, r"\\nas\data", Some("anna:right:2"));
    assert!(smb.rotate("NAS", "anna", "new"));
    assert!(!smb.rotate("nas", "unknown", "new"));
    assert_eq!(smb.open(r"\\nas\data"), Err(OsError::LOGON_FAILURE));
    assert_eq!(smb.rows()[0].u32("Status"), Some(0));
    unmap(&mut smb, r"\\nas\data").expect("a mapping");
    assert_eq!(map(&mut smb, r"\\nas\data", Some("anna:right:2")), 1326);
    assert_eq!(map(&mut smb, r"\\nas\data", Some("anna:new")), 0);
    assert_eq!(smb.open(r"\\nas\data"), Ok(DATA));
}

#[test]
fn a_call_to_a_server_that_does_not_answer_takes_the_timeout() {
    let mut smb = network();
    let create = |remote: &str| [("RemotePath", Value::Text(remote.to_owned()))];
    assert_eq!(smb.duration("Create", &create(r"\\dead\data")), CONNECT_TIMEOUT);
    assert_eq!(smb.duration("Create", &create(r"\\nas\data")), Duration::ZERO);
    map(&mut smb, r"\\nas\data", Some("anna:right:2"));
    smb.servers[0].slow_milliseconds = 9000;
    assert_eq!(smb.answer_time(r"\\nas\data\x"), Duration::from_secs(9));
    assert_eq!(smb.duration("Create", &create(r"\\nas\data")), Duration::ZERO, "the node knows that it is mapped");
    smb.servers[0].reachable = false;
    assert_eq!(smb.open(r"\\nas\data"), Err(OsError::BAD_NETPATH));
    assert_eq!(smb.rows()[0].u32("Status"), Some(Status::Disconnected as u32));
}

#[test]
fn a_credential_is_the_escaped_user_a_colon_and_the_password() {
    let parse = |text| Credential::parse(text).map(|found| (found.user, found.password.expose().to_owned()));
    let some = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
    assert_eq!(parse(r"dom\\us\:er:pa:ss\word"), some(r"dom\us:er", r"pa:ss\word"));
    assert_eq!(parse("user:"), some("user", ""));
    assert_eq!(parse(":pw"), some("", "pw"));
    for text in ["", "user", r"dom\user:pw", r"user\"] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn no_password_is_printed() {
    let mut smb = network();
    map(&mut smb, r"\\nas\data", Some("anna:right:2"));
    assert!(!format!("{smb:?}").contains("right"), "{smb:?}");
}

#[test]
fn an_unknown_method_or_parameter_is_rejected() {
    let mut smb = network();
    let class = ObjectPath::class(GLOBAL_MAPPING);
    assert_eq!(smb.call(&class, "New", &[]), Err(OsError::WBEM_INVALID_METHOD));
    assert_eq!(smb.call(&class, "Create", &[("Remote", Value::Null)]), Err(INVALID_METHOD_PARAMETERS));
    assert_eq!(smb.call(&ObjectPath::class("MSFT_Disk"), "Create", &[]), Err(OsError::WBEM_INVALID_CLASS));
}
