//! The service on Windows.

mod folders;
mod install;
mod run;

use std::error::Error;
use std::time::Duration;
use std::{fmt, io};

pub use install::{install, status, uninstall};
pub use run::run;

/// The time that a stop takes beyond its drain: closing connections and ending the process.
const STOP_MARGIN: Duration = Duration::from_secs(15);

/// A failure, in a sentence.
#[derive(Debug)]
pub struct ServiceError(String);

impl ServiceError {
    fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    /// What failed, and the error that Windows returned.
    fn windows(what: &str, error: &windows_service::Error) -> Self {
        match error {
            windows_service::Error::Winapi(error) => Self(format!("{what}: {error}")),
            error => Self(format!("{what}: {error}")),
        }
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ServiceError {}

impl From<io::Error> for ServiceError {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Returns the code of an error that Windows returned.
fn code(error: &windows_service::Error) -> Option<i32> {
    match error {
        windows_service::Error::Winapi(error) => error.raw_os_error(),
        _ => None,
    }
}
