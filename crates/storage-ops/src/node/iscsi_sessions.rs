//! What this process has seen of the iSCSI sessions of the node: the portal of each, and since when
//! it has had no connection.
//!
//! Windows tells neither. The record is kept in memory only: a new process knows no portal of a
//! session without a connection, and waits again until such a session counts as dead.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use os::Time;

use crate::sync::{Mutex, lock};
use crate::types::{Iqn, TargetPortal};

/// A session that has had no connection for this time is dead.
///
/// Windows holds the requests to the disks of such a session for `MaxRequestHoldTime`, and then
/// removes the disks: by default after 60 s, and after 120 s on a node with the software of some
/// storage vendors. The remaining 30 s are a margin. On a node with a longer time, Windows still
/// holds requests of a dead session; its disks exist until then, so a mounted volume protects it.
pub(crate) const DEAD_AFTER: Duration = Duration::from_secs(150);

/// The most sessions in the record, far more than a node has. With another one, the record begins
/// anew: to know less is the safe side.
const MAX_SESSIONS: usize = 4096;

/// The lower-case name of the target of a session, and its identifier.
type Key = (String, String);

/// The record of sessions.
#[derive(Default)]
pub(crate) struct SessionRecord {
    sessions: Mutex<HashMap<Key, Entry>>,
}

#[derive(Default)]
struct Entry {
    portals: Vec<TargetPortal>,
    /// When the session was first seen without a connection, since it last had one.
    lost: Option<Time>,
}

/// What is known about a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The portal at which this process logged in, or else the portals to which its connections led
    /// when they were first seen. Empty if neither is known.
    pub(crate) portals: Vec<TargetPortal>,
    /// For how long the session is known to have had no connection; `None` if it has one.
    pub(crate) lost_for: Option<Duration>,
}

impl SessionRecord {
    /// Records a session that was opened through `portal`.
    pub(crate) fn open(&self, iqn: &Iqn, identifier: &str, portal: &TargetPortal) {
        let entry = Entry {
            portals: vec![portal.clone()],
            lost: None,
        };
        let key = (lower_case(iqn), identifier.to_owned());
        insert(&mut lock(&self.sessions), key, entry);
    }

    /// Records the sessions of a target as Windows showed them during `reading`, and forgets all
    /// others with a target of this name. Each session is an identifier, the portals to which its
    /// connections lead, and whether it has a connection. Returns what is known about each.
    pub(crate) fn see(
        &self,
        iqn: &Iqn,
        sessions: &[(&str, Vec<TargetPortal>, bool)],
        reading: Range<Time>,
    ) -> Vec<Known> {
        let target = lower_case(iqn);
        let mut record = lock(&self.sessions);
        record.retain(|(of, known), _| {
            *of != target || sessions.iter().any(|(listed, ..)| listed == known)
        });
        let mut see = |(identifier, portals, is_connected): &(&str, Vec<TargetPortal>, bool)| {
            let key = (target.clone(), (*identifier).to_owned());
            if !record.contains_key(&key) {
                insert(&mut record, key.clone(), Entry::default());
            }
            let entry = record.entry(key).or_default();
            if entry.portals.is_empty() {
                entry.portals.clone_from(portals);
            }
            if *is_connected {
                entry.lost = None;
            } else {
                entry.lost.get_or_insert(reading.end);
            }
            Known {
                portals: entry.portals.clone(),
                // Not longer than between the two readings: a reading may take a minute.
                lost_for: entry.lost.map(|lost| reading.start - lost),
            }
        };
        sessions.iter().map(&mut see).collect()
    }
}

fn insert(record: &mut HashMap<Key, Entry>, key: Key, entry: Entry) {
    if record.len() >= MAX_SESSIONS {
        record.clear();
    }
    record.insert(key, entry);
}

fn lower_case(iqn: &Iqn) -> String {
    iqn.to_string().to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::time::Duration;

    use os::Time;

    use super::{MAX_SESSIONS, SessionRecord, lock};
    use crate::types::{Iqn, TargetPortal};

    fn iqn(name: &str) -> Iqn {
        Iqn::parse(name).unwrap()
    }

    fn portal(address: &str) -> TargetPortal {
        TargetPortal::parse(address, 0).unwrap()
    }

    /// Returns a reading that takes 3 seconds.
    fn at(seconds: u64) -> Range<Time> {
        Time(Duration::from_secs(seconds - 3))..Time(Duration::from_secs(seconds))
    }

    #[test]
    fn the_time_without_a_connection_is_counted_from_the_end_of_the_first_sighting() {
        let record = SessionRecord::default();
        let see = |is_connected, seconds| {
            let session = ("1", vec![], is_connected);
            let known = record.see(&iqn("iqn.a"), &[session], at(seconds));
            known[0].lost_for.map(|span| span.as_secs())
        };
        assert_eq!(see(false, 10), Some(0));
        assert_eq!(see(false, 70), Some(57));
        assert_eq!(see(true, 80), None);
        assert_eq!(see(false, 90), Some(0));
        assert_eq!(see(false, 95), Some(2));
        // A session that was not listed has ended, and another one may get its identifier.
        record.see(&iqn("IQN.A"), &[], at(96));
        assert_eq!(see(false, 97), Some(0));
    }

    #[test]
    fn the_portal_of_a_session_is_that_of_its_login_or_of_its_first_connections() {
        let record = SessionRecord::default();
        let see = |identifier, portals: &[&str]| {
            let portals = portals.iter().map(|address| portal(address)).collect();
            record
                .see(&iqn("iqn.a"), &[(identifier, portals, true)], at(9))
                .remove(0)
                .portals
        };
        assert_eq!(see("1", &[]), []);
        assert_eq!(see("1", &["10.0.0.5"]), [portal("10.0.0.5")]);
        assert_eq!(see("1", &["10.0.0.6"]), [portal("10.0.0.5")]);
        record.open(&iqn("iqn.a"), "2", &portal("storage.test"));
        assert_eq!(see("2", &["10.0.0.5"]), [portal("storage.test")]);
    }

    #[test]
    fn the_record_is_bounded() {
        let record = SessionRecord::default();
        for number in 0..=MAX_SESSIONS {
            let target = iqn(&format!("iqn.{number}"));
            record.see(&target, &[(&number.to_string(), vec![], false)], at(9));
        }
        assert_eq!(lock(&record.sessions).len(), 1);
    }
}
