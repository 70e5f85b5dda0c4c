//! A long run driven by a seed, with concurrent callers, several faults, restarts, a disk that is
//! sometimes detached, and an attacker.
//!
//! A run starts the daemon a few times. Each time, callers make requests concurrently, in an order
//! that the seed decides; calls fail, take long, or end the process. At the end all faults stop,
//! and every disk must be usable.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use faults::{Call, FaultAction, Probe, Probed};
use os_sim::{Builder, Sim};
use storage_ops::{
    Config, CreateSymlink, DiskNumber, FormatVolume, IsVolumeFormatted, ListVolumesOnDisk, Mkdir,
    MountVolume, Node, PartitionDisk, RemoveSmbGlobalMapping, Rescan, ResizeTarget, ResizeVolume,
    Rmdir, RmdirContents, SetDiskState, UncPath, UnmountVolume,
};

use crate::SETTLE_TIME;
use crate::attack::Attack;
use crate::error_codes::{errors_of, is_informative};
use crate::interleaver::{Interleaver, Schedule};
use crate::invariants::{Baseline, check_answer, check_nothing_held};
use crate::request::{Answer, Request};
use crate::rng::Rng;
use crate::scenarios::filesystem::{PATH, SOURCE};
use crate::scenarios::races::COMPONENTS;
use crate::scenarios::smb::{PASSWORD, map};
use crate::scenarios::{GIB, boxed, path, volume};
use crate::started_node::{Driver, StartedNode};

/// The number of callers, each with one request at a time.
const CALLERS: usize = 4;

/// The number of requests that a caller makes to one process.
const REQUESTS: usize = 5;

/// The disks that the callers use. Disk 2 belongs to another tenant.
const DISKS: [u32; 3] = [1, 3, 4];

/// The lines of a snapshot that may change: the disks in use, kubelet's directory, and the mapping.
const CHANGES: &[&str] = &[
    "disk 1 ",
    "disk 3 ",
    "disk 4 ",
    r"disk 0 partition 2 \var\lib\kubelet\",
    r"disk 0 partition 2 mounted at C:\var\lib\kubelet\",
    r"disk 2 partition 2 mounted at C:\var\lib\kubelet\",
    r"mapping \\files\one ",
];

fn initial_node() -> Sim {
    let outside = [
        r"C:\outside\a\p\d",
        r"C:\vacant\a\p",
        r"C:\vacant\m",
        r"C:\mounts",
        r"C:\deep",
    ];
    let node = outside
        .into_iter()
        .fold(os_sim::node(), Builder::dir)
        .dir(PATH)
        .dir(SOURCE)
        .dir(OTHER);
    let node = node
        .smb_server("files")
        .share("one")
        .user(r"domain\user", PASSWORD)
        .user("other", PASSWORD);
    let node = node
        .disk(GIB)
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .mounted(r"C:\other");
    let sim = node
        .disk(GIB)
        .partitioned()
        .grown_to(2 * GIB)
        .disk(GIB)
        .partitioned()
        .formatted("NTFS")
        .build();
    sim.external()
        .write(r"C:\other\precious", b"precious")
        .expect("a mounted volume");
    sim
}

const OTHER: &str = r"C:\var\lib\kubelet\plugins\v";

/// Makes a random request on one of few objects, so that requests for the same object are frequent.
fn request(rng: &mut Rng, sim: &Sim) -> Box<dyn Request> {
    let number = rng.one_of(&DISKS);
    let (disk, on_it) = (DiskNumber(number), volume(sim, number));
    let at = path(rng.one_of(&[PATH, OTHER, r"C:\var\lib\kubelet\pods\a\p\d"]));
    match rng.below(18) {
        0 | 1 => boxed(PartitionDisk { disk }),
        2 => boxed(SetDiskState { disk, online: true }),
        3 => boxed(SetDiskState {
            disk,
            online: false,
        }),
        4 => boxed(ListVolumesOnDisk { disk, partition: 0 }),
        5 => boxed(IsVolumeFormatted { volume: on_it }),
        6 | 7 => boxed(FormatVolume::new(on_it)),
        8 | 9 => boxed(MountVolume {
            volume: on_it,
            target: at,
        }),
        10 => boxed(UnmountVolume {
            volume: on_it,
            target: at,
        }),
        11 => boxed(ResizeVolume::new(ResizeTarget::Volume(on_it), 0)),
        12 => boxed(Mkdir {
            path: at,
            context: None,
        }),
        13 => boxed(Rmdir {
            path: at,
            context: None,
            force: true,
        }),
        14 => boxed(RmdirContents { path: at }),
        15 => boxed(CreateSymlink {
            source: path(SOURCE),
            target: at,
        }),
        16 => boxed(map(
            rng.one_of(&[r"domain\user", r"domain\other"]),
            PASSWORD,
            Some(PATH),
        )),
        _ if rng.once_in(2) => boxed(Rescan),
        _ => boxed(RemoveSmbGlobalMapping {
            remote: UncPath::parse(r"\\files\one").expect("a remote path"),
        }),
    }
}

/// Lets a random ready thread run next.
struct RandomOrder(Rng);

impl Schedule for RandomOrder {
    fn next(&mut self, ready: &[usize], _begun: &[usize]) -> usize {
        self.0.one_of(ready)
    }
}

/// Injects random faults, attacks and changes of hardware.
struct ChaosProbe {
    sim: Sim,
    rng: Mutex<Rng>,
    detached: Mutex<Option<u64>>,
}

impl ChaosProbe {
    fn attach(&self) {
        if let Some(disk) = os::lock(&self.detached).take() {
            self.sim.plug_disk(disk, true);
        }
    }
}

impl Probe for ChaosProbe {
    fn before(&self, call: &Call) -> FaultAction {
        let mut rng = os::lock(&self.rng);
        if rng.once_in(40) {
            let attack = rng.one_of(&Attack::all(COMPONENTS));
            attack.act(&self.sim);
        }
        if rng.once_in(150) {
            self.attach();
            // The highest number, so that no other disk gets it in the meantime.
            *os::lock(&self.detached) = self.sim.unplug_disk(4);
        } else if rng.once_in(50) {
            self.attach();
        }
        if rng.once_in(400) {
            return FaultAction::Die;
        }
        if rng.once_in(100) {
            return FaultAction::Delay(Duration::from_mins(3));
        }
        // Operations treat some codes as information. These are not injected: two false ones could
        // make data look absent.
        let is_failure = |code: &os::OsError| !is_informative(call, code.0);
        let errors: Vec<_> = errors_of(call).iter().copied().filter(is_failure).collect();
        if rng.once_in(30) && !errors.is_empty() {
            return FaultAction::Fail(rng.one_of(&errors));
        }
        FaultAction::Go
    }
}

/// Performs the run of a seed. Returns the number of requests and the violations.
pub fn run(seed: u64) -> (usize, Vec<String>) {
    let (sim, mut rng) = (initial_node(), Rng::new(seed));
    let baseline = Baseline::of(&sim);
    let (mut requests, mut violations) = (0, Vec::new());
    for _ in 0..2 + rng.below(4) {
        requests += CALLERS * REQUESTS;
        violations.extend(run_process(&sim, &mut rng));
        violations.extend(baseline.check(&sim, CHANGES, None));
    }
    violations.extend(recover(&sim));
    violations.extend(baseline.check(&sim, CHANGES, None));
    (requests, violations)
}

/// Runs one process of the daemon, from its start to its end.
fn run_process(sim: &Sim, rng: &mut Rng) -> Vec<String> {
    let requests: Vec<Vec<_>> = (0..CALLERS)
        .map(|_| (0..REQUESTS).map(|_| request(rng, sim)).collect())
        .collect();
    let chaos = Arc::new(ChaosProbe {
        sim: sim.clone(),
        rng: Mutex::new(Rng::new(rng.number())),
        detached: Mutex::default(),
    });
    let interleaver = Interleaver::new(CALLERS, RandomOrder(Rng::new(rng.number())));
    let probes: Vec<Arc<dyn Probe>> = vec![Arc::new(interleaver.clone()), chaos.clone()];
    let process = Arc::new(Probed::new(interleaver.wrap(sim.process()), probes));
    let node = StartedNode::new(sim, process.clone(), Config::default(), Driver::Thread);
    let call_in_sequence = |requests: &[Box<dyn Request>]| -> Vec<Answer> {
        requests.iter().map(|request| request.run(&node)).collect()
    };
    let callers = requests.iter().map(|requests| {
        Box::new(|| call_in_sequence(requests)) as Box<dyn FnOnce() -> Vec<Answer> + Send + '_>
    });
    let answers = interleaver.run(callers.collect());
    chaos.attach();
    sim.advance(SETTLE_TIME);
    let mut violations = Vec::new();
    for (request, answer) in requests.iter().flatten().zip(answers.iter().flatten()) {
        violations.extend(check_answer(&**request, answer, None));
    }
    if !process.is_dead() {
        violations.extend(check_nothing_held(sim, &node));
    }
    drop(node);
    drop(process);
    if sim.open_handles() > 0 {
        violations.push(format!(
            "{} handles are open although no process is running",
            sim.open_handles()
        ));
    }
    violations
}

/// Checks that every disk can be used from the beginning, after the attacker's changes are removed
/// and faults have stopped.
fn recover(sim: &Sim) -> Vec<String> {
    let external = sim.external();
    for directory in [r"C:\var\lib\kubelet\pods", r"C:\var\lib\kubelet\plugins"] {
        if let Err(code) = external
            .remove_all(directory)
            .and_then(|()| external.mkdir_all(directory))
        {
            return vec![format!("{directory} cannot be cleared: {code}")];
        }
    }
    let node = StartedNode::new(sim, sim.process(), Config::default(), Driver::Thread);
    let mut violations = Vec::new();
    for number in DISKS {
        if let Err(error) = use_disk(sim, &node, number) {
            violations.push(format!("disk {number} is not usable at the end: {error}"));
        }
    }
    sim.advance(SETTLE_TIME);
    violations.extend(check_nothing_held(sim, &node));
    violations
}

/// Makes a driver's calls for a disk, from partitioning to unmounting.
fn use_disk(sim: &Sim, node: &Node, number: u32) -> Result<(), Box<dyn std::error::Error>> {
    let disk = DiskNumber(number);
    node.run(&PartitionDisk { disk })?;
    node.run(&SetDiskState { disk, online: true })?;
    let volume = *node
        .run(&ListVolumesOnDisk { disk, partition: 0 })?
        .first()
        .ok_or("no volume found")?;
    if !node.run(&IsVolumeFormatted { volume })? {
        node.run(&FormatVolume::new(volume))?;
    }
    let target = format!(r"C:\var\lib\kubelet\plugins\disk{number}");
    node.run(&Mkdir {
        path: path(&target),
        context: None,
    })?;
    node.run(&MountVolume {
        volume,
        target: path(&target),
    })?;
    sim.external().write(&format!(r"{target}\file"), b"1")?;
    node.run(&ResizeVolume::new(ResizeTarget::Volume(volume), 0))?;
    node.run(&UnmountVolume {
        volume,
        target: path(&target),
    })?;
    node.run(&Rmdir {
        path: path(&target),
        context: None,
        force: false,
    })?;
    Ok(())
}
