//! Windows services, as the service control manager manages them.

use widestring::U16String;

use crate::OsResult;

/// The access that a service is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceAccess {
    /// Read the configuration and the state.
    Query,
    /// Query, and start the service.
    Start,
    /// Query, list the dependent services, and stop the service.
    Stop,
}

/// The configuration of a service: the fields of `QUERY_SERVICE_CONFIGW` that csi-proxy reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    /// The display name.
    pub display_name: U16String,
    /// The start type: `SERVICE_BOOT_START` (0) to `SERVICE_DISABLED` (4).
    pub start_type: u32,
}

/// An open service. Dropping it closes it.
pub trait Service: Send + Sync {
    /// Returns the configuration.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryserviceconfigw>
    fn config(&self) -> OsResult<ServiceConfig>;

    /// Returns the state: `SERVICE_STOPPED` (1) to `SERVICE_PAUSED` (7).
    ///
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryservicestatusex>
    fn state(&self) -> OsResult<u32>;

    /// Starts the service without arguments. Returns when Windows has begun to start it.
    ///
    /// Errors: `SERVICE_ALREADY_RUNNING`, `SERVICE_DISABLED`.
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-startservicew>
    fn start(&self) -> OsResult<()>;

    /// Sends the service the control to stop. Returns when the service has received it.
    ///
    /// Errors: `DEPENDENT_SERVICES_RUNNING`, `SERVICE_NOT_ACTIVE`, `SERVICE_CANNOT_ACCEPT_CTRL`.
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-controlservice>
    fn stop(&self) -> OsResult<()>;

    /// Returns the names of all active services that depend on this one, directly or not, in the
    /// order in which they have to be stopped.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-enumdependentservicesw>
    fn active_dependents(&self) -> OsResult<Vec<U16String>>;
}
