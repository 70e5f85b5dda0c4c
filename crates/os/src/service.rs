//! Windows services, as the service control manager shows them.

use widestring::U16String;

use crate::OsResult;

/// What a service is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServiceAccess {
    /// Read its configuration and status.
    Query,
    /// That, and start it.
    Start,
    /// Query, list its dependents and stop it.
    Stop,
}

/// A service's configuration, as far as it is asked for (`QUERY_SERVICE_CONFIGW`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceConfig {
    /// The name shown to people.
    pub display_name: U16String,
    /// `SERVICE_BOOT_START` 0 to `SERVICE_DISABLED` 4.
    pub start_type: u32,
}

/// An open service; closed when dropped.
pub trait Service: Send + Sync {
    /// Its configuration.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryserviceconfigw>
    fn config(&self) -> OsResult<ServiceConfig>;

    /// Its state, `SERVICE_STOPPED` 1 to `SERVICE_PAUSED` 7.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryservicestatusex>
    fn state(&self) -> OsResult<u32>;

    /// Asks it to start, without arguments; it starts while this returns.
    ///
    /// Errors: `SERVICE_ALREADY_RUNNING`, `SERVICE_DISABLED`.
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-startservicew>
    fn start(&self) -> OsResult<()>;

    /// Asks it to stop; it stops while this returns.
    ///
    /// Errors: `DEPENDENT_SERVICES_RUNNING`, `SERVICE_NOT_ACTIVE`, `SERVICE_CANNOT_ACCEPT_CTRL`.
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-controlservice>
    fn stop(&self) -> OsResult<()>;

    /// The names of all active services that depend on it, directly or not, in the order to stop them in.
    ///
    /// <https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-enumdependentservicesw>
    fn active_dependents(&self) -> OsResult<Vec<U16String>>;
}
