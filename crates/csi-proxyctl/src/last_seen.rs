//! What the calls of csi-proxy have last seen of the node: identities of disks, mounts and mappings
//! of shares. The status page has it, so it is known only if csi-proxy serves that page.

use std::time::Duration;

use clap::ArgMatches;
use command_line::failure::Failure;
use command_line::quantity::short_duration;
use command_line::table::shown;
use serde_json::{Value, json};

use crate::session::Session;
use crate::status_page::Source;

/// How long the status page may take to add to other answers.
const LIMIT: Duration = Duration::from_secs(1);
/// The age from which a mount may be gone: drivers look at each mount every minute.
const OLD_MOUNT: f64 = 600.0;

/// A part of the status; empty if the status cannot be read.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastSeen(Value);

impl LastSeen {
    /// Reads what was last seen.
    pub(crate) async fn read(matches: &ArgMatches, session: &Session) -> Result<Self, Failure> {
        let source = Source::new(matches, session, LIMIT);
        Ok(Self(source.status().await?["last_seen"].take()))
    }

    /// Returns the objects of a kind.
    pub(crate) fn of(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0[kind].as_array().into_iter().flatten()
    }

    /// Returns the identity of a disk; null if it was not seen.
    pub(crate) fn disk(&self, number: u32) -> &Value {
        let mut disks = self.of("disks");
        disks
            .find(|disk| disk["disk"] == number)
            .unwrap_or(&Value::Null)
    }

    /// Returns the paths that led to a volume, as `{"path", "seconds_ago"}`.
    pub(crate) fn mounts_of(&self, volume: &str) -> Value {
        let leads_there = |mount: &&Value| {
            let source = mount["source"].as_str().unwrap_or_default();
            source.eq_ignore_ascii_case(volume)
        };
        let mounts = self.of("mounts").filter(leads_there);
        mounts
            .map(|mount| json!({ "path": mount["path"], "seconds_ago": mount["seconds_ago"] }))
            .collect()
    }

    /// Returns the mount whose field `name` is `value`, in any case of letters.
    pub(crate) fn mount(&self, name: &str, value: &str) -> Option<&Value> {
        let mut mounts = self.of("mounts");
        mounts.find(|mount| shown(&mount[name]).eq_ignore_ascii_case(value))
    }

    /// Returns the volumes that a call has found on a disk.
    pub(crate) fn volumes_on(&self, number: u32) -> Vec<String> {
        let mounts = self.of("mounts").filter(|mount| mount["disk"] == number);
        let mut volumes: Vec<_> = mounts.map(|mount| shown(&mount["source"])).collect();
        volumes.sort_unstable();
        volumes.dedup();
        volumes
    }
}

/// Returns a text and its age, such as `vol-1 (5m ago)`; the text alone if it is not old.
pub(crate) fn with_age(text: &Value, seconds_ago: &Value) -> String {
    match seconds_ago.as_f64() {
        Some(seconds) if !text.is_null() => format!("{} ({} ago)", shown(text), age(seconds)),
        _ => shown(text),
    }
}

/// Returns the paths of [`LastSeen::mounts_of`] as text, with the age of those that may be gone.
pub(crate) fn mounts(mounts: &Value) -> String {
    let mounts = mounts.as_array().into_iter().flatten();
    let is_old = |age: &Value| age.as_f64().is_some_and(|age| age >= OLD_MOUNT);
    let text = |mount: &Value| {
        let age = Some(&mount["seconds_ago"]).filter(|age| is_old(age));
        with_age(&mount["path"], age.unwrap_or(&Value::Null))
    };
    mounts.map(text).collect::<Vec<_>>().join(", ")
}

/// Returns an age in whole seconds.
pub(crate) fn age(seconds: f64) -> String {
    let whole = Duration::try_from_secs_f64(seconds)
        .unwrap_or_default()
        .as_secs();
    short_duration(whole * 1000)
}
