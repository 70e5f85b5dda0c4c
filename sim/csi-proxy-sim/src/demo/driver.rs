//! A CSI driver at work: the calls it makes, what it does in its own container, and what must then be so.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::time::Duration;

use api::{Group, GroupVersion};
use os::OsResult;
use os_sim::{DiskView, Sim, VolumeView};
use prost::Message;
use tonic::Status;
use tonic::transport::Channel;

use super::call::{Call, Line, Tell, said};
use super::daemon::Daemon;
use super::screen::{Screen, bytes, short};

/// Something went otherwise than it must.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference(pub String);

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Difference {}

/// How a step of a play ends.
pub type Outcome<T = ()> = Result<T, Difference>;

/// What a play came to.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How long each call took.
    pub times: Vec<Duration>,
    /// How many calls were refused, as the driver wants it.
    pub refused: usize,
    /// How many things were looked at on the node and found as they must be.
    pub held: usize,
    /// What was not.
    pub differences: Vec<String>,
}

impl Tally {
    /// The time of the call in the middle.
    pub fn median(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}

/// A driver: whoever makes the calls of a play.
pub struct Driver<'a> {
    daemon: &'a Daemon,
    screen: &'a RefCell<Screen>,
    tally: RefCell<Tally>,
    /// The disks that are this driver's to change.
    own: RefCell<BTreeSet<u32>>,
}

impl<'a> Driver<'a> {
    /// A driver that calls `daemon` and is shown on `screen`.
    pub fn new(daemon: &'a Daemon, screen: &'a RefCell<Screen>) -> Self {
        Self { daemon, screen, tally: RefCell::default(), own: RefCell::default() }
    }

    /// Ends the play.
    pub fn finish(self) -> Tally {
        self.tally.into_inner()
    }

    /// Begins a call that kubelet makes to the driver.
    pub(super) fn phase(&self, name: &str) {
        self.show(|screen| screen.phase(name));
    }

    pub(super) fn call<'c, Q, R, T>(
        &'c self,
        (group, version): (Group, &str),
        rpc: &'static str,
        about: &dyn Display,
        request: Q,
        read: fn(R) -> T,
    ) -> Call<'c, T>
    where
        Q: Message + 'static,
        R: Message + Default + 'static,
        T: Tell + 'c,
    {
        let api = GroupVersion::find(group, version).expect("a version that is served");
        Call::new(self, api, rpc, about, request, read)
    }

    pub(super) async fn channel(&self, api: &GroupVersion) -> Outcome<Channel> {
        self.daemon.channel(api).await.map_err(|error| Difference(format!("cannot reach {}: {error}", api.pipe())))
    }

    /// Kubelet, which makes directories.
    pub(super) fn kubelet(&self) -> Aside<'_> {
        Aside { driver: self, who: "kubelet" }
    }

    /// The driver's own container, which sees the node's files.
    pub(super) fn container(&self) -> Aside<'_> {
        Aside { driver: self, who: "container" }
    }

    /// The pod that uses the volume.
    pub(super) fn pod(&self) -> Aside<'_> {
        Aside { driver: self, who: "pod" }
    }

    /// Lets the cloud make a disk larger, and says how large it is then.
    pub(super) fn grow_disk(&self, number: u32) -> Outcome<u64> {
        let disk = self.sim().disk(number).ok_or_else(|| Difference(format!("there is no disk {number}")))?;
        let size = disk.size + disk.size / 2;
        self.show(|screen| screen.beside("cloud", "grows the disk", &format!("disk {number} to {}", bytes(size))));
        self.sim().grow_disk(number, size);
        Ok(size)
    }

    /// What must be so on the node.
    pub(super) fn must(&self, what: &str, is_so: bool) {
        if is_so {
            self.tally.borrow_mut().held += 1;
            self.show(|screen| screen.holds(what));
        } else {
            self.differ(what);
        }
    }

    /// Notes that something is not as it must be.
    pub(super) fn differ(&self, what: &str) {
        self.tally.borrow_mut().differences.push(what.to_owned());
        self.show(|screen| screen.differs(what));
    }

    /// The simulated node, to look at.
    pub(super) fn sim(&self) -> &Sim {
        self.daemon.sim()
    }

    /// The volume on a disk, as the node has it.
    fn volume_on(&self, disk: u32) -> Option<VolumeView> {
        self.sim().volume_on(disk)
    }

    /// The volume of `disk` must be mounted at `path` and nowhere else, and have been formatted once in its life.
    pub(super) fn must_be_staged(&self, disk: u32, path: &str) {
        self.own.borrow_mut().insert(disk);
        let volume = self.volume_on(disk);
        let paths = volume.as_ref().map(|volume| volume.paths.clone()).unwrap_or_default();
        let name = short(path);
        self.must(&format!("mounted at {name} and nowhere else"), paths == [format!(r"{path}\")]);
        self.must_be_formatted_once(disk);
    }

    /// The volume of `disk` must be NTFS and have been formatted once in its life.
    pub(super) fn must_be_formatted_once(&self, disk: u32) {
        let once = |volume: VolumeView| volume.formats == 1 && volume.file_system.as_deref() == Some("NTFS");
        self.must("NTFS, formatted once", self.volume_on(disk).is_some_and(once));
    }

    /// All other disks must be as they were `before`, and the node must make sense.
    pub(super) fn must_have_left_alone(&self, before: &[DiskView]) {
        let others = |disks: &[DiskView]| -> Vec<DiskView> {
            let own = self.own.borrow();
            disks.iter().filter(|disk| !own.contains(&disk.number)).cloned().collect()
        };
        self.must("all other disks are as they were", others(before) == others(&self.sim().disks()));
        match self.sim().invariants() {
            Ok(()) => self.must("the node makes sense", true),
            Err(why) => self.differ(&format!("the node makes no sense: {why}")),
        }
    }

    /// Nothing may be left at `path`, and the volume of `disk` may be mounted nowhere.
    pub(super) fn must_be_unstaged(&self, disk: u32, path: &str) {
        let gone = !self.sim().external().exists(path);
        let unmounted = self.volume_on(disk).is_some_and(|volume| volume.paths.is_empty());
        self.must("mounted nowhere, and its directory is gone", gone && unmounted);
    }

    /// The disk must be offline, or online.
    pub(super) fn must_be_online(&self, disk: u32, online: bool) {
        let is_so = self.sim().disk(disk).is_some_and(|disk| disk.offline != online);
        self.must(if online { "the disk is online" } else { "the disk is offline" }, is_so);
    }

    /// The file system on `disk` must fill it, up to what the partition table needs.
    pub(super) fn must_fill(&self, disk: u32) {
        let size = self.sim().disk(disk).map_or(0, |disk| disk.size);
        let total = self.volume_on(disk).map_or(0, |volume| volume.total);
        let fills = total <= size && size - total < 32 << 20;
        self.must(&format!("the file system has grown to {}", bytes(total)), fills);
    }

    /// The link at `path` must read as Go's `os.Readlink` is to read it.
    pub(super) fn must_link(&self, path: &str, target: &str) {
        let have = self.sim().external().read_link(path);
        let shown = if target.starts_with(r"\\") { target.to_owned() } else { short(target) };
        self.must(&format!("{} leads to {shown}", short(path)), have.is_ok_and(|have| have == target));
    }

    pub(super) fn show_answer(&self, line: &Line, answer: &str) {
        self.tally.borrow_mut().times.push(line.time);
        self.show(|screen| screen.answered(line, answer));
    }

    pub(super) fn show_refusal(&self, line: &Line, words: &str) {
        let mut tally = self.tally.borrow_mut();
        tally.times.push(line.time);
        tally.refused += 1;
        self.show(|screen| screen.refused(line, words));
    }

    pub(super) fn show_failure(&self, line: &Line, what: &str) {
        self.show(|screen| screen.failed(line, what));
    }

    /// Shows a call that must succeed and did not.
    pub(super) fn fail(&self, line: &Line, status: &Status) -> Difference {
        let what = said(status);
        self.show_failure(line, &what);
        Difference(format!("{} {what}", line.rpc))
    }

    fn show(&self, write: impl FnOnce(&mut Screen) -> std::io::Result<()>) {
        // Whoever no longer looks, as when the output is piped into `head`, does not change the play.
        let _ = write(&mut self.screen.borrow_mut());
    }
}

/// Somebody who touches the node's files without csi-proxy, by the names that Go has for it.
#[derive(Clone, Copy)]
pub(super) struct Aside<'a> {
    driver: &'a Driver<'a>,
    who: &'static str,
}

impl Aside<'_> {
    pub(super) fn mkdir_all(self, path: &str) -> Outcome {
        self.note("os.MkdirAll", path, self.driver.sim().external().mkdir_all(path))
    }

    pub(super) fn write_file(self, path: &str, data: &str) -> Outcome {
        self.note("os.WriteFile", path, self.driver.sim().external().write(path, data))
    }

    pub(super) fn read_file(self, path: &str) -> Outcome<String> {
        let data = self.note("os.ReadFile", path, self.driver.sim().external().read(path))?;
        Ok(String::from_utf8_lossy(&data).into_owned())
    }

    pub(super) fn read_dir(self, path: &str) -> Outcome<Vec<String>> {
        self.note("os.ReadDir", path, self.driver.sim().external().read_dir(path))
    }

    pub(super) fn read_link(self, path: &str) -> Outcome<String> {
        self.note("os.Readlink", path, self.driver.sim().external().read_link(path))
    }

    /// Whether there is something at the path (`os.Lstat`), and whether that is a link.
    pub(super) fn lstat(self, path: &str) -> Outcome<(bool, bool)> {
        let door = self.driver.sim().external();
        self.note("os.Lstat", path, Ok((door.exists(path), door.is_link(path))))
    }

    /// The total size of the file system at the path.
    pub(super) fn stat_fs(self, path: &str) -> Outcome<u64> {
        let (total, _) = self.note("GetDiskFreeSpaceEx", path, self.driver.sim().external().df(path))?;
        Ok(total)
    }

    fn note<T>(self, what: &str, path: &str, result: OsResult<T>) -> Outcome<T> {
        self.driver.show(|screen| screen.beside(self.who, what, &short(path)));
        result.map_err(|error| {
            let difference = Difference(format!("{} of {} fails in the {}: {error}", what, short(path), self.who));
            self.driver.show(|screen| screen.differs(&difference.0));
            difference
        })
    }
}

/// `found`, or what was looked for and is not there.
pub(super) fn wanted<T>(found: Option<T>, what: &str) -> Outcome<T> {
    found.ok_or_else(|| Difference(format!("there is no {what}")))
}
