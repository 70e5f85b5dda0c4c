//! The rules for every probed process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use os::abi::ControlCode;
use os::{
    Access, CallStatus, FileInfo, MethodCall, Namespace, NtPath, Open, Options, Os, OsError,
    OsResult, Secret, ServiceAccess, Time, U16String, Value,
};
use os_sim::Sim;

use super::{Call, FaultAction, Outcome, Probe, Probed, matches};
use crate::fault::{Fault, When};
use crate::trace::Trace;

/// A simulated node that counts the calls that reach it.
pub(crate) struct Counted {
    pub(crate) sim: Sim,
    reached: Arc<Trace>,
}

impl Counted {
    pub(crate) fn new() -> Self {
        let sim = os_sim::node()
            .service("svc", "A service")
            .disk(1 << 30)
            .partitioned()
            .build();
        Self {
            sim,
            reached: Arc::new(Trace::counting()),
        }
    }

    /// Starts a process on the node.
    pub(crate) fn process(&self, probe: impl Probe + 'static) -> Probed {
        let counted = Probed::new(self.sim.process(), Arc::clone(&self.reached));
        Probed::new(Arc::new(counted), probe)
    }

    /// Returns how many calls reached the node.
    pub(crate) fn calls(&self) -> u64 {
        self.reached.counts().primitives
    }
}

/// Starts a process on a new node.
pub(crate) fn probed(probe: impl Probe + 'static) -> Probed {
    Counted::new().process(probe)
}

/// Makes a call that changes the node and succeeds.
pub(crate) fn write(probed: &Probed) -> OsResult<()> {
    let text = name("text");
    probed.set_volatile_text(&text, &text, &text)
}

pub(crate) fn path(win32: &str) -> NtPath {
    NtPath::from_win32(&U16String::from_str(win32))
}

/// Begins to format the only volume without a file system, and returns before it ends.
fn format(os: &dyn Os) -> OsResult<CallStatus> {
    let wql = "SELECT * FROM MSFT_Volume WHERE FileSystemType = 0";
    let volume = os
        .wmi()
        .query(Namespace::Storage, wql, Time(Duration::MAX))
        .expect("a query")
        .remove(0);
    os.wmi().call(
        &MethodCall::new(Namespace::Storage, &volume.path, "Format", &[]),
        os.clock().now(),
    )
}

const READ: Open = Open::existing(Access::READ_DATA, Options::empty());
const DEAD: OsError = OsError::OPERATION_ABORTED;

fn name(text: &str) -> U16String {
    U16String::from_str(text)
}

/// A probe that disturbs nothing.
struct Quiet;
impl Probe for Quiet {}

#[test]
fn death_closes_all_handles_and_every_later_call_fails() {
    let node = Counted::new();
    let probed = node.process(Quiet);
    let root = probed.open(&path(r"C:\"), &READ).expect("a directory");
    let child = root.open_child(&name("var"), &READ).expect("a directory");
    let service = probed
        .open_service(&name("svc"), ServiceAccess::Stop)
        .expect("a service");
    assert_eq!(node.sim.open_handles(), 2);
    let reached = node.calls();

    probed.kill();
    assert_eq!(node.sim.open_handles(), 0, "the kernel closes handles");
    assert_eq!(child.set(FileInfo::Disposition, &[1]), Err(DEAD));
    assert_eq!(root.open_child(&name("var"), &READ).err(), Some(DEAD));
    assert_eq!(service.stop(), Err(DEAD));
    assert_eq!(probed.volumes(), Err(DEAD));
    assert_eq!(
        probed.wmi().query(Namespace::Storage, "", Time::default()),
        Err(DEAD)
    );
    probed.clock().sleep(Duration::from_secs(1));
    drop((child, root, service));
    assert_eq!(
        node.calls(),
        reached,
        "no call of a dead process reaches the node"
    );
    assert_eq!(node.sim.now(), Time::default());
}

#[test]
fn a_handle_that_its_caller_drops_or_does_not_receive_is_closed() {
    for action in [
        FaultAction::Go,
        FaultAction::Die,
        FaultAction::Fail(OsError::BUSY),
    ] {
        let node = Counted::new();
        let probed = node.process(Fault::at(0, When::After, action));
        let opened = probed.open(&path(r"C:\"), &READ);
        assert_eq!(opened.is_ok(), action == FaultAction::Go);
        assert_eq!(node.sim.open_handles(), usize::from(opened.is_ok()));
        drop(opened);
        assert_eq!((node.calls(), node.sim.open_handles()), (1, 0));
    }
}

#[test]
fn the_callback_of_a_pending_call_does_not_run_in_a_dead_process() {
    for (killed, expected) in [(false, 1), (true, 0)] {
        let node = Counted::new();
        let probed = node.process(Quiet);
        let Ok(CallStatus::StillRunning(pending)) = format(&probed) else {
            panic!("the call has ended")
        };
        let callbacks = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&callbacks);
        pending.when_ended(Box::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }));
        if killed {
            probed.kill();
        }
        node.sim.advance(Duration::from_mins(1));
        assert_eq!(
            (callbacks.load(Ordering::SeqCst), node.sim.running_jobs()),
            (expected, 0)
        );
    }
}

#[test]
fn a_call_that_can_change_the_node_is_marked() {
    let trace = Arc::new(Trace::recording());
    let probed = probed(Arc::clone(&trace));
    let root = probed.open(&path(r"C:\"), &READ).expect("a directory");
    // Whether the calls succeed makes no difference.
    let _ = root.control(ControlCode::DISK_GET_LENGTH_INFO, &[], &mut []);
    let _ = root.query(FileInfo::Basic, &mut []);
    let sizes = MethodCall::new(
        Namespace::Storage,
        "MSFT_Partition",
        "GetSupportedSize",
        &[],
    );
    let _ = probed.wmi().call(&sizes, Time::default());
    let marks = || {
        trace
            .take()
            .iter()
            .map(|record| record.call.mutates)
            .collect::<Vec<_>>()
    };
    assert_eq!(marks(), [false; 4]);

    let _ = root.open_child(&name("new"), &Open::new_directory(Access::WRITE_DATA));
    let _ = root.control(ControlCode::FSCTL_SET_REPARSE_POINT, &[], &mut []);
    let _ = root.set(FileInfo::DispositionEx, &[]);
    let _ = probed.delete_volume_mount_point(&name("C:\\dir\\"));
    assert_eq!(marks(), [true; 4]);
}

#[test]
fn only_changes_in_the_table_are_known() {
    let call = |primitive: &str, mutates| Call {
        sequence: 0,
        primitive: primitive.to_owned().into(),
        object: String::new(),
        mutates,
    };
    assert!(
        call("set_volume_mount_point", true).is_known_change()
            && call("open", false).is_known_change()
    );
    assert!(!call("control 0x0007c058", true).is_known_change());
}

#[test]
fn a_call_does_not_contain_its_arguments() {
    let trace = Arc::new(Trace::recording());
    let probed = probed(Arc::clone(&trace));
    let arguments = [
        ("Credential", Value::Secret(Secret::new("u:hunter2".into()))),
        ("Other", Value::Text("hunter3".into())),
    ];
    let create = MethodCall::new(
        Namespace::Smb,
        "MSFT_SmbGlobalMapping",
        "Create",
        &arguments,
    );
    assert!(
        probed.wmi().call(&create, Time::default()).is_err(),
        "there is no such server"
    );
    let records = format!("{:?}", trace.take());
    assert!(
        records.contains("wmi call MSFT_SmbGlobalMapping.Create"),
        "{records}"
    );
    assert!(!records.contains("hunter"), "{records}");
}

#[test]
fn an_outer_probe_sees_the_faults_of_an_inner_one() {
    for (when, action, outcome) in [
        (
            When::Before,
            FaultAction::Fail(OsError::BUSY),
            Outcome::Failed(OsError::BUSY),
        ),
        (
            When::After,
            FaultAction::Fail(OsError::BUSY),
            Outcome::Failed(OsError::BUSY),
        ),
        (When::Before, FaultAction::Die, Outcome::Died),
        (When::After, FaultAction::Die, Outcome::Died),
        (
            When::After,
            FaultAction::Delay(Duration::from_secs(1)),
            Outcome::Done,
        ),
    ] {
        let trace = Arc::new(Trace::recording());
        let stack: Vec<Arc<dyn Probe>> = vec![trace.clone(), Arc::new(Fault::at(0, when, action))];
        let result = probed(stack).volumes();
        assert_eq!(result.is_ok(), outcome == Outcome::Done);
        let seen: Vec<_> = trace.take().iter().map(|record| record.outcome).collect();
        assert_eq!(seen, [outcome], "{when:?} {action:?}");
    }
}

#[test]
fn an_asterisk_stands_for_any_rest_of_a_name() {
    assert!(
        matches("", "open")
            && matches("*", "open")
            && matches("open", "open")
            && matches("open*", "open_child")
    );
    assert!(!matches("open", "open_child"));
    assert!(
        matches("wmi *", "wmi query")
            && matches("wmi call MSFT_Volume.*", "wmi call MSFT_Volume.Format")
    );
}
