//! Simulates Windows Management Instrumentation: WQL queries, method calls and the classes of the
//! storage provider.

pub(crate) mod method_call;
pub(crate) mod msft_storage;
pub(crate) mod provider_instances;
pub(crate) mod return_value;
pub(crate) mod storage_jobs;
pub(crate) mod wql;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use os::{
    CallStatus, Instance, MAX_OBJECTS, MethodCall, Namespace, OsError, OsResult, PendingCall,
    Returned, Time, Uuid, Value, Wmi,
};

use crate::clock::SharedState;
use crate::files::handles::{Object, Opened};
use crate::state::{Callback, FsId, State};
use crate::wmi::method_call::{instance, returned};
use crate::wmi::storage_jobs::JobAction;
use crate::{iscsi, smb};
use wql::{Associators, ObjectPath, Query};

/// A method call that was started.
pub(crate) enum StartedCall {
    /// The call has ended.
    Done(Returned),
    /// The call runs as this job.
    Job(u64),
}

/// The classes of the storage provider.
const STORAGE: [&str; 4] = [
    "MSFT_Disk",
    "MSFT_Partition",
    "MSFT_Volume",
    "MSFT_StorageSetting",
];

/// The host name of the node.
const HOST_NAME: &str = "sim-node";

/// The addresses of the node.
const ADDRESSES: [&str; 2] = ["10.240.0.4", "fe80::d4"];

/// `SERVICE_RUNNING`.
const RUNNING: u32 = 4;

/// Returns the methods of the classes of WMI on the node, such as `MSFT_Volume.Format`.
pub fn methods() -> impl Iterator<Item = String> {
    let tables = [
        &msft_storage::METHODS[..],
        &smb::METHODS,
        &iscsi::wmi_classes::METHODS,
    ];
    tables
        .into_iter()
        .flatten()
        .map(|method| format!("{}.{}", method.class, method.name))
}

impl State {
    fn query(&mut self, namespace: Namespace, text: &str) -> OsResult<Vec<Instance>> {
        let found = match Query::parse(namespace, text)? {
            Query::Select(select) => select.evaluate(self.rows(select.class)?),
            Query::Associators(associators) => self.associated(&associators)?,
        };
        if found.len() > MAX_OBJECTS {
            return Err(OsError::WMI_TOO_MANY_OBJECTS);
        }
        Ok(found)
    }

    fn rows(&mut self, class: &str) -> OsResult<Vec<Instance>> {
        if let Some(rows) = self.iscsi.rows(class) {
            self.check_iscsi_service()?;
            return Ok(rows);
        }
        Ok(match class {
            "Win32_BIOS" => vec![self.bios()],
            "Win32_ComputerSystem" => vec![computer_system()],
            "Win32_NetworkAdapterConfiguration" => vec![network_adapter()],
            smb::GLOBAL_MAPPING => self.smb.rows(),
            _ => msft_storage::rows(self, class),
        })
    }

    fn bios(&self) -> Instance {
        let serial = self.bios_serial.clone().map_or(Value::Null, Value::Text);
        let properties = [
            ("Manufacturer", Value::Text("Simulated".into())),
            ("SerialNumber", serial),
        ];
        instance(&ObjectPath::class("Win32_BIOS"), properties)
    }

    fn associated(&self, query: &Associators) -> OsResult<Vec<Instance>> {
        let disks_of = |luns: &[Uuid]| {
            let disks = self.visible_disks().map(|(_, disk)| disk);
            let reached = disks.filter(|disk| disk.lun_id.is_some_and(|id| luns.contains(&id)));
            reached.map(provider_instances::disk_instance).collect()
        };
        let found = self.iscsi.associated(query, disks_of);
        found.map_or_else(|| msft_storage::associated(self, query), Ok)
    }

    fn begin(&mut self, call: &MethodCall<'_>) -> OsResult<StartedCall> {
        let MethodCall {
            namespace,
            path,
            method,
            arguments,
        } = *call;
        let object: ObjectPath = relative(path).parse()?;
        let provider = STORAGE.iter().any(|class| object.is_of(class));
        match namespace {
            Namespace::Storage | Namespace::Iscsi if provider => {
                msft_storage::call(self, &object, method, arguments)
            }
            Namespace::Storage | Namespace::Iscsi => {
                self.check_iscsi_service()?;
                let takes =
                    self.iscsi
                        .duration(&object, method, arguments, self.timing.iscsi_timeout);
                self.remote(&object, method, arguments, takes)
            }
            Namespace::Smb => {
                let takes = self
                    .smb
                    .duration(method, arguments, self.timing.smb_timeout);
                self.remote(&object, method, arguments, takes)
            }
            Namespace::CimV2 => Err(OsError::WBEM_NOT_FOUND),
        }
    }

    /// Starts a call that uses the network. It ends at once if it takes no time, and runs as a job
    /// otherwise.
    fn remote(
        &mut self,
        object: &ObjectPath,
        method: &str,
        arguments: &[(&str, Value)],
        takes: Duration,
    ) -> OsResult<StartedCall> {
        if takes.is_zero() {
            return self
                .call_remote(object, method, arguments)
                .map(StartedCall::Done);
        }
        let arguments = arguments
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();
        let action = JobAction::Remote {
            object: object.clone(),
            method: method.to_owned(),
            arguments,
        };
        Ok(self
            .start(None, action, takes)
            .map_or_else(|code| StartedCall::Done(returned(code)), StartedCall::Job))
    }

    /// Makes a call that uses the network, and attaches or detaches the disks of its sessions.
    /// Fails if it would detach a disk that is in use.
    pub(crate) fn call_remote(
        &mut self,
        object: &ObjectPath,
        method: &str,
        arguments: &[(&str, Value)],
    ) -> OsResult<Returned> {
        if object.is_of(smb::GLOBAL_MAPPING) {
            let is_create = method.eq_ignore_ascii_case("Create");
            if is_create && self.is_stopped("LanmanWorkstation") {
                return Err(OsError::WKSTA_NOT_STARTED);
            }
            let open_shares = self.open_shares();
            return self.smb.call(object, method, arguments, &open_shares);
        }
        let mut changed = self.iscsi.clone();
        let outcome = changed.call(object, method, arguments);
        if outcome
            .as_ref()
            .is_ok_and(|(_, effects)| effects.iter().any(|effect| self.detaches_used_disk(effect)))
        {
            return Err(OsError::ISDSC_DEVICE_BUSY_ON_SESSION);
        }
        // Keep the change even if the call failed: a portal that does not answer is added all the
        // same.
        self.iscsi = changed;
        let (returned, effects) = outcome?;
        for effect in effects {
            self.apply(effect);
        }
        Ok(returned)
    }

    /// Returns the shares on which files are open, as `host\share` in upper case.
    fn open_shares(&self) -> BTreeSet<String> {
        let share = |opened: &Opened| match opened.object {
            Object::File {
                fs: FsId::Share(tree),
                ..
            } => self.smb.name_of(tree),
            _ => None,
        };
        self.handles.values().filter_map(share).collect()
    }

    /// Fails with `ISDSC_SERVICE_NOT_RUNNING` if the iSCSI initiator service does not run.
    fn check_iscsi_service(&mut self) -> OsResult<()> {
        if self.is_stopped("MSiSCSI") {
            return Err(OsError::ISDSC_SERVICE_NOT_RUNNING);
        }
        Ok(())
    }

    /// Returns whether the node has a service and the service does not run.
    pub(crate) fn is_stopped(&mut self, service: &str) -> bool {
        let now = Time(self.now);
        let state = self.services.state(service, now);
        state.is_ok_and(|state| state != RUNNING)
    }

    /// Returns the result of a job, or `None` while the job runs. A job that a restart of the node
    /// ended has failed.
    fn job_result(&mut self, job: u64) -> Option<OsResult<Returned>> {
        if let Some(result) = self.job_results.remove(&job) {
            return Some(result);
        }
        (!self.jobs.contains_key(&job)).then_some(Err(OsError::RPC_CALL_FAILED))
    }
}

fn computer_system() -> Instance {
    let properties = [
        ("DNSHostName", Value::Text(HOST_NAME.into())),
        ("Name", Value::Text(HOST_NAME.to_uppercase())),
    ];
    instance(&ObjectPath::class("Win32_ComputerSystem"), properties)
}

fn network_adapter() -> Instance {
    let addresses = ADDRESSES.map(|address| Value::Text(address.into()));
    let properties = [
        ("IPAddress", Value::Array(addresses.into())),
        ("IPEnabled", Value::Bool(true)),
    ];
    instance(
        &ObjectPath::class("Win32_NetworkAdapterConfiguration"),
        properties,
    )
}

/// Returns an object path without its machine and namespace.
fn relative(path: &str) -> &str {
    if path.starts_with(r"\\") {
        path.split_once(':').map_or(path, |(_, relative)| relative)
    } else {
        path
    }
}

impl Wmi for SharedState {
    fn query(&self, namespace: Namespace, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        let ready = self.with(|state| state.now + state.timing.query);
        if ready > deadline.0 {
            self.wait(deadline.0, |_| None::<()>);
            return Err(OsError::WMI_TIMED_OUT);
        }
        self.wait(ready, |_| None::<()>);
        self.with(|state| state.query(namespace, wql))
    }

    fn call(&self, call: &MethodCall<'_>, deadline: Time) -> OsResult<CallStatus> {
        let job = match self.with(|state| state.begin(call))? {
            StartedCall::Done(returned) => return Ok(CallStatus::Done(returned)),
            StartedCall::Job(job) => job,
        };
        if let Some(result) = self.wait(deadline.0, |state| state.job_result(job)) {
            return result.map(CallStatus::Done);
        }
        // The job may have ended since the wait.
        let ended = self.with(|state| {
            let result = state.job_result(job);
            state.jobs.entry(job).and_modify(|job| job.awaited = false);
            result
        });
        match ended {
            Some(result) => result.map(CallStatus::Done),
            None => Ok(CallStatus::StillRunning(Box::new(RunningJob {
                shared: self.this(),
                job,
            }))),
        }
    }
}

/// A running job whose caller no longer waits for it.
struct RunningJob {
    shared: Arc<SharedState>,
    job: u64,
}

impl PendingCall for RunningJob {
    fn when_ended(self: Box<Self>, then: Box<dyn FnOnce() + Send>) {
        let then = Mutex::new(Some(then));
        let callback: Callback = Arc::new(move || {
            let then = os::lock(&then).take();
            if let Some(then) = then {
                then();
            }
        });
        self.shared
            .with_callbacks(|state| match state.jobs.get_mut(&self.job) {
                Some(job) => job.callbacks.push(callback),
                None => state.callbacks.push(callback),
            });
    }
}
