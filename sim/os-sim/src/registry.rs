//! Simulates the registry: text values of volatile keys, below `HKEY_LOCAL_MACHINE`.

use std::collections::BTreeMap;

use os::{OsError, OsResult, U16Str, U16String};

/// The volatile keys of the registry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    /// The texts by key and name of the value, both in lower case: the registry ignores case.
    texts: BTreeMap<(String, String), U16String>,
}

impl Registry {
    /// Returns a text.
    pub(crate) fn text(&self, key: &U16Str, value: &U16Str) -> OsResult<U16String> {
        self.texts
            .get(&address(key, value))
            .cloned()
            .ok_or(OsError::FILE_NOT_FOUND)
    }

    /// Sets a text.
    pub(crate) fn set_volatile_text(&mut self, key: &U16Str, value: &U16Str, text: &U16Str) {
        self.texts.insert(address(key, value), text.to_owned());
    }

    /// Deletes a value.
    pub(crate) fn delete(&mut self, key: &U16Str, value: &U16Str) -> OsResult<()> {
        self.texts
            .remove(&address(key, value))
            .map(drop)
            .ok_or(OsError::FILE_NOT_FOUND)
    }
}

fn address(key: &U16Str, value: &U16Str) -> (String, String) {
    (
        key.to_string_lossy().to_lowercase(),
        value.to_string_lossy().to_lowercase(),
    )
}
