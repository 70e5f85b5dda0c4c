//! Each step of a run fails in turn, and the program is killed: the results of the checks that have
//! ended are kept.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use facts::{Ended, Fact, NO_TIME, SimulatedNode, System};
use os::Os;
use os::abi::BusType;
use os_sim::{DiskDescription, Sim};
use selftest::{DisksOfNode, Evidence, FREE_SPACE, LocalMachine, Machine, RECORD_DISKS, Run};

/// How many programs run at once.
const WORKERS: usize = 4;

/// What a step answers that fails.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// An error of Windows, such as 32.
    Error(i32),
    /// A program does not end.
    TimeOut,
    /// A program prints nothing.
    Nothing,
    /// A program prints what no check prints.
    Garbage,
    /// The program is killed.
    Killed,
}

const FAILURES: [Failure; 5] = [
    // ERROR_SHARING_VIOLATION and ERROR_DISK_FULL.
    Failure::Error(32),
    Failure::Error(112),
    Failure::TimeOut,
    Failure::Nothing,
    Failure::Garbage,
];

/// A machine with Windows, whose disks are those of a simulated node, and whose files are in a
/// folder of this machine.
struct Bench {
    sim: Sim,
    os: Arc<dyn Os>,
    folder: tempfile::TempDir,
    local: LocalMachine,
    /// The numbers of the attached disks by their files.
    attached: RefCell<BTreeMap<String, u32>>,
    /// The steps so far: whether each has an answer that can be wrong.
    steps: RefCell<Vec<bool>>,
    /// The first step that fails, whether all that follow fail too, and how.
    failing: Option<(usize, bool, Failure)>,
    /// The checks that ended, and those of them in selftest.json.
    ended: RefCell<BTreeSet<String>>,
    saved: RefCell<BTreeSet<String>>,
    shown: RefCell<String>,
    /// The free space in GiB that a run asks for.
    free_space: u64,
}

impl Bench {
    fn new(failing: Option<(usize, bool, Failure)>) -> Self {
        let sim = os_sim::node().build();
        Self {
            os: sim.process(),
            sim,
            folder: tempfile::tempdir().expect("a folder"),
            local: LocalMachine::start(),
            attached: RefCell::default(),
            steps: RefCell::default(),
            failing,
            ended: RefCell::default(),
            saved: RefCell::default(),
            shown: RefCell::default(),
            free_space: FREE_SPACE,
        }
    }

    fn run(&self) -> io::Result<Evidence> {
        self.run_of(&checks()).run()
    }

    fn run_of<'a>(&'a self, checks: &'a [Fact]) -> Run<'a> {
        Run {
            machine: self,
            system: System::Windows,
            os: &*self.os,
            checks,
            longest: Duration::from_mins(30),
            output: self.folder.path().to_owned(),
            free_space: self.free_space,
            errors: Vec::new(),
        }
    }

    /// Returns how the next step fails, if it does.
    fn step(&self, has_answer: bool) -> Option<Failure> {
        let step = self.steps.borrow().len();
        self.steps.borrow_mut().push(has_answer);
        let (first, all, failure) = self.failing?;
        let fails = step == first || (all && step > first);
        if fails && matches!(failure, Failure::Killed) {
            // No panic, whose message would be printed.
            resume_unwind(Box::new("killed"));
        }
        fails.then_some(failure)
    }

    fn file_step(&self) -> io::Result<()> {
        match self.step(false) {
            None => Ok(()),
            // ERROR_ACCESS_DENIED
            Some(Failure::Error(5)) => Err(io::ErrorKind::PermissionDenied.into()),
            Some(Failure::Error(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Returns what a program has printed that should print `printed`.
    fn program_step(&self, printed: impl FnOnce() -> String) -> io::Result<Ended> {
        let ended = |printed: String| Ended {
            printed,
            ..Ended::default()
        };
        match self.step(true) {
            None => Ok(ended(printed())),
            Some(Failure::Error(code)) => Err(io::Error::from_raw_os_error(code)),
            Some(Failure::TimeOut) => Ok(Ended {
                failure: Some("did not end within 120 s".to_owned()),
                ..Ended::default()
            }),
            Some(Failure::Nothing) => Ok(ended(String::new())),
            Some(_) => Ok(ended("\u{fffd}\u{fffd}: \u{fffd}".to_owned())),
        }
    }

    /// Returns where a file of the self-test's folder is on this machine.
    fn here(&self, path: &Path) -> PathBuf {
        let text = path.to_str().expect("UTF-8");
        match text.strip_prefix(facts::FOLDER) {
            Some(rest) => self
                .folder
                .path()
                .join("own")
                .join(rest.trim_start_matches(['/', '\\'])),
            None => path.to_owned(),
        }
    }

    /// Does what diskpart does, and returns how diskpart ends if a line fails.
    fn diskpart(&self, script: &str) -> Option<String> {
        let mut selected = String::new();
        for line in script.lines() {
            if let Some(file) = line.split('"').nth(1) {
                file.clone_into(&mut selected);
            }
            let file = self.here(Path::new(&selected));
            let mut attached = self.attached.borrow_mut();
            if let Some((_, size)) = line.split_once("maximum=") {
                if file.exists() {
                    return Some("ended with exit code: 1".to_owned());
                }
                let (mebibytes, _) = size.split_once(' ').expect("a type");
                let size: u64 = mebibytes.parse().expect("a size");
                fs::write(file, (size << 20).to_string()).expect("a disk");
            } else if line == "attach vdisk" {
                let Ok(size) = fs::read_to_string(file) else {
                    return Some("ended with exit code: 1".to_owned());
                };
                if attached.contains_key(&selected) {
                    return Some("ended with exit code: 1".to_owned());
                }
                let mut disk = DiskDescription::new(size.parse().expect("a size"));
                disk.bus = BusType::FILE_BACKED_VIRTUAL.0;
                let number = self.sim.attach_disk(&disk, true).expect("a disk");
                attached.insert(selected.clone(), number);
            } else if line.starts_with("detach")
                && let Some(number) = attached.remove(&selected)
            {
                self.sim.unplug_disk(number).expect("an attached disk");
            }
        }
        None
    }
}

impl Machine for Bench {
    fn run(&self, command: &mut Command, _: Duration) -> io::Result<Ended> {
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let is_check = arguments[0] == "one";
        if arguments[0] == RECORD_DISKS {
            let disks = DisksOfNode::default();
            return self.program_step(|| serde_json::to_string(&disks).expect("JSON"));
        }
        let ended = self.program_step(|| {
            if !is_check {
                return String::new();
            }
            let check = checks()
                .into_iter()
                .find(|check| *check.id == *arguments[1]);
            facts::check(&check.expect("a check"), &SimulatedNode::default()).to_string()
        });
        if is_check && ended.is_ok() {
            let id = arguments[1].to_str().expect("an id").to_owned();
            self.ended.borrow_mut().insert(id);
        }
        ended
    }

    fn diskpart(&self, _: &Path, script: &str) -> io::Result<Ended> {
        let mut failure = None;
        let ended = self.program_step(|| {
            failure = self.diskpart(script);
            String::new()
        })?;
        Ok(Ended {
            failure: ended.failure.or(failure),
            ..ended
        })
    }

    fn create_virtual_disk(&self, file: &Path, size: u64, _: u32) -> io::Result<()> {
        self.file_step()?;
        let file = self.here(file);
        if file.exists() {
            // ERROR_FILE_EXISTS
            return Err(io::Error::from_raw_os_error(80));
        }
        fs::write(file, size.to_string())
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.file_step()?;
        fs::create_dir(self.here(folder))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.file_step()?;
        let found = self.local.list(&self.here(folder))?;
        let named = |file: PathBuf| folder.join(file.file_name().expect("a name"));
        Ok(found.into_iter().map(named).collect())
    }

    fn write(&self, file: &Path, content: &str) -> io::Result<()> {
        self.file_step()?;
        fs::write(self.here(file), content)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.file_step()?;
        fs::rename(self.here(from), self.here(to))?;
        if to.ends_with("selftest.json") {
            self.saved.replace(self.ended.borrow().clone());
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.file_step()?;
        if self
            .attached
            .borrow()
            .contains_key(path.to_str().expect("UTF-8"))
        {
            // ERROR_SHARING_VIOLATION
            return Err(io::Error::from_raw_os_error(32));
        }
        self.local.remove(&self.here(path))
    }

    fn remove_empty(&self, folder: &Path) -> io::Result<()> {
        self.file_step()?;
        fs::remove_dir(self.here(folder))
    }

    fn lock(&self, file: &Path) -> io::Result<File> {
        self.file_step()?;
        self.local.lock(&self.here(file))
    }

    fn sleep(&self, _: Duration) {
        self.sim.advance(Duration::from_secs(1));
    }

    fn show(&self, text: &str) {
        self.shown.borrow_mut().push_str(text);
    }
}

fn checks() -> Vec<Fact> {
    let mut checks = selftest::checks();
    checks.retain(|check| ["FILE-OPEN-01", "LIST-02", "MOUNT-01"].contains(&check.id));
    assert_eq!(checks.len(), 3);
    checks
}

/// Returns what selftest.json has, which must be valid.
fn written(folder: &Path) -> Evidence {
    let file = fs::read_to_string(folder.join("selftest.json")).expect("selftest.json");
    serde_json::from_str(&file).unwrap_or_else(|error| panic!("{error}: {file}"))
}

/// Returns the checks that the evidence says ended.
fn ended(evidence: &Evidence) -> BTreeSet<String> {
    let (_, no_time) = NO_TIME.split_once(": ").expect("a reason");
    let others = evidence.not_run.iter().filter(|(what, _)| *what != no_time);
    evidence
        .holds
        .iter()
        .chain(evidence.fails.keys())
        .chain(others.flat_map(|(_, checks)| checks))
        .cloned()
        .collect()
}

/// Asserts that nothing of the self-test is left, and returns what else is in its folder.
fn nothing_is_left(bench: &Bench) -> BTreeSet<OsString> {
    assert!(bench.attached.borrow().is_empty());
    let own = bench.local.list(&bench.folder.path().join("own"));
    own.unwrap_or_default()
        .iter()
        .filter_map(|file| Some(file.file_name()?.to_owned()))
        .collect()
}

#[test]
fn a_run_leaves_nothing_but_what_is_not_its_own() {
    let bench = Bench::new(None);
    let own = bench.folder.path().join("own");
    fs::create_dir(&own).expect("the folder of an earlier run");
    let others = ["holiday.jpg", "csi-proxy-selftest.exe", "my.vhdx"];
    for name in ["disk_raw.vhdx", "diskpart-7.txt"].iter().chain(&others) {
        fs::write(own.join(name), "0").expect("a file");
    }
    fs::create_dir_all(own.join("facts-7-0/staging")).expect("a folder of an earlier run");
    let evidence = bench.run().expect("the run begins");
    assert!(evidence.is_complete(), "{evidence:?}");
    assert_eq!(evidence.holds.len(), 3);
    assert_eq!(nothing_is_left(&bench), others.map(OsString::from).into());
}

#[test]
fn a_run_needs_an_administrator_space_and_a_check() {
    for (code, why) in [
        (5, "Run this program as administrator"),
        (0, "Drive C: has "),
    ] {
        let failing = (code != 0).then_some((0, false, Failure::Error(code)));
        let mut bench = Bench::new(failing);
        bench.free_space = 1 << 20;
        let refused = bench.run().expect_err("the run does not begin").to_string();
        assert!(refused.starts_with(why), "{refused}");
        assert!(!bench.folder.path().join("selftest.json").exists());
        assert!(nothing_is_left(&bench).is_empty());
    }
}

#[test]
fn a_run_that_can_write_no_result_leaves_nothing() {
    let bench = Bench::new(None);
    let checks = checks();
    let run = Run {
        output: bench.folder.path().join("none"),
        ..bench.run_of(&checks)
    };
    let refused = run.run().expect_err("the run does not begin").to_string();
    assert!(refused.starts_with("Cannot write "), "{refused}");
    assert!(!bench.folder.path().join("own").exists());
}

#[test]
fn each_step_fails_in_turn_and_no_result_is_lost() {
    let whole = Bench::new(None);
    whole.run().expect("the run begins");
    let steps = whole.steps.take();
    assert!(steps.len() > 60, "{steps:?}");
    for (first, has_answer) in steps.into_iter().enumerate() {
        for failure in FAILURES {
            if !has_answer && matches!(failure, Failure::Nothing | Failure::Garbage) {
                continue;
            }
            // A disk that is full stays full.
            for all in [false, matches!(failure, Failure::Error(112))] {
                let bench = Bench::new(Some((first, all, failure)));
                let result = bench.run();
                let what = format!("step {first}, {failure:?}, all: {all}: {result:?}");
                let Ok(evidence) = result else {
                    assert!(all && what.contains("Cannot write "), "{what}");
                    assert!(bench.ended.borrow().is_empty(), "{what}");
                    continue;
                };
                let written = written(bench.folder.path());
                assert!(ended(&written).is_superset(&bench.saved.borrow()), "{what}");
                if all && bench.ended.borrow().len() < 3 {
                    assert!(what.contains("write selftest.json: "), "{what}");
                }
                if what.contains("write selftest.json: ") {
                    // What cannot be written is on the screen.
                    let shown = bench.shown.borrow();
                    assert!(shown.contains(evidence.to_json().trim()), "{what}");
                    assert!(
                        ended(&evidence).is_superset(&bench.ended.borrow()),
                        "{what}"
                    );
                    continue;
                }
                assert_eq!(written.to_json(), evidence.to_json(), "{what}");
                assert!(ended(&written).is_superset(&bench.ended.borrow()), "{what}");
                let page = fs::read_to_string(bench.folder.path().join("selftest.md"));
                let page = page.expect("selftest.md");
                let (head, _) = page.split_once("| Windows |").expect("a table");
                for reason in evidence.errors.iter().chain(evidence.no_disks.values()) {
                    assert!(head.contains(reason), "{what}\n{page}");
                }
                let is_left = !bench.attached.borrow().is_empty();
                assert!(!is_left || !evidence.errors.is_empty(), "{what}");
            }
        }
    }
}

#[test]
fn a_run_that_is_killed_at_any_step_is_cleaned_by_the_next_or_by_hand() {
    let mut killed = 0;
    for step in 0.. {
        let mut bench = Bench::new(Some((step, false, Failure::Killed)));
        let Err(_) = catch_unwind(AssertUnwindSafe(|| bench.run())) else {
            break;
        };
        killed += 1;
        let saved = bench.saved.take();
        let file = bench.folder.path().join("selftest.json");
        assert!(saved.is_empty() || ended(&written(bench.folder.path())).is_superset(&saved));
        bench.failing = None;
        let before = fs::read_to_string(&file).ok();
        if step % 2 == 1 {
            assert_eq!(bench.run_of(&[]).clean().expect("it begins"), [""; 0]);
            assert!(nothing_is_left(&bench).is_empty(), "step {step}");
            assert_eq!(
                fs::read_to_string(&file).ok(),
                before,
                "it does nothing else"
            );
            continue;
        }
        let evidence = bench.run().expect("the run begins");
        assert!(evidence.is_complete(), "step {step}: {evidence:?}");
        assert!(nothing_is_left(&bench).is_empty(), "step {step}");
        let previous = bench.folder.path().join("selftest.previous.json");
        if let Some(before) = before {
            assert_eq!(
                fs::read_to_string(previous).expect("the earlier file"),
                before
            );
        }
    }
    assert!(killed > 60, "{killed} steps");
}

#[test]
fn the_program_is_killed_and_no_result_is_lost() {
    const NAME: &str = "the_program_is_killed_and_no_result_is_lost";
    let local = facts::local_node().map(|node| node.system());
    if local == Some(System::Windows) {
        println!("skipped: {NAME}: on Windows, the workflow runs the program");
        return;
    }
    // Under Wine, each process starts slowly.
    let (kills, milliseconds) = if local.is_some() {
        (20, 3000)
    } else {
        (200, 300)
    };
    let kept = AtomicUsize::new(0);
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let kept = &kept;
            scope.spawn(move || {
                for kill in (worker..kills).step_by(WORKERS) {
                    // Spread over the run, in another order for each worker.
                    let time = (kill * 7919 % milliseconds).try_into().expect("small");
                    let found = results_of_killed(Duration::from_millis(time));
                    kept.fetch_add(found, Ordering::Relaxed);
                }
            });
        }
    });
    let kept = kept.into_inner();
    assert!(kept > kills, "{kept} results");
}

/// Kills the program some time after it has begun, and returns how many results it had printed,
/// which are all in the file.
fn results_of_killed(time: Duration) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Command::new(env!("CARGO_BIN_EXE_csi-proxy-selftest"))
        .args(["--create-disks", "--only=LIST", "--output"])
        .arg(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut lines = BufReader::new(program.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a line").expect("UTF-8");
    assert!(first.contains("selftest.json has the results"), "{first}");
    thread::sleep(time);
    program.kill().expect("the program is killed");
    program.wait().expect("the program ends");
    let evidence = written(folder.path());
    let all = evidence.not_run.values().map(BTreeSet::len).sum::<usize>();
    let all = all + evidence.holds.len() + evidence.fails.len();
    assert_eq!(all, 9, "each check is in the file");
    let ended = ended(&evidence);
    let printed: Vec<String> = lines
        .map_while(Result::ok)
        .filter_map(|line| Some(line.split_once(": ")?.0.to_owned()))
        .filter(|id| id.starts_with("LIST-"))
        .collect();
    for id in &printed {
        assert!(ended.contains(id), "{id}: {evidence:?}");
    }
    printed.len()
}
