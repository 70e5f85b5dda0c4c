//! How long calls take, the status of mappings and the form of credentials. Facts check the error codes.

use std::collections::BTreeSet;
use std::time::Duration;

use os::{OsError, OsResult, Secret, Uuid, Value};

use super::{CONNECT_TIMEOUT, Credential, GLOBAL_MAPPING, Server, Share, Smb, Status, User};
use crate::wmi::wql::ObjectPath;

const DATA: Uuid = Uuid::from_u128(1);
const PUBLIC: Uuid = Uuid::from_u128(2);

fn network() -> Smb {
    let mut server = Server::new("nas");
    server.shares = vec![
        Share { name: "Data".to_owned(), tree: DATA, guest: false, listable: true },
        Share { name: "public".to_owned(), tree: PUBLIC, guest: true, listable: true },
    ];
    server.users = vec![User::new(r"AZURE\acct", "right:1"), User::new("anna", "right:2")];
    let mut dead = Server::new("dead");
    dead.reachable = false;
    Smb { servers: vec![server, dead], ..Smb::default() }
}

fn map(smb: &mut Smb, remote: &str, credential: Option<&str>) -> OsResult<u32> {
    let credential = credential.map_or(Value::Null, |text| Value::Secret(Secret::new(text.to_owned())));
    let arguments = [
        ("RemotePath", Value::Text(remote.to_owned())),
        ("RequirePrivacy", Value::Bool(true)),
        ("Credential", credential),
    ];
    smb.call(&ObjectPath::class(GLOBAL_MAPPING), "Create", &arguments, &BTreeSet::new()).map(|returned| returned.code)
}

#[test]
fn a_guest_can_open_a_share_that_allows_guests() {
    let mut smb = network();
    assert_eq!(smb.open(r"\\nas\public"), Ok(PUBLIC));
    assert_eq!(map(&mut smb, r"\\nas\public", Some("")), Ok(0));
    assert_eq!(smb.open(r"\\nas\public"), Ok(PUBLIC));
    assert_eq!(smb.mappings()[0].user, None);
}

#[test]
fn the_use_of_a_mapping_changes_its_status() {
    let mut smb = network();
    map(&mut smb, r"\\nas\data", Some(r"NAS\\anna:right:2")).expect("the share is mapped");
    smb.reboot();
    assert_eq!(smb.rows()[0].u32("Status"), Some(Status::Disconnected as u32));
    assert_eq!(smb.open(r"\\nas\data"), Ok(DATA));
    assert_eq!(smb.rows()[0].u32("Status"), Some(Status::Ok as u32));
    assert!(smb.rotate("NAS", "anna", "new"));
    assert!(!smb.rotate("nas", "unknown", "new"));
    assert_eq!(smb.open(r"\\nas\data"), Err(OsError::LOGON_FAILURE));
    assert_eq!(smb.rows()[0].u32("Status"), Some(Status::Ok as u32), "Windows does not tell that the password is old");
}

#[test]
fn a_call_to_a_server_that_does_not_answer_takes_the_timeout() {
    let mut smb = network();
    let create = |remote: &str| [("RemotePath", Value::Text(remote.to_owned()))];
    assert_eq!(smb.duration("Create", &create(r"\\dead\data")), CONNECT_TIMEOUT);
    assert_eq!(smb.duration("Create", &create(r"\\nas\data")), Duration::ZERO);
    map(&mut smb, r"\\nas\data", Some(r"NAS\\anna:right:2")).expect("the share is mapped");
    smb.servers[0].answer_takes = Duration::from_secs(9);
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
    map(&mut smb, r"\\nas\data", Some(r"NAS\\anna:right:2")).expect("the share is mapped");
    assert!(!format!("{smb:?}").contains("right"), "{smb:?}");
}
