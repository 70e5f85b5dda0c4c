//! Queries of many devices, of which some may not answer.
//!
//! Some operations ask every disk or volume of the node. A device that no longer answers must not
//! block them, so the queries run on another thread. That thread asks the waiting devices one after
//! the other, and the caller waits for it:
//!
//! ```text
//! waiting ──> asked ──> answered
//!    │          │
//!    │          └─ (does not answer in time) ──────> left out
//!    └─ (does not answer an earlier query) ────────> left out
//! ```
//!
//! When the caller leaves out the device that was asked, the thread stays behind with its query, and
//! a new thread asks the devices that still wait. A device whose query hangs is not asked again
//! until the query ends. Each volume counts as a device of its own, because a hung disk or volume
//! need not make other volumes hang.
//!
//! A scan waits [`PATIENCE`] for the first device that does not answer, half as long for each
//! further one, but at least [`LEAST_PATIENCE`]. In total it waits less than 10 s, plus 0.1 s for
//! each device beyond the sixth. It leaves behind one thread for each device that does not answer.

use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::sync::Weak;
use std::time::Duration;

use os::{Os, OsResult, U16String};

use crate::sync::{Arc, Mutex, lock};
use crate::types::{DiskNumber, VolumeId};

/// How long a query may take before the device counts as one that does not answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How long a query may take in a scan in which many devices have not answered.
const LEAST_PATIENCE: Duration = Duration::from_millis(100);

/// A device, by the name that is known before it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Device {
    Disk(DiskNumber),
    /// The device interface of a disk.
    Interface(U16String),
    Volume(VolumeId),
    /// The device interface of a storage port.
    Port(U16String),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(number) => number.fmt(f),
            Self::Interface(path) => path.display().fmt(f),
            Self::Volume(volume) => write!(f, "volume {volume}"),
            Self::Port(path) => write!(f, "storage port {}", path.display()),
        }
    }
}

/// What is known of the devices.
#[derive(Default)]
pub(crate) struct DeviceQueries {
    /// The number of the disk of each interface when it last answered.
    disks: Mutex<HashMap<Device, DiskNumber>>,
    /// The devices that were left out when they were asked. The thread that stayed behind with the
    /// query has the other reference until it ends.
    hung: Mutex<Vec<(Device, Weak<()>)>>,
}

/// A query of one device. If the device is the interface of a disk, calls the last argument with
/// the number of the disk as soon as it is known.
pub(crate) type Query<T, R> = fn(&dyn Os, T, &dyn Fn(DiskNumber)) -> OsResult<R>;

/// A device of a scan.
struct Target<T, R> {
    device: Device,
    /// The number of the disk, if the query has told it.
    number: Option<DiskNumber>,
    state: State<T, R>,
}

/// The state of a device of a scan; the module describes the changes.
enum State<T, R> {
    /// It has this argument for its query.
    Waiting(T),
    /// The current thread asks it.
    Asked,
    Answered(OsResult<R>),
    LeftOut,
}

impl DeviceQueries {
    /// Returns the disk whose interface is `device`, or `device` itself if its number is not known
    /// or it is no interface.
    pub(crate) fn as_disk(&self, device: Device) -> Device {
        lock(&self.disks)
            .get(&device)
            .copied()
            .map_or(device, Device::Disk)
    }

    /// Records the number of the disk whose interface is `device`, if it is one.
    fn identify(&self, device: &Device, number: DiskNumber) {
        if !matches!(device, Device::Interface(_)) {
            return;
        }
        let mut disks = lock(&self.disks);
        match disks.get_mut(device) {
            Some(known) => *known = number,
            None => drop(disks.insert(device.clone(), number)),
        }
    }

    /// Forgets the numbers of the interfaces that `is_gone` returns true for.
    pub(crate) fn forget(&self, is_gone: impl Fn(&Device) -> bool) {
        lock(&self.disks).retain(|device, _| !is_gone(device));
    }

    /// Returns whether a query of `device` hangs.
    fn hangs(&self, device: &Device) -> bool {
        let mut hung = lock(&self.hung);
        hung.retain(|(_, thread)| thread.strong_count() > 0);
        hung.iter().any(|(other, _)| other == device)
    }

    /// Asks each device, for which `query` is given its `T`. Returns the answers in the same order:
    /// `None` for a device that does not answer in time, which is logged. Waits `longest` for the
    /// first device that does not answer.
    pub(super) fn query_each<T: Send + 'static, R: Send + 'static>(
        &self,
        os: &Arc<dyn Os>,
        longest: Duration,
        targets: impl Iterator<Item = (Device, T)>,
        query: Query<T, R>,
    ) -> Vec<(Device, Option<OsResult<R>>)> {
        let targets = targets.map(|(device, argument)| Target {
            device,
            number: None,
            state: State::Waiting(argument),
        });
        let scan = Arc::new(Mutex::new(targets.collect::<Vec<_>>()));
        let mut patience = longest;
        while self.leave_out_hung(&mut lock(&scan)) {
            // The thread has this until it ends.
            let alive = Arc::new(());
            let thread = Arc::downgrade(&alive);
            let (thread_os, shared) = (Arc::clone(os), Arc::clone(&scan));
            let current_span = tracing::Span::current();
            let has_ended = os.clock().run_watched(
                patience,
                Box::new(move |step_ended| {
                    current_span.in_scope(|| ask(&*thread_os, &shared, query, step_ended));
                    drop(alive);
                }),
            );
            let mut targets = lock(&scan);
            for target in &*targets {
                if let Some(number) = target.number {
                    self.identify(&target.device, number);
                }
            }
            if has_ended {
                break;
            }
            let asked = targets
                .iter_mut()
                .find(|target| matches!(target.state, State::Asked));
            let Some(target) = asked else {
                // None was asked: the machine is so busy that the thread has not begun.
                patience = (patience * 2).min(longest);
                continue;
            };
            target.state = State::LeftOut;
            let device = self.as_disk(target.device.clone());
            tracing::warn!(
                %device, seconds = patience.as_secs_f32(),
                "left out a device that does not answer"
            );
            lock(&self.hung).push((target.device.clone(), thread));
            patience = (patience / 2).max(LEAST_PATIENCE);
        }
        // The targets stay, because a thread that stayed behind may still set a number.
        lock(&scan)
            .iter_mut()
            .map(|target| {
                let answer = match mem::replace(&mut target.state, State::LeftOut) {
                    State::Answered(answer) => Some(answer),
                    _ => None,
                };
                (target.device.clone(), answer)
            })
            .collect()
    }

    /// Leaves out each waiting device that does not answer an earlier query. Returns whether another
    /// device waits.
    fn leave_out_hung<T, R>(&self, targets: &mut [Target<T, R>]) -> bool {
        let mut any_waits = false;
        for target in targets {
            if !matches!(target.state, State::Waiting(_)) {
                continue;
            }
            if self.hangs(&target.device) {
                target.state = State::LeftOut;
                let device = self.as_disk(target.device.clone());
                tracing::warn!(%device, "left out a device that does not answer an earlier query");
            } else {
                any_waits = true;
            }
        }
        any_waits
    }
}

/// Asks the waiting devices one after the other. Stops when a device has answered too late.
fn ask<T, R>(
    os: &dyn Os,
    scan: &Mutex<Vec<Target<T, R>>>,
    query: Query<T, R>,
    step_ended: &dyn Fn() -> bool,
) {
    let mut answered: Option<(usize, _)> = None;
    loop {
        let mut targets = lock(scan);
        // Under the lock, so that the caller finds the device that was too late.
        if !step_ended() {
            return;
        }
        if let Some((index, answer)) = answered.take() {
            targets[index].state = State::Answered(answer);
        }
        let Some((index, argument)) = next_waiting(&mut targets) else {
            return;
        };
        drop(targets);
        let identify = |number| lock(scan)[index].number = Some(number);
        answered = Some((index, query(os, argument, &identify)));
    }
}

/// Takes the first waiting device, which is asked now. Returns its index and its argument.
fn next_waiting<T, R>(targets: &mut [Target<T, R>]) -> Option<(usize, T)> {
    let mut targets = targets.iter_mut().enumerate();
    targets.find_map(
        |(index, target)| match mem::replace(&mut target.state, State::Asked) {
            State::Waiting(argument) => Some((index, argument)),
            other => {
                target.state = other;
                None
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::Duration;

    use faults::{Layer, Layered};
    use os::{Clock, Os, OsResult, WatchedWork};

    use super::Device;
    use crate::types::DiskNumber;
    use crate::{Timeouts, windows::Windows};

    const ANSWERED: Option<OsResult<()>> = Some(Ok(()));
    const LEFT_OUT: Option<OsResult<()>> = None;

    /// Asks disks, which answer after these numbers of seconds.
    fn ask(os: &Arc<dyn Os>, seconds: &[u64]) -> Vec<Option<OsResult<()>>> {
        let queries = seconds
            .iter()
            .map(|seconds| (Device::Disk(DiskNumber(0)), *seconds));
        let windows = Windows::new(Arc::clone(os), Timeouts::default());
        let answers = windows.query_each(queries, |os, seconds, _| {
            os.clock().sleep(Duration::from_secs(seconds));
            Ok(())
        });
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    /// A node on which the first thread has not begun when the time is over. It has that work.
    #[derive(Default)]
    struct Busy(Mutex<Option<WatchedWork>>);

    impl Layer for Busy {
        fn run_watched(&self, clock: &dyn Clock, patience: Duration, work: WatchedWork) -> bool {
            let mut late = self.0.lock().unwrap();
            if late.is_none() {
                *late = Some(work);
                return false;
            }
            clock.run_watched(patience, work)
        }
    }

    #[test]
    fn a_device_is_not_left_out_because_the_thread_begins_late() {
        let os: Arc<dyn Os> = Arc::new(Layered::around(
            os_sim::node().build().process(),
            Busy::default(),
        ));
        assert_eq!(ask(&os, &[0, 0]), [ANSWERED, ANSWERED]);
    }

    #[test]
    fn devices_that_answer_slowly_are_not_left_out_though_others_ask_at_once() {
        let os: Arc<dyn Os> = os_sim::node().build().process();
        thread::scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| assert_eq!(ask(&os, &[4; 10]), [ANSWERED; 10]));
            }
        });
        assert_eq!(ask(&os, &[6, 2]), [LEFT_OUT, ANSWERED]);
    }
}
