//! A long run from a seed: many callers, several faults, restarts, disks that go and come, an attacker.
//!
//! A voyage has a few lives of the daemon. In each, callers ask for operations at the same time, in an order that the
//! seed decides; calls fail, take long, or are the last. In the end all is calm, and every disk can be used.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use faults::{Call, FaultAction, Probe, Probed};
use os_sim::{DetachedDisk, Sim};
use storage_ops::{
    Config, CreateSymlink, DiskNumber, FormatVolume, IsVolumeFormatted, ListVolumesOnDisk, Mkdir, MountVolume, Node,
    PartitionDisk, RemoveSmbGlobalMapping, Rescan, ResizeVolume, Rmdir, RmdirContents, SetDiskState, UncPath,
    UnmountVolume,
};

use crate::attack::Attack;
use crate::code::{errors_of, is_answer};
use crate::promise::{Before, nothing_held, words};
use crate::random::Random;
use crate::scenario::{Answer, Request};
use crate::scenarios::contested::COMPONENTS;
use crate::scenarios::filesystem::PATH;
use crate::scenarios::smb::{PASSWORD, map};
use crate::scenarios::{GIB, ask, path, volume};
use crate::stage::{Schedule, Stage};

const LONG: Duration = Duration::from_hours(4);

/// How many operations are under way at once.
const CALLERS: usize = 4;

/// How many operations a caller asks for in one life of the daemon.
const REQUESTS: usize = 5;

/// The disks that the callers use. Disk 2 is somebody else's.
const DISKS: [u32; 3] = [1, 3, 4];

/// What may change: the disks in use, what is inside, and the mapping.
const CHANGES: &[&str] = &[
    "disk 1 ",
    "disk 3 ",
    "disk 4 ",
    r"disk 0 partition 2 \var\lib\kubelet\",
    r"disk 0 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 2 partition 2 mounted at C:\var\lib\kubelet\",
    r"mapping \\files\one ",
];

fn world() -> Sim {
    let node = os_sim::node()
        .dir(PATH)
        .dir(r"C:\outside\a\p\d")
        .dir(r"C:\vacant\a\p")
        .dir(r"C:\vacant\m")
        .dir(r"C:\mounts")
        .dir(r"C:\deep");
    let node = node.dir(r"C:\var\lib\kubelet\plugins\source").dir(OTHER);
    let node = node.smb_server("files").share("one").user(r"domain\user", PASSWORD).user("other", PASSWORD);
    let node = node.disk(GIB).disk(GIB).partitioned().formatted("NTFS").mounted(r"C:\other");
    let sim = node.disk(GIB).partitioned().grown_to(2 * GIB).disk(GIB).partitioned().formatted("NTFS").build();
    sim.external().write(r"C:\other\precious", b"precious").expect("a mounted volume");
    sim
}

const OTHER: &str = r"C:\var\lib\kubelet\plugins\v";

/// Some operation, on one of few objects, so that they meet.
fn request(random: &mut Random, sim: &Sim) -> Box<dyn Request> {
    let number = random.one_of(&DISKS);
    let (disk, on_it) = (DiskNumber(number), volume(sim, number));
    let at = path(random.one_of(&[PATH, OTHER, r"C:\var\lib\kubelet\pods\a\p\d"]));
    let source = path(r"C:\var\lib\kubelet\plugins\source");
    match random.below(18) {
        0 | 1 => ask(PartitionDisk { disk }),
        2 => ask(SetDiskState { disk, online: true }),
        3 => ask(SetDiskState { disk, online: false }),
        4 => ask(ListVolumesOnDisk { disk, partition: 0 }),
        5 => ask(IsVolumeFormatted { volume: on_it }),
        6 | 7 => ask(FormatVolume { volume: on_it }),
        8 | 9 => ask(MountVolume { volume: on_it, target: at }),
        10 => ask(UnmountVolume { volume: on_it, target: at }),
        11 => ask(ResizeVolume { volume: on_it, size: 0 }),
        12 => ask(Mkdir { path: at, context: None }),
        13 => ask(Rmdir { path: at, context: None, force: true }),
        14 => ask(RmdirContents { path: at }),
        15 => ask(CreateSymlink { source, target: at }),
        16 => ask(map(random.one_of(&[r"domain\user", "other"]), PASSWORD, Some(PATH))),
        _ if random.once_in(2) => ask(Rescan),
        _ => ask(RemoveSmbGlobalMapping { remote: UncPath::parse(r"\\files\one").expect("a remote path") }),
    }
}

/// Any thread that can go on.
struct AnyOne(Random);

impl Schedule for AnyOne {
    fn next(&mut self, ready: &[usize], _begun: &[usize]) -> usize {
        self.0.one_of(ready)
    }
}

/// What goes wrong meanwhile.
struct Weather {
    sim: Sim,
    random: Mutex<Random>,
    away: Mutex<Option<DetachedDisk>>,
}

impl Weather {
    fn attach(&self) {
        if let Some(disk) = self.away.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.sim.reattach_disk(disk, true);
        }
    }
}

impl Probe for Weather {
    fn before(&self, call: &Call) -> FaultAction {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        if random.once_in(40) {
            let attack = random.one_of(&Attack::all(COMPONENTS));
            attack.act(&self.sim);
        }
        if random.once_in(150) {
            self.attach();
            // The highest, so that no other disk gets its number while it is away.
            *self.away.lock().unwrap_or_else(PoisonError::into_inner) = self.sim.detach_disk(4);
        } else if random.once_in(50) {
            self.attach();
        }
        if random.once_in(400) {
            return FaultAction::Die;
        }
        if random.once_in(100) {
            return FaultAction::Delay(Duration::from_mins(3));
        }
        // What Windows gives for an answer it gives truly: two lies in a row could make any data look absent.
        let honest = |code: &os::OsError| !is_answer(call, code.0);
        let errors: Vec<_> = errors_of(call).iter().copied().filter(honest).collect();
        if random.once_in(30) && !errors.is_empty() {
            return FaultAction::Fail(random.one_of(&errors));
        }
        FaultAction::Go
    }
}

/// Runs the voyage of a seed; says how many operations were asked for, and what was broken.
pub fn run(seed: u64) -> (usize, Vec<String>) {
    let (sim, mut random) = (world(), Random::new(seed));
    let before = Before::of(&sim);
    let (mut asked, mut broken) = (0, Vec::new());
    for _ in 0..2 + random.below(4) {
        asked += CALLERS * REQUESTS;
        broken.extend(life(&sim, &mut random));
        broken.extend(before.check(&sim, CHANGES, None));
    }
    broken.extend(calm(&sim));
    broken.extend(before.check(&sim, CHANGES, None));
    (asked, broken)
}

/// One life of the daemon.
fn life(sim: &Sim, random: &mut Random) -> Vec<String> {
    let requests: Vec<Vec<_>> = (0..CALLERS).map(|_| (0..REQUESTS).map(|_| request(random, sim)).collect()).collect();
    let weather = Arc::new(Weather {
        sim: sim.clone(),
        random: Mutex::new(Random::new(random.number())),
        away: Mutex::default(),
    });
    let stage = Stage::new(CALLERS, AnyOne(Random::new(random.number())));
    let probes: Vec<Arc<dyn Probe>> = vec![Arc::new(stage.clone()), weather.clone()];
    let process = Arc::new(Probed::new(stage.over(sim.process()), probes));
    let node = Node::new(process.clone(), Config::default());
    let one_after_the_other =
        |requests: &[Box<dyn Request>]| -> Vec<Answer> { requests.iter().map(|request| request.run(&node)).collect() };
    let parts = requests
        .iter()
        .map(|requests| Box::new(|| one_after_the_other(requests)) as Box<dyn FnOnce() -> Vec<Answer> + Send + '_>);
    let answers = stage.run(parts.collect());
    weather.attach();
    sim.advance(LONG);
    let mut broken = Vec::new();
    for (request, answer) in requests.iter().flatten().zip(answers.iter().flatten()) {
        broken.extend(words(&**request, answer, None));
    }
    if !process.is_dead() {
        broken.extend(nothing_held(sim, &node));
    }
    drop(node);
    drop(process);
    if sim.open_handles() > 0 {
        broken.push(format!("{} handles are open without a process", sim.open_handles()));
    }
    broken
}

/// Once the attacker's traces have been cleared away and nothing fails, every disk can be used from the beginning.
fn calm(sim: &Sim) -> Vec<String> {
    let door = sim.external();
    for place in [r"C:\var\lib\kubelet\pods", r"C:\var\lib\kubelet\plugins"] {
        if let Err(code) = door.remove_all(place).and_then(|()| door.mkdir_all(place)) {
            return vec![format!("{place} cannot be cleared: {code}")];
        }
    }
    let node = Node::new(sim.process(), Config::default());
    let mut broken = Vec::new();
    for number in DISKS {
        if let Err(error) = stage_disk(sim, &node, number) {
            broken.push(format!("disk {number} cannot be used in the end: {error}"));
        }
    }
    sim.advance(LONG);
    broken.extend(nothing_held(sim, &node));
    broken
}

/// What a driver does with a disk.
fn stage_disk(sim: &Sim, node: &Node, number: u32) -> Result<(), Box<dyn std::error::Error>> {
    let disk = DiskNumber(number);
    node.run(&PartitionDisk { disk })?;
    node.run(&SetDiskState { disk, online: true })?;
    let volume = *node.run(&ListVolumesOnDisk { disk, partition: 0 })?.first().ok_or("no volume")?;
    if !node.run(&IsVolumeFormatted { volume })? {
        node.run(&FormatVolume { volume })?;
    }
    let target = format!(r"C:\var\lib\kubelet\plugins\calm{number}");
    node.run(&Mkdir { path: path(&target), context: None })?;
    node.run(&MountVolume { volume, target: path(&target) })?;
    sim.external().write(&format!(r"{target}\file"), b"1")?;
    node.run(&ResizeVolume { volume, size: 0 })?;
    node.run(&UnmountVolume { volume, target: path(&target) })?;
    node.run(&Rmdir { path: path(&target), context: None, force: false })?;
    Ok(())
}
