//! The rules for every probed process, on a node that only counts calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use os::abi::{ControlCode, SecurityDescriptor};
use os::{
    Access, CallStatus, Clock, FileInfo, FsInfo, Handle, Instance, MethodCall, Namespace, NtPath, Open, Options, Os,
    OsError, OsResult, PathForm, PendingCall, Secret, Service, ServiceAccess, ServiceConfig, Time, U16Str, U16String,
    Uuid, Value, Wmi,
};

use super::{Call, FaultAction, Outcome, Probe, Probed};
use crate::fault::{Fault, When};
use crate::trace::Trace;

type Then = Box<dyn FnOnce() + Send>;

/// A node on which every call is counted and succeeds, except `flush`, which fails, and WMI methods, which stay pending.
#[derive(Clone, Default)]
pub(crate) struct Echo(Arc<Counters>);

#[derive(Default)]
struct Counters {
    calls: AtomicU64,
    open: AtomicU64,
    milliseconds: AtomicU64,
    jobs: Mutex<Vec<Then>>,
}

impl Echo {
    pub(crate) fn node() -> Arc<Self> {
        Arc::default()
    }

    /// Returns how many calls reached the node.
    pub(crate) fn calls(&self) -> u64 {
        self.0.calls.load(Ordering::SeqCst)
    }

    fn open_objects(&self) -> u64 {
        self.0.open.load(Ordering::SeqCst)
    }

    fn end_jobs(&self) {
        let jobs = std::mem::take(&mut *self.0.jobs.lock().expect("jobs"));
        for then in jobs {
            then();
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "this is what a primitive returns")]
    fn count<T>(&self, value: T) -> OsResult<T> {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        Ok(value)
    }

    fn object(&self) -> Object {
        self.0.open.fetch_add(1, Ordering::SeqCst);
        Object(self.clone())
    }
}

struct Object(Echo);

impl Drop for Object {
    fn drop(&mut self) {
        self.0.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Os for Echo {
    fn open(&self, _: &NtPath, _: &Open) -> OsResult<Box<dyn Handle>> {
        self.count(Box::new(self.object()))
    }
    fn device_interfaces(&self, _: Uuid) -> OsResult<Vec<U16String>> {
        self.count(Vec::new())
    }
    fn reenumerate(&self, _: &U16Str) -> OsResult<()> {
        self.count(())
    }
    fn volumes(&self) -> OsResult<Vec<U16String>> {
        self.count(Vec::new())
    }
    fn volume_paths(&self, _: &U16Str) -> OsResult<Vec<U16String>> {
        self.count(Vec::new())
    }
    fn set_volume_mount_point(&self, _: &U16Str, _: &U16Str) -> OsResult<()> {
        self.count(())
    }
    fn delete_volume_mount_point(&self, _: &U16Str) -> OsResult<()> {
        self.count(())
    }
    fn open_service(&self, _: &U16Str, _: ServiceAccess) -> OsResult<Box<dyn Service>> {
        self.count(Box::new(self.object()))
    }
    fn firmware_table(&self, _: u32, _: u32, _: &mut [u8]) -> OsResult<usize> {
        self.count(0)
    }
    fn registry_text(&self, _: &U16Str, _: &U16Str) -> OsResult<U16String> {
        self.count(U16String::new())
    }
    fn set_volatile_text(&self, _: &U16Str, _: &U16Str, _: &U16Str) -> OsResult<()> {
        self.count(())
    }
    fn delete_registry_value(&self, _: &U16Str, _: &U16Str) -> OsResult<()> {
        self.count(())
    }
    fn wmi(&self) -> &dyn Wmi {
        self
    }
    fn clock(&self) -> &dyn Clock {
        self
    }
}

impl Wmi for Echo {
    fn query(&self, _: Namespace, _: &str, _: Time) -> OsResult<Vec<Instance>> {
        self.count(Vec::new())
    }
    fn call(&self, _: &MethodCall<'_>, _: Time) -> OsResult<CallStatus> {
        self.count(CallStatus::StillRunning(Box::new(self.clone())))
    }
}

impl PendingCall for Echo {
    fn when_ended(self: Box<Self>, then: Then) {
        self.0.jobs.lock().expect("jobs").push(then);
    }
}

impl Clock for Echo {
    fn now(&self) -> Time {
        Time(Duration::from_millis(self.0.milliseconds.load(Ordering::SeqCst)))
    }
    fn since_start_of_windows(&self) -> Duration {
        self.now().0
    }
    fn sleep(&self, span: Duration) {
        let span = u64::try_from(span.as_millis()).expect("the span is short");
        self.0.milliseconds.fetch_add(span, Ordering::SeqCst);
    }
}

impl Handle for Object {
    fn open_child(&self, _: &U16Str, _: &Open) -> OsResult<Box<dyn Handle>> {
        self.0.count(Box::new(self.0.object()))
    }
    fn open_below(&self, _: &U16Str, _: &Open) -> OsResult<Box<dyn Handle>> {
        self.0.count(Box::new(self.0.object()))
    }
    fn control(&self, _: ControlCode, _: &[u8], _: &mut [u8]) -> OsResult<usize> {
        self.0.count(0)
    }
    fn query(&self, _: FileInfo, _: &mut [u8]) -> OsResult<()> {
        self.0.count(())
    }
    fn set(&self, _: FileInfo, _: &[u8]) -> OsResult<()> {
        self.0.count(())
    }
    fn query_fs(&self, _: FsInfo, _: &mut [u8]) -> OsResult<usize> {
        self.0.count(0)
    }
    fn list(&self, _: bool, _: &mut [u8]) -> OsResult<()> {
        self.0.count(())
    }
    fn final_path(&self, _: PathForm) -> OsResult<U16String> {
        self.0.count(U16String::new())
    }
    fn security_descriptor(&self) -> OsResult<SecurityDescriptor> {
        self.0.count(SecurityDescriptor { owner: None, entries: None })
    }
    fn read(&self, _: u64, _: &mut [u8]) -> OsResult<usize> {
        self.0.count(0)
    }
    fn flush(&self) -> OsResult<()> {
        self.0.count(())?;
        Err(OsError::INVALID_FUNCTION)
    }
}

impl Service for Object {
    fn config(&self) -> OsResult<ServiceConfig> {
        self.0.count(ServiceConfig { display_name: U16String::new(), start_type: 2 })
    }
    fn state(&self) -> OsResult<u32> {
        self.0.count(4)
    }
    fn start(&self) -> OsResult<()> {
        self.0.count(())
    }
    fn stop(&self) -> OsResult<()> {
        self.0.count(())
    }
    fn active_dependents(&self) -> OsResult<Vec<U16String>> {
        self.0.count(Vec::new())
    }
}

pub(crate) fn path(win32: &str) -> NtPath {
    NtPath::from_win32(&U16String::from_str(win32))
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
    let node = Echo::node();
    let probed = Probed::new(node.clone(), Quiet);
    let drive = probed.open(&path("C:"), &READ).expect("a drive");
    let child = drive.open_child(&name("var"), &READ).expect("a directory");
    let service = probed.open_service(&name("MSiSCSI"), ServiceAccess::Stop).expect("a service");
    assert_eq!(node.open_objects(), 3);
    let reached = node.calls();

    probed.kill();
    assert_eq!(node.open_objects(), 0, "the kernel closes handles");
    assert_eq!(child.set(FileInfo::Disposition, &[1]), Err(DEAD));
    assert_eq!(drive.open_child(&name("var"), &READ).err(), Some(DEAD));
    assert_eq!(service.stop(), Err(DEAD));
    assert_eq!(probed.volumes(), Err(DEAD));
    assert_eq!(probed.wmi().query(Namespace::Storage, "", Time::default()), Err(DEAD));
    probed.clock().sleep(Duration::from_secs(1));
    drop((child, drive, service));
    assert_eq!(node.calls(), reached, "no call of a dead process reaches the node");
    assert_eq!(node.now(), Time::default());
}

#[test]
fn dropping_a_handle_closes_it() {
    let node = Echo::node();
    let probed = Probed::new(node.clone(), Quiet);
    let drive = probed.open(&path("C:"), &READ).expect("a drive");
    assert_eq!(node.open_objects(), 1);
    drop(drive);
    assert_eq!(node.open_objects(), 0);
}

#[test]
fn a_handle_that_its_caller_does_not_receive_is_closed() {
    for action in [FaultAction::Die, FaultAction::Fail(OsError::BUSY)] {
        let node = Echo::node();
        let probed = Probed::new(node.clone(), Fault::at(0, When::After, action));
        assert!(probed.open(&path("C:"), &READ).is_err());
        assert_eq!((node.calls(), node.open_objects()), (1, 0));
    }
}

#[test]
fn the_callback_of_a_pending_call_does_not_run_in_a_dead_process() {
    for (killed, expected) in [(false, 1), (true, 0)] {
        let node = Echo::node();
        let probed = Probed::new(node.clone(), Quiet);
        let status = probed
            .wmi()
            .call(&MethodCall::new(Namespace::Storage, "MSFT_Volume.ObjectId=\"1\"", "Format", &[]), Time::default());
        let Ok(CallStatus::StillRunning(pending)) = status else { panic!("the call has ended") };
        let callbacks = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&callbacks);
        pending.when_ended(Box::new(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        }));
        if killed {
            probed.kill();
        }
        node.end_jobs();
        assert_eq!(callbacks.load(Ordering::SeqCst), expected);
    }
}

#[test]
fn a_call_that_can_change_the_node_is_marked() {
    let trace = Arc::new(Trace::recording());
    let probed = Probed::new(Echo::node(), Arc::clone(&trace));
    let drive = probed.open(&path("C:"), &READ).expect("a drive");
    drive.control(ControlCode::DISK_GET_LENGTH_INFO, &[], &mut []).expect("a length");
    drive.query(FileInfo::Basic, &mut []).expect("times");
    probed
        .wmi()
        .call(&MethodCall::new(Namespace::Storage, "MSFT_Partition", "GetSupportedSize", &[]), Time::default())
        .expect("sizes");
    let marks = || trace.take().iter().map(|record| record.call.mutates).collect::<Vec<_>>();
    assert_eq!(marks(), [false; 4]);

    drive.open_child(&name("new"), &Open::new_directory(Access::WRITE_DATA)).expect("a directory");
    drive.control(ControlCode::FSCTL_SET_REPARSE_POINT, &[], &mut []).expect("a link");
    drive.set(FileInfo::DispositionEx, &[]).expect("a deletion");
    probed.delete_volume_mount_point(&name("C:\\dir\\")).expect("an unmount");
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
    assert!(call("set_volume_mount_point", true).is_known_change() && call("open", false).is_known_change());
    assert!(!call("control 0x0007c058", true).is_known_change());
}

#[test]
fn a_call_does_not_contain_its_arguments() {
    let trace = Arc::new(Trace::recording());
    let probed = Probed::new(Echo::node(), Arc::clone(&trace));
    let arguments =
        [("Credential", Value::Secret(Secret::new("u:hunter2".into()))), ("Other", Value::Text("hunter3".into()))];
    probed
        .wmi()
        .call(&MethodCall::new(Namespace::Smb, "MSFT_SmbGlobalMapping", "Create", &arguments), Time::default())
        .expect("a call");
    let records = format!("{:?}", trace.take());
    assert!(records.contains("wmi call MSFT_SmbGlobalMapping.Create"), "{records}");
    assert!(!records.contains("hunter"), "{records}");
}

#[test]
fn an_outer_probe_sees_the_faults_of_an_inner_one() {
    for (when, action, outcome) in [
        (When::Before, FaultAction::Fail(OsError::BUSY), Outcome::Failed(OsError::BUSY)),
        (When::After, FaultAction::Fail(OsError::BUSY), Outcome::Failed(OsError::BUSY)),
        (When::Before, FaultAction::Die, Outcome::Died),
        (When::After, FaultAction::Die, Outcome::Died),
        (When::After, FaultAction::Delay(Duration::from_secs(1)), Outcome::Done),
    ] {
        let trace = Arc::new(Trace::recording());
        let stack: Vec<Arc<dyn Probe>> = vec![trace.clone(), Arc::new(Fault::at(0, when, action))];
        let probed = Probed::new(Echo::node(), stack);
        let result = probed.volumes();
        assert_eq!(result.is_ok(), outcome == Outcome::Done);
        let seen: Vec<_> = trace.take().iter().map(|record| record.outcome).collect();
        assert_eq!(seen, [outcome], "{when:?} {action:?}");
    }
}

#[test]
fn a_probed_node_can_be_probed_again() {
    let (inner, outer) = (Arc::new(Trace::counting()), Arc::new(Trace::counting()));
    let node = Echo::node();
    let within: Arc<dyn Os> = Arc::new(Probed::new(node.clone(), Arc::clone(&inner)));
    let only_reads = Fault::each(|call: &Call| call.mutates, When::Before, FaultAction::Fail(OsError::ACCESS_DENIED));
    let stack: Vec<Arc<dyn Probe>> = vec![outer.clone(), Arc::new(only_reads)];
    let probed = Probed::new(within, stack);
    probed.volumes().expect("volumes");
    assert_eq!(probed.reenumerate(&name("x")), Err(OsError::ACCESS_DENIED));
    assert_eq!((outer.counts().primitives, inner.counts().primitives, node.calls()), (2, 1, 1));
}
