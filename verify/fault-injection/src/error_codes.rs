//! The errors that each call is made to fail with, and those from which an operation may conclude
//! something.

use std::sync::LazyLock;

use faults::{Call, matches};
use os::OsError;

/// Primitives with their errors.
type Table = Vec<(&'static str, Vec<OsError>)>;

static FAILURES: LazyLock<Table> =
    LazyLock::new(|| table(include_str!("error_codes/failures.txt")));
static INFORMATION: LazyLock<Table> =
    LazyLock::new(|| table(include_str!("error_codes/information.txt")));

/// Returns the errors that `call` is made to fail with.
pub fn errors_of(call: &Call) -> &'static [OsError] {
    let is_on_server = call.primitive == "open" && call.object.contains(r"\UNC\");
    errors_in(
        &FAILURES,
        if is_on_server {
            "open UNC"
        } else {
            &call.primitive
        },
    )
}

/// A Win32 error code that no document names.
const UNSEEN: OsError = OsError(0xe000_0abc);
/// An `HRESULT` that no document names.
const UNSEEN_HRESULT: OsError = OsError(0x8aaa_0abc);
/// A return value of a WMI method that no class documents.
pub const UNSEEN_RETURN: u32 = 48_999;

/// Returns an error of `call` that nobody has seen.
pub fn unseen_error_of(call: &Call) -> OsError {
    if call.primitive.starts_with("wmi ") {
        UNSEEN_HRESULT
    } else {
        UNSEEN
    }
}

/// Returns the return values that a WMI method is made to answer with: those that its class
/// documents.
pub fn returns_of(call: &Call) -> &'static [u32] {
    let Some(method) = call.primitive.strip_prefix("wmi call ") else {
        return &[];
    };
    if method.starts_with("MSFT_Smb") {
        // Win32: access denied, not found on the network, logon failures, another user's session.
        return &[5, 53, 67, 86, 1219, 1326];
    }
    if method.starts_with("MSFT_iSCSI") {
        // No connection, wrong secret, session busy, already logged in.
        return &[0xefff_0003, 0xefff_0009, 0xefff_001f, 0xefff_003f];
    }
    // Not supported, timeout, failed, invalid parameter, in use, access denied, stale cache, not
    // initialized, already initialized, offline, too small, clustered, access path not assigned,
    // volume read-only.
    &[
        1, 3, 4, 5, 6, 40001, 40003, 41000, 41001, 41003, 41014, 41018, 42002, 43006,
    ]
}

/// Returns whether `code` can be information for the caller of `call`. Any other code is a failure,
/// which the operation's error must name.
pub fn is_informative(call: &Call, code: u32) -> bool {
    if call.primitive.starts_with("wmi call ") && returns_of(call).contains(&code) {
        // Already initialized, access path not assigned, already logged in. An operation may repeat
        // a call that returned another code; if it then fails, the error must name the code.
        return [41001, 42002, 0xefff_003f].contains(&code);
    }
    errors_in(&INFORMATION, &call.primitive).contains(&OsError(code))
}

/// Reads a table whose rows are a primitive, a colon and the names of errors. A line that begins
/// with `#` is a comment.
fn table(text: &'static str) -> Table {
    let mut table = Table::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(primitive) = line.strip_suffix(':') {
            table.push((primitive, Vec::new()));
        } else {
            let errors = line
                .split_whitespace()
                .map(|name| OsError::named(name).expect("the name of an error"));
            table
                .last_mut()
                .expect("a primitive precedes its errors")
                .1
                .extend(errors);
        }
    }
    table
}

/// Returns the errors of the first row that matches a primitive.
fn errors_in(table: &'static Table, primitive: &str) -> &'static [OsError] {
    table
        .iter()
        .find(|(pattern, _)| matches(pattern, primitive))
        .map_or(&[], |(_, errors)| errors)
}
