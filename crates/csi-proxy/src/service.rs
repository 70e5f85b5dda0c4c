//! The Windows service: its name, finding it, the command `service`, and the reports while it stops.
//! `daemon/windows/service.rs` runs and installs the service, and has its times.

pub mod find;

use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use crate::flags::parser::name_of_flag;
use crate::program::{CSI_PROXY, CommandError, REQUIRE_SAFE_FOLDERS, no_more};

/// The name of a service that this program installs. Installation scripts depend on it.
pub const NAME: &str = "csiproxy";

/// A task of the command `service`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Install this program as the service.
    Install(Installation),
    /// Print the command line of the service, and replace its flags by these if there are any.
    Flags(Installation),
    /// Stop and delete the service.
    Uninstall,
    /// Print the state of the service.
    Status,
    /// Print the service as JSON: its name, its program and its wrapper.
    Find,
}

/// How to install the service, or to change its flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The flags that the service is started with.
    pub arguments: Vec<String>,
    /// Refuse to install, or to change the flags, if ordinary users may replace the program or its
    /// log, instead of warning.
    pub require_safe_folders: bool,
}

impl Task {
    /// Parses the words after `service`.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, CommandError> {
        match words.next().as_deref() {
            Some("install") => {
                Installation::parse("service install", words.collect()).map(Self::Install)
            }
            Some("flags") => Installation::parse("service flags", words.collect()).map(Self::Flags),
            Some("uninstall") => no_more("service uninstall", words).map(|()| Self::Uninstall),
            Some("find") => no_more("service find", words).map(|()| Self::Find),
            Some("status") => no_more("service status", words).map(|()| Self::Status),
            _ => Err(CommandError::NoTask),
        }
    }
}

impl Installation {
    /// Refuses flags that the service could not parse when it starts, where no user would see its
    /// error.
    fn parse(command: &'static str, words: Vec<String>) -> Result<Self, CommandError> {
        let flags = CSI_PROXY
            .parse(words.iter().cloned())
            .map_err(CommandError::Flags)?;
        no_more(command, flags.rest.into_iter())?;
        // This flag concerns the installation only. The Go program must be able to parse the
        // command line of the service.
        let arguments = words
            .into_iter()
            .filter(|word| name_of_flag(word) != Some(REQUIRE_SAFE_FOLDERS))
            .collect();
        Ok(Self {
            arguments,
            require_safe_folders: flags.require_safe_folders,
        })
    }
}

/// Waits until the daemon has stopped. Meanwhile calls `report` with 1, 2, ..., at once and after
/// each `interval`. A report that fails does not end the drain.
pub async fn report_until_stopped<T>(
    stopped: impl Future<Output = T>,
    interval: Duration,
    report: impl Fn(u32) -> Result<(), Box<dyn Error>>,
) -> T {
    let mut stopped = pin!(stopped);
    let mut checkpoint = 0;
    loop {
        checkpoint += 1;
        if let Err(error) = report(checkpoint) {
            tracing::warn!(
                %error,
                "cannot report progress to Windows; still waiting for running calls"
            );
        }
        if let Ok(output) = timeout(interval, stopped.as_mut()).await {
            return output;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use super::report_until_stopped;

    #[tokio::test(start_paused = true)]
    async fn a_report_that_fails_does_not_end_the_drain() {
        let reports = RefCell::new(Vec::new());
        let report = |checkpoint| {
            reports.borrow_mut().push(checkpoint);
            Err("the service control manager does not answer".into())
        };
        let drain = tokio::time::sleep(Duration::from_millis(2500));
        report_until_stopped(drain, Duration::from_secs(1), report).await;
        assert_eq!(reports.into_inner(), [1, 2, 3]);
    }
}
