//! `sc.exe`, as administrators use it.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::PROGRAM;

pub(crate) const STOPPED: u32 = 1;
pub(crate) const START_PENDING: u32 = 2;
pub(crate) const STOP_PENDING: u32 = 3;
pub(crate) const RUNNING: u32 = 4;

/// A service that is in the list while this is.
pub(crate) struct Installed(String);

impl Installed {
    /// The daemon's own service, with flags as one writes them in a binPath.
    pub(crate) fn csiproxy(flags: &str) -> Self {
        Self::create("csiproxy", &format!("{PROGRAM} -windows-service {flags}"))
    }

    pub(crate) fn create(name: &str, command_line: &str) -> Self {
        Self::create_with(name, command_line, &[])
    }

    pub(crate) fn create_with(name: &str, command_line: &str, more: &[&str]) -> Self {
        let service = Self(name.to_owned());
        service.remove(); // what a run that was killed may have left
        insist(&[&["create", name, "binPath=", command_line], more].concat());
        service
    }

    /// One that something else made.
    pub(crate) fn adopt(name: &str) -> Self {
        Self(name.to_owned())
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }

    /// Starts it, and waits until it runs.
    pub(crate) fn start(&self) {
        insist(&["start", &self.0]);
        self.reach(RUNNING);
    }

    /// Tells it to stop, and does not wait.
    pub(crate) fn stop(&self) {
        let (code, text) = sc(&["stop", &self.0]);
        assert_eq!(code, 0, "sc stop: {text}");
    }

    pub(crate) fn reach(&self, state: u32) -> Status {
        self.wait_for(|status| status.state == state)
    }

    /// Waits for a status, which is reported when it is there and not when it was asked for.
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

    /// Whether the service control manager has noticed that the service's process is gone. Windows does at once.
    pub(crate) fn is_found_gone(&self) -> bool {
        let give_up = Instant::now() + Duration::from_secs(5);
        while Instant::now() < give_up {
            if self.status().is_some_and(|status| status.state == STOPPED) {
                return true;
            }
            thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// What `sc query` says; nothing if there is no such service, or the service control manager is too busy to tell.
    pub(crate) fn status(&self) -> Option<Status> {
        let (code, text) = sc(&["query", &self.0]);
        if code != 0 {
            return None;
        }
        let number = |name: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
            let value = line.split_once(':')?.1.split_whitespace().next()?;
            match value.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).ok(),
                None => value.parse().ok(),
            }
        };
        Some(Status {
            state: number("STATE")?,
            checkpoint: number("CHECKPOINT")?,
            exit_code: number("WIN32_EXIT_CODE")?,
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

/// What a service last reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) state: u32,
    pub(crate) checkpoint: u32,
    pub(crate) exit_code: u32,
}

/// Runs `sc` until it succeeds. For a while the service control manager may not want to: when it starts another service
/// (1055), or when somebody still has a handle of a deleted service with the same name (1072).
fn insist(arguments: &[&str]) {
    let give_up = Instant::now() + Duration::from_secs(30);
    loop {
        let (code, text) = sc(arguments);
        if code == 0 {
            return;
        }
        assert!(Instant::now() < give_up, "sc {arguments:?} ended with {code}: {text}");
        println!("sc {arguments:?} ended with {code}: {text}");
        thread::sleep(Duration::from_millis(500));
    }
}

fn sc(arguments: &[&str]) -> (i32, String) {
    let output = Command::new("sc.exe").args(arguments).output().expect("sc.exe");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    (output.status.code().expect("a code"), text)
}
