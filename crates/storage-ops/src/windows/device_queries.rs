//! Queries of many devices, of which some may not answer.
//!
//! Some operations ask every disk or volume of the node. A device that no longer answers must not
//! block them, so the queries run on another thread. A device that does not answer in time is left
//! out: the thread stays behind with its query, and a new thread asks the remaining devices. A
//! device whose query hangs is not asked again until the query ends. Each volume counts as a device
//! of its own, because a hung disk or volume need not make other volumes hang.
//!
//! A scan waits [`PATIENCE`] for the first device that does not answer, half as long for each
//! further one, but at least [`LEAST_PATIENCE`]. In total it waits less than 10 s, plus 0.1 s for
//! each device beyond the sixth. It leaves behind one thread for each device that does not answer.

use std::collections::{HashMap, VecDeque};
use std::fmt;
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
    /// The devices that have not answered. The thread with the query has the other reference until
    /// it ends.
    hung: Mutex<Vec<(Device, Weak<()>)>>,
}

/// A query of one device. If the device is the interface of a disk, calls the last argument with
/// the number of the disk as soon as it is known.
pub(crate) type Query<T, R> = fn(&dyn Os, T, &dyn Fn(DiskNumber)) -> OsResult<R>;

/// A scan of devices.
struct Scan<T, R> {
    /// The numbers of the disks by index, as far as they are known.
    numbers: Vec<Option<DiskNumber>>,
    /// The index of each device that was not asked yet, and the argument of its query.
    waiting: VecDeque<(usize, T)>,
    /// The index of the device that the current thread asks, if it has begun to.
    asked: Option<usize>,
    /// The answers by index.
    answers: Vec<Option<OsResult<R>>>,
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
        let (devices, waiting): (Vec<Device>, VecDeque<_>) = targets
            .enumerate()
            .map(|(index, (device, target))| (device, (index, target)))
            .unzip();
        let (numbers, answers) = (
            vec![None; devices.len()],
            devices.iter().map(|_| None).collect(),
        );
        let scan = Arc::new(Mutex::new(Scan {
            numbers,
            waiting,
            asked: None,
            answers,
        }));
        let mut patience = longest;
        loop {
            let mut state = lock(&scan);
            state.waiting.retain(|(index, _)| {
                let hangs = self.hangs(&devices[*index]);
                if hangs {
                    let device = self.as_disk(devices[*index].clone());
                    tracing::warn!(
                        %device,
                        "left out a device that does not answer an earlier query"
                    );
                }
                !hangs
            });
            if state.waiting.is_empty() {
                break;
            }
            state.asked = None;
            drop(state);
            let alive = Arc::new(());
            let thread = Arc::downgrade(&alive);
            let (thread_os, shared) = (Arc::clone(os), Arc::clone(&scan));
            let current_span = tracing::Span::current();
            let work = move |step_ended: &dyn Fn() -> bool| {
                current_span.in_scope(|| ask(&*thread_os, &shared, query, step_ended));
                drop(alive);
            };
            let has_ended = os.clock().run_watched(patience, Box::new(work));
            let state = lock(&scan);
            for (device, number) in devices.iter().zip(&state.numbers) {
                if let Some(number) = number {
                    self.identify(device, *number);
                }
            }
            if has_ended {
                break;
            }
            let Some(index) = state.asked else {
                // The machine is so busy that the thread has not begun.
                patience = (patience * 2).min(longest);
                continue;
            };
            drop(state);
            let device = self.as_disk(devices[index].clone());
            tracing::warn!(
                %device, seconds = patience.as_secs_f32(),
                "left out a device that does not answer"
            );
            lock(&self.hung).push((devices[index].clone(), thread));
            patience = (patience / 2).max(LEAST_PATIENCE);
        }
        let answers = std::mem::take(&mut lock(&scan).answers);
        devices.into_iter().zip(answers).collect()
    }
}

/// Asks the waiting devices one after the other. Stops when a device has answered too late.
fn ask<T, R>(
    os: &dyn Os,
    scan: &Mutex<Scan<T, R>>,
    query: Query<T, R>,
    step_ended: &dyn Fn() -> bool,
) {
    let mut answered = None;
    loop {
        let mut state = lock(scan);
        // Under the lock, so that the caller finds the device that was too late.
        if !step_ended() {
            return;
        }
        if let Some((index, answer)) = answered.take() {
            state.answers[index] = Some(answer);
        }
        let Some((index, target)) = state.waiting.pop_front() else {
            return;
        };
        state.asked = Some(index);
        drop(state);
        let identify = |number| lock(scan).numbers[index] = Some(number);
        answered = Some((index, query(os, target, &identify)));
    }
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
