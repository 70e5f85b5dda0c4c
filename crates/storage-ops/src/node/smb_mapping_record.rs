//! The record of the SMB mappings that were made or used since Windows started.
//!
//! Windows does not tell when and for whom a mapping was made. The record has both for the mappings
//! of this start of Windows: the share and, if known, the user. It is kept in a volatile registry
//! key, which outlives the daemon and not Windows. A digest of the password is kept as well, but
//! only in the memory of this process.
//!
//! The absence of a share from the record says that its mapping is older than this start of Windows
//! only if the record is complete: if the daemon began it soon after Windows started. Otherwise
//! another program, such as the daemon that this one has replaced, may have made the mapping since.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use os::{OsError, OsResult, U16Str, U16String};

use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::sync::{Mutex, lock};
use crate::types::SecretText;
use crate::windows::Windows;

/// The registry key of the record, below `HKEY_LOCAL_MACHINE`. Each of its values is a share with
/// its entry.
const KEY: &str = r"SOFTWARE\csi-proxy\SmbMappingsSinceStartOfWindows";

/// The value that marks the record as complete. No share has this name.
const COMPLETE: &str = "complete";

/// The record is complete if it was begun within this time after Windows started.
const SOON: Duration = Duration::from_mins(10);

/// The entry of a mapping that was found, and was made by another program or before Windows
/// started.
const FOUND: &str = "found";

/// The entry of a mapping that csi-proxy has made begins with this; the name of the user follows.
const MADE_FOR: &str = "made for ";

/// When a mapping was made, and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Since Windows started, or it has been used since, or nothing is known. With the lower-case
    /// name of the user, if that is known.
    SinceStartOfWindows(Option<String>),
    /// Before Windows started. It has not been used since.
    BeforeStartOfWindows,
}

/// The knowledge of this process about a mapping.
struct Entry {
    user: Option<String>,
    password: Option<u64>,
}

/// The record of SMB mappings.
#[derive(Default)]
pub(crate) struct MappingRecord {
    entries: Mutex<HashMap<String, Entry>>,
    /// The random key of the digests, which this process never stores or prints.
    key: RandomState,
    password_differences: AtomicU64,
}

impl MappingRecord {
    /// Marks the record as complete if Windows has started only now. The daemon calls this before
    /// it serves requests.
    pub(crate) fn begin(windows: &Windows) {
        if windows.clock().since_start_of_windows() > SOON {
            return;
        }
        if let Err(code) = windows
            .os()
            .set_volatile_text(&wide(KEY), &wide(COMPLETE), &wide(""))
        {
            tracing::warn!(%code, key = KEY, "the record of SMB mappings cannot be written");
        }
    }

    /// Returns when and for whom the mapping of `share`, which exists, was made.
    pub(crate) fn origin(&self, windows: &Windows, share: &str) -> OperationResult<Origin> {
        if let Some(entry) = lock(&self.entries).get(share) {
            return Ok(Origin::SinceStartOfWindows(entry.user.clone()));
        }
        if let Some(entry) = read(windows, share)? {
            return Ok(Origin::SinceStartOfWindows(
                entry.strip_prefix(MADE_FOR).map(str::to_owned),
            ));
        }
        let is_complete = read(windows, COMPLETE)?.is_some();
        Ok(if is_complete {
            Origin::BeforeStartOfWindows
        } else {
            Origin::SinceStartOfWindows(None)
        })
    }

    /// Returns whether the mapping of `share` is known to have been made with a password other than
    /// `password`.
    pub(crate) fn password_differs(&self, share: &str, password: &SecretText) -> bool {
        let made_with = lock(&self.entries)
            .get(share)
            .and_then(|entry| entry.password);
        made_with.is_some_and(|made_with| made_with != self.digest(share, password))
    }

    /// Records the user and the password of a mapping that is about to be made.
    pub(crate) fn make(&self, windows: &Windows, share: &str, user: &str, password: &SecretText) {
        // Without a user, Windows is not given the password.
        let digest = (!user.is_empty()).then(|| self.digest(share, password));
        lock(&self.entries).insert(
            share.to_owned(),
            Entry {
                user: Some(user.to_owned()),
                password: digest,
            },
        );
        write(
            share,
            windows.os().set_volatile_text(
                &wide(KEY),
                &wide(share),
                &wide(&format!("{MADE_FOR}{user}")),
            ),
        );
    }

    /// Records that a mapping was found and is used from now on: it counts as made since Windows
    /// started.
    pub(crate) fn find(&self, windows: &Windows, share: &str, origin: &Origin) {
        // Any other mapping is in the record, or counts as made since then because the record is
        // incomplete.
        if *origin != Origin::BeforeStartOfWindows {
            return;
        }
        if let Err(code) = windows
            .os()
            .set_volatile_text(&wide(KEY), &wide(share), &wide(FOUND))
        {
            write(share, Err(code));
            lock(&self.entries).insert(
                share.to_owned(),
                Entry {
                    user: None,
                    password: None,
                },
            );
        }
    }

    /// Removes a mapping that no longer exists.
    pub(crate) fn forget(&self, windows: &Windows, share: &str) {
        lock(&self.entries).remove(share);
        match windows.os().delete_registry_value(&wide(KEY), &wide(share)) {
            Err(OsError::FILE_NOT_FOUND) => {}
            outcome => write(share, outcome),
        }
    }

    /// Counts a request with another password than that with which its mapping was made.
    pub(crate) fn count_password_difference(&self) {
        self.password_differences.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests with another password than that with which their mapping was
    /// made.
    pub(crate) fn password_differences(&self) -> u64 {
        self.password_differences.load(Ordering::Relaxed)
    }

    /// Returns a digest of the password, for comparison with others of this process.
    ///
    /// 64 bits of the keyed hash of the standard library suffice. An account that can read the
    /// memory of this process can read the key too, and the passwords of current requests, so no
    /// hash function would protect a password there. Everybody else can only ask whether a password
    /// is the same, one request for each, without knowing the key.
    fn digest(&self, share: &str, password: &SecretText) -> u64 {
        self.key.hash_one((share, password))
    }
}

/// Reads a value of the record; `None` if the record has no such value.
fn read(windows: &Windows, value: &str) -> OperationResult<Option<String>> {
    match windows.os().registry_text(&wide(KEY), &wide(value)) {
        Ok(text) => Ok(Some(text.to_string_lossy())),
        Err(OsError::FILE_NOT_FOUND) => Ok(None),
        Err(code) => {
            let error = OperationError::of(
                code,
                format!(r"the record of SMB mappings, HKLM\{KEY}, cannot be read"),
            );
            Err(error.with_kind(ErrorKind::Internal))
        }
    }
}

/// Logs a failure to write the record. The entry in memory stays until the daemon ends.
fn write(share: &str, outcome: OsResult<()>) {
    if let Err(code) = outcome {
        tracing::warn!(share, %code, key = KEY, "the record of SMB mappings cannot be written");
    }
}

fn wide(text: &str) -> Box<U16Str> {
    U16String::from_str(text).into_boxed_ustr()
}

#[cfg(test)]
mod tests {
    use super::MappingRecord;
    use crate::types::SecretText;

    fn secret(text: &str) -> SecretText {
        SecretText::parse(text.into(), "it").unwrap()
    }

    #[test]
    fn a_digest_depends_on_the_password_the_share_and_the_process() {
        let (record, other) = (MappingRecord::default(), MappingRecord::default());
        let digest = record.digest(r"\\files\one", &secret("pw"));
        assert_eq!(digest, record.digest(r"\\files\one", &secret("pw")));
        assert_ne!(digest, record.digest(r"\\files\one", &secret("pW")));
        assert_ne!(digest, record.digest(r"\\files\two", &secret("pw")));
        assert_ne!(digest, other.digest(r"\\files\one", &secret("pw")));
    }
}
