//! The system group.

use api::Request as _;
use api::system::v1alpha1;

use super::Client;
use crate::error::{Error, ErrorKind};

/// The node itself: its serial number, and its Windows services by their names, which are not their
/// display names.
#[derive(Clone, Debug)]
pub struct System(pub(crate) Client);

/// A Windows service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Service {
    /// The name that Windows shows.
    pub display_name: String,
    /// When Windows starts it.
    pub start_type: StartType,
    /// Its state.
    pub status: ServiceStatus,
}

impl Service {
    /// Creates a service, for tests of a driver.
    pub fn new(
        display_name: impl Into<String>,
        start_type: StartType,
        status: ServiceStatus,
    ) -> Self {
        Self {
            display_name: display_name.into(),
            start_type,
            status,
        }
    }
}

/// The state of a Windows service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServiceStatus {
    /// The daemon could not tell.
    Unknown,
    /// It does not run.
    Stopped,
    /// It is starting.
    StartPending,
    /// It is stopping.
    StopPending,
    /// It runs.
    Running,
    /// It is resuming.
    ContinuePending,
    /// It is pausing.
    PausePending,
    /// It is paused.
    Paused,
}

/// When Windows starts a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StartType {
    /// With the boot loader.
    Boot,
    /// While Windows starts.
    System,
    /// When Windows has started.
    Automatic,
    /// When it is asked to.
    Manual,
    /// Never.
    Disabled,
}

impl System {
    /// Returns the serial number in the BIOS of the node, including its spaces.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    pub async fn get_bios_serial_number(&self) -> Result<String, Error> {
        let response = self.0.read(v1alpha1::GetBiosSerialNumberRequest {}).await?;
        Ok(response.serial_number)
    }

    /// Returns the state of a service and its start type.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the service does not exist.
    pub async fn get_service(&self, name: &str) -> Result<Service, Error> {
        let response = self
            .0
            .read(v1alpha1::GetServiceRequest {
                name: name.to_owned(),
            })
            .await?;
        let start_type = start_type(response.start_type)?;
        Ok(Service {
            start_type,
            status: status(response.status()),
            display_name: response.display_name,
        })
    }

    /// Starts a service and waits up to 30 seconds until the service runs. Succeeds if the service
    /// is already running.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the service does not exist.
    pub async fn start_service(&self, name: &str) -> Result<(), Error> {
        self.0
            .change(v1alpha1::StartServiceRequest {
                name: name.to_owned(),
            })
            .await
            .map(drop)
    }

    /// Stops a service and waits up to 30 seconds until the service has stopped.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the service does not exist; an error if a
    /// service that depends on it runs.
    pub async fn stop_service(&self, name: &str) -> Result<(), Error> {
        self.0
            .change(v1alpha1::StopServiceRequest {
                name: name.to_owned(),
                force: false,
            })
            .await
            .map(drop)
    }

    /// Stops the services that depend on a service, and then this one, as StopService does with
    /// `force`.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the service does not exist.
    pub async fn stop_service_and_dependents(&self, name: &str) -> Result<(), Error> {
        self.0
            .change(v1alpha1::StopServiceRequest {
                name: name.to_owned(),
                force: true,
            })
            .await
            .map(drop)
    }
}

/// A number that a later daemon might send is an error and not `BOOT`, as protobuf would have it.
fn start_type(number: i32) -> Result<StartType, Error> {
    match v1alpha1::StartType::try_from(number) {
        Ok(v1alpha1::StartType::Boot) => Ok(StartType::Boot),
        Ok(v1alpha1::StartType::System) => Ok(StartType::System),
        Ok(v1alpha1::StartType::Automatic) => Ok(StartType::Automatic),
        Ok(v1alpha1::StartType::Manual) => Ok(StartType::Manual),
        Ok(v1alpha1::StartType::Disabled) => Ok(StartType::Disabled),
        Err(_) => {
            let message = format!("the node answered start type {number}");
            Err(Error::new(
                ErrorKind::Internal,
                v1alpha1::GetServiceRequest::RPC,
                message,
            ))
        }
    }
}

fn status(status: v1alpha1::ServiceStatus) -> ServiceStatus {
    match status {
        v1alpha1::ServiceStatus::Unknown => ServiceStatus::Unknown,
        v1alpha1::ServiceStatus::Stopped => ServiceStatus::Stopped,
        v1alpha1::ServiceStatus::StartPending => ServiceStatus::StartPending,
        v1alpha1::ServiceStatus::StopPending => ServiceStatus::StopPending,
        v1alpha1::ServiceStatus::Running => ServiceStatus::Running,
        v1alpha1::ServiceStatus::ContinuePending => ServiceStatus::ContinuePending,
        v1alpha1::ServiceStatus::PausePending => ServiceStatus::PausePending,
        v1alpha1::ServiceStatus::Paused => ServiceStatus::Paused,
    }
}
