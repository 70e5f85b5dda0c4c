//! `sc.exe`, as administrators use it.

use std::env;
use std::io;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use os_win32::system;
use windows_service::service::{ServiceAccess, ServiceExitCode, ServiceState};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};

use crate::PROGRAM;
use crate::skip::skipped;

pub(crate) const STOPPED: ServiceState = ServiceState::Stopped;
pub(crate) const START_PENDING: ServiceState = ServiceState::StartPending;
pub(crate) const STOP_PENDING: ServiceState = ServiceState::StopPending;
pub(crate) const RUNNING: ServiceState = ServiceState::Running;

/// An installed service. Dropping it removes the service.
pub(crate) struct Installed(String);

impl Installed {
    /// Installs the daemon's service, with flags as an administrator writes them in a binPath.
    pub(crate) fn csiproxy(flags: &str) -> Self {
        Self::create("csiproxy", &format!("{PROGRAM} -windows-service {flags}"))
    }

    /// Installs a service that does nothing, and that answers the service control manager after
    /// `delay`. Returns `None`, and reports the test as skipped, if the examples of os-win32 have
    /// not been built.
    pub(crate) fn idle(name: &str, delay: Duration, more: &[&str]) -> Option<Self> {
        let tests = env::current_exe().expect("this program");
        let program = tests.parent()?.parent()?.join(r"examples\idle_service.exe");
        if !program.exists() {
            skipped(
                "idle_service is not built; `cargo build -p csi-proxy-os-win32 --examples` builds \
                 it",
            );
            return None;
        }
        let command_line = format!("{} {name} {}", program.display(), delay.as_millis());
        Some(Self::create_with(name, &command_line, more))
    }

    /// Makes the service a wrapper of `program`, which it starts when it is started.
    pub(crate) fn wrap(&self, program: &str) {
        let key = format!(
            r"HKLM\SYSTEM\CurrentControlSet\Services\{}\Parameters",
            self.0
        );
        let added = Command::new(system::program("reg.exe").expect("a path"))
            .args([
                "add",
                &key,
                "/v",
                "Application",
                "/t",
                "REG_EXPAND_SZ",
                "/d",
                program,
                "/f",
            ])
            .output()
            .expect("reg.exe");
        assert!(added.status.success(), "{added:?}");
    }

    pub(crate) fn create(name: &str, command_line: &str) -> Self {
        Self::create_with(name, command_line, &[])
    }

    pub(crate) fn create_with(name: &str, command_line: &str, more: &[&str]) -> Self {
        let service = Self(name.to_owned());
        service.remove(); // a killed run may have left one
        insist(&[&["create", name, "binPath=", command_line], more].concat());
        service
    }

    /// Takes over a service that another program installed.
    pub(crate) fn adopt(name: &str) -> Self {
        Self(name.to_owned())
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Starts the service, and waits until it runs.
    pub(crate) fn start(&self) {
        insist(&["start", &self.0]);
        self.reach(RUNNING);
    }

    /// Sends the service a stop request, and does not wait.
    pub(crate) fn stop(&self) {
        let (code, text) = sc(&["stop", &self.0]);
        assert_eq!(code, 0, "sc stop: {text}");
    }

    pub(crate) fn reach(&self, state: ServiceState) -> Status {
        self.wait_for(|status| status.state == state)
    }

    /// Waits for a status: a service reports it when it has reached it, which may be long after the
    /// request.
    pub(crate) fn wait_for(&self, wanted: impl Fn(&Status) -> bool) -> Status {
        let give_up = Instant::now() + Duration::from_mins(1);
        loop {
            let status = self.status();
            if let Some(status) = status.filter(&wanted) {
                return status;
            }
            assert!(Instant::now() < give_up, "{} is {status:?}", self.0);
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns whether the service control manager notices that the service's process has ended.
    /// Windows does at once.
    pub(crate) fn is_noticed_to_have_ended(&self) -> bool {
        let give_up = Instant::now() + Duration::from_secs(5);
        while Instant::now() < give_up {
            if self.status().is_some_and(|status| status.state == STOPPED) {
                return true;
            }
            thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// Returns the status; `None` if the service does not exist or is being deleted. `sc query`
    /// prints it in the language of Windows.
    pub(crate) fn status(&self) -> Option<Status> {
        let access = ServiceManagerAccess::CONNECT;
        let manager = ServiceManager::local_computer(None::<&str>, access).expect("the manager");
        let service = manager.open_service(&self.0, ServiceAccess::QUERY_STATUS);
        let status = service.ok()?.query_status().ok()?;
        Some(Status {
            state: status.current_state,
            checkpoint: status.checkpoint,
            exit_code: status.exit_code,
        })
    }

    pub(crate) fn remove(&self) {
        if sc(&["stop", &self.0]).0 == 0 {
            self.reach(STOPPED);
        }
        sc(&["delete", &self.0]);
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        if !thread::panicking() {
            return self.remove();
        }
        // A second panic would hide the first.
        sc(&["stop", &self.0]);
        sc(&["delete", &self.0]);
    }
}

/// The status that a service last reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) state: ServiceState,
    pub(crate) checkpoint: u32,
    pub(crate) exit_code: ServiceExitCode,
}

/// Runs `sc` until it succeeds. It may fail for a while: when the service control manager starts
/// another service (1055), or when a program has a deleted service of that name open (1072).
fn insist(arguments: &[&str]) {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        let (code, text) = sc(arguments);
        if code == 0 {
            return;
        }
        assert!(
            Instant::now() < give_up,
            "sc {arguments:?} ended with {code}: {text}"
        );
        println!("sc {arguments:?} ended with {code}: {text}");
        thread::sleep(Duration::from_millis(500));
    }
}

fn sc(arguments: &[&str]) -> (i32, String) {
    let output = run_sc(arguments).or_else(|error| {
        // Under Wine, a process cannot be started now and then on a busy machine, with
        // ERROR_INTERNAL_ERROR. This says nothing about the service.
        if error.raw_os_error() != Some(1359) {
            return Err(error);
        }
        println!("sc {arguments:?} could not be started, and is started again: {error}");
        run_sc(arguments)
    });
    let output = output.expect("sc.exe");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    (output.status.code().expect("a code"), text)
}

fn run_sc(arguments: &[&str]) -> io::Result<Output> {
    Command::new(system::program("sc.exe")?)
        .args(arguments)
        .output()
}
