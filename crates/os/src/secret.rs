//! Passwords and CHAP secrets.
//!
//! A secret passes these places. Check each of them for a new field with a secret:
//!
//! 1. Its name in the `.proto` file contains `password` or `secret`. `build.rs` of the crate api
//!    then redacts the value in `Debug`, and csi-proxyctl keeps it off the command line
//!    (`request.rs`).
//! 2. `SecretText` in `types.rs` of `storage-ops` makes a [`Secret`] of the text. `smb.rs` and
//!    `iscsi.rs` in `server/src/rpc` parse it before the other fields.
//! 3. The operation in `storage-ops` holds the `SecretText`. For an SMB password,
//!    `node/smb_mapping_record.rs` there keeps a keyed digest in memory.
//! 4. [`Value::Secret`](crate::Value::Secret) passes it to a WMI method.
//!    `os-win32/src/wmi/value.rs` overwrites the copies that it makes for Windows.
//! 5. `credentials.rs` of the crate client redacts it in `Debug`, and `is_secret` in
//!    `layer/known_rpcs.rs` of csi-proxy-sim keeps it out of recordings.

use std::fmt;
use std::hash::{Hash, Hasher};

use zeroize::Zeroizing;

/// A text that is never printed in a log, trace, error or saved state. Dropping it overwrites it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes ownership of the text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the text. Pass it only to the call that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Hash for Secret {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expose().hash(state);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_does_not_print_itself() {
        assert_eq!(format!("{:?}", Secret::new("hunter2".into())), "[secret]");
    }
}
