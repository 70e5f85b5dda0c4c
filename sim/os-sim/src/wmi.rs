//! Windows Management Instrumentation: which class answers a query or takes a call.

pub mod method_call;
pub(crate) mod msft_storage;
pub(crate) mod storage_jobs;
pub mod wql;

use std::sync::Arc;
use std::time::Duration;

use os::{CallStatus, Instance, Namespace, OsError, OsResult, PendingCall, Returned, Time, Value, Wmi};

use crate::clock::SharedState;
use crate::iscsi::Associated;
use crate::smb;
use crate::state::State;
use crate::wmi::method_call::{instance, returned};
use crate::wmi::storage_jobs::JobAction;
use wql::{Associators, ObjectPath, Query};

/// What a method call has become at once.
pub(crate) enum StartedCall {
    /// It has ended.
    Done(Returned),
    /// It goes on as a job.
    Job(u64),
}

/// The classes of the storage provider's own objects.
const STORAGE: [&str; 4] = ["MSFT_Disk", "MSFT_Partition", "MSFT_Volume", "MSFT_StorageSetting"];

/// `SERVICE_RUNNING`.
const RUNNING: u32 = 4;

/// The associations of the storage provider, with the classes they join.
const ASSOCIATIONS: [(&str, &str, &str); 2] = [
    ("MSFT_DiskToPartition", "MSFT_Disk", "MSFT_Partition"),
    ("MSFT_PartitionToVolume", "MSFT_Partition", "MSFT_Volume"),
];

impl State {
    fn query(&mut self, namespace: Namespace, text: &str) -> OsResult<Vec<Instance>> {
        let query = Query::parse(namespace, text)?;
        let rows = match &query {
            Query::Select(select) => self.rows(select.class)?,
            Query::Associators(associators) => self.associated(associators)?,
        };
        Ok(wql::evaluate(&query, rows))
    }

    fn rows(&mut self, class: &str) -> OsResult<Vec<Instance>> {
        if let Some(rows) = self.iscsi.rows(class) {
            self.check_iscsi_service()?;
            return Ok(rows);
        }
        Ok(match class {
            "Win32_BIOS" => vec![self.bios()],
            smb::GLOBAL_MAPPING => self.smb.rows(),
            _ => msft_storage::rows(self, class),
        })
    }

    fn bios(&self) -> Instance {
        let serial = self.bios_serial.clone().map_or(Value::Null, Value::Text);
        let properties = [("Manufacturer", Value::Text("Simulated".into())), ("SerialNumber", serial)];
        instance(&ObjectPath::class("Win32_BIOS"), properties)
    }

    fn associated(&self, query: &Associators) -> OsResult<Vec<Instance>> {
        match self.iscsi.related(query) {
            None => {}
            Some(Associated::Objects(objects)) => return Ok(objects),
            Some(Associated::Disks(media)) => {
                let shown = self.disks.values().filter(|disk| disk.visible);
                let reached = shown.filter(|disk| disk.lun_id.is_some_and(|lun_id| media.contains(&lun_id)));
                return Ok(reached.map(msft_storage::disk_row).collect());
            }
        }
        let mut found = Vec::new();
        for (association, left, right) in ASSOCIATIONS {
            let other = match () {
                () if query.object.is_of(left) => right,
                () if query.object.is_of(right) => left,
                () => continue,
            };
            let wanted = |asked: Option<&str>, given: &str| asked.is_none_or(|asked| asked == given);
            if wanted(query.association, association) && wanted(query.result, other) {
                found.extend(msft_storage::associated(self, &query.object, other)?);
            }
        }
        Ok(found)
    }

    fn begin(
        &mut self,
        namespace: Namespace,
        path: &str,
        method: &str,
        arguments: &[(&str, Value)],
    ) -> OsResult<StartedCall> {
        let object: ObjectPath = relative(path).parse()?;
        let provider = STORAGE.iter().any(|class| object.is_of(class));
        match namespace {
            Namespace::Storage if provider => msft_storage::call(self, &object, method, arguments),
            Namespace::Storage => {
                self.check_iscsi_service()?;
                let takes = self.iscsi.duration(&object, method, arguments);
                self.remote(&object, method, arguments, takes)
            }
            Namespace::Smb => {
                let takes = self.smb.duration(method, arguments);
                self.remote(&object, method, arguments, takes)
            }
            Namespace::CimV2 => Err(OsError::WBEM_INVALID_METHOD),
        }
    }

    /// Calls into the network: at once if that takes no time, else as a job.
    fn remote(
        &mut self,
        object: &ObjectPath,
        method: &str,
        arguments: &[(&str, Value)],
        takes: Duration,
    ) -> OsResult<StartedCall> {
        if takes.is_zero() {
            return self.call_remote(object, method, arguments).map(StartedCall::Done);
        }
        let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let work = JobAction::Remote { object: object.to_string(), method: method.to_owned(), arguments };
        Ok(self.start(None, work, takes).map_or_else(|code| StartedCall::Done(returned(code)), StartedCall::Job))
    }

    /// Makes a call into the network, with what follows for the node's disks.
    pub(crate) fn call_remote(
        &mut self,
        object: &ObjectPath,
        method: &str,
        arguments: &[(&str, Value)],
    ) -> OsResult<Returned> {
        if object.is_of(smb::GLOBAL_MAPPING) {
            return self.smb.call(object, method, arguments);
        }
        let (returned, effects) = self.iscsi.call(object, method, arguments)?;
        for effect in effects {
            self.apply(effect);
        }
        Ok(returned)
    }

    /// The initiator's classes fail without its service, where the node has that service.
    fn check_iscsi_service(&mut self) -> OsResult<()> {
        let now = Time(self.now);
        match self.services.state("MSiSCSI", now) {
            Ok(RUNNING) | Err(_) => Ok(()),
            Ok(_) => Err(OsError::WBEM_FAILED),
        }
    }

    /// What a job has come to: nothing yet, its outcome, or that it was lost in a restart.
    fn outcome(&mut self, job: u64) -> Option<OsResult<Returned>> {
        if let Some(outcome) = self.job_results.remove(&job) {
            return Some(outcome);
        }
        (!self.jobs.contains_key(&job)).then_some(Err(OsError::RPC_CALL_FAILED))
    }
}

/// A path relative to its namespace, of one that may be absolute.
fn relative(path: &str) -> &str {
    if path.starts_with(r"\\") { path.split_once(':').map_or(path, |(_, relative)| relative) } else { path }
}

impl Wmi for SharedState {
    fn query(&self, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        let ready = self.with(|state| state.now + state.timing.query);
        if ready > deadline.0 {
            self.wait(deadline.0, |_| None::<()>);
            return Err(OsError::WAIT_TIMEOUT);
        }
        self.wait(ready, |_| None::<()>);
        self.with(|state| state.query(namespace, wql))
    }

    fn call(
        &self,
        namespace: Namespace,
        path: &str,
        method: &str,
        arguments: &[(&str, Value)],
        deadline: Time,
    ) -> OsResult<CallStatus> {
        let job = match self.with(|state| state.begin(namespace, path, method, arguments))? {
            StartedCall::Done(returned) => return Ok(CallStatus::Done(returned)),
            StartedCall::Job(job) => job,
        };
        if let Some(outcome) = self.wait(deadline.0, |state| state.outcome(job)) {
            return outcome.map(CallStatus::Done);
        }
        // It may have ended between the wait and now.
        let ended = self.with(|state| {
            let outcome = state.outcome(job);
            state.jobs.entry(job).and_modify(|job| job.awaited = false);
            outcome
        });
        match ended {
            Some(outcome) => outcome.map(CallStatus::Done),
            None => Ok(CallStatus::StillRunning(Box::new(RunningJob { shared: self.this(), job }))),
        }
    }
}

/// A job that its caller no longer waits for.
struct RunningJob {
    shared: Arc<SharedState>,
    job: u64,
}

impl PendingCall for RunningJob {
    fn when_ended(self: Box<Self>, then: Box<dyn FnOnce() + Send>) {
        self.shared.with_callbacks(|state| match state.jobs.get_mut(&self.job) {
            Some(job) => job.then.push(then),
            None => state.callbacks.push(then),
        });
    }
}
