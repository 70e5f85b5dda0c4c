//! Tests of services that the tests install, with the real service control manager.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use csi_proxy_os_win32::Windows;
use os::{CallStatus, MethodCall, Namespace, Os as _, OsError, Returned, Service, ServiceAccess};
use windows_service::service::{
    ServiceAccess as Access, ServiceErrorControl, ServiceInfo, ServiceStartType, ServiceType,
};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};

use crate::scratch::{turn, wide};
use crate::skip::skipped_by_wine;

const STOPPED: u32 = 1;
const RUNNING: u32 = 4;
const DEMAND_START: u32 = 3;
const DISABLED: u32 = 4;

/// A service that is installed, at first stopped, and deleted when dropped.
struct Installed {
    name: String,
    windows: Windows,
}

impl Installed {
    fn new(test: &str) -> Self {
        Self::install(Self::description(test))
    }

    /// Returns the default configuration of a service.
    fn description(test: &str) -> ServiceInfo {
        let name = OsString::from(format!("csi-proxy-test-{test}-{}", std::process::id()));
        ServiceInfo {
            display_name: name.clone(),
            service_type: ServiceType::OWN_PROCESS,
            start_type: ServiceStartType::OnDemand,
            error_control: ServiceErrorControl::Normal,
            executable_path: program(),
            launch_arguments: vec![name.clone()],
            dependencies: Vec::new(),
            account_name: None,
            account_password: None,
            name,
        }
    }

    fn install(description: ServiceInfo) -> Self {
        assert!(
            description.executable_path.exists(),
            "the example `idle_service` is not built; `cargo test -p csi-proxy-os-win32` builds \
             it, `--test` does not"
        );
        remove(&description.name); // in case an earlier run was killed
        manager()
            .create_service(&description, Access::empty())
            .unwrap();
        Self {
            name: description.name.into_string().unwrap(),
            windows: Windows::new(),
        }
    }

    fn open(&self, access: ServiceAccess) -> Box<dyn Service> {
        self.windows
            .open_service(&wide(&self.name), access)
            .unwrap()
    }

    fn start(&self) {
        self.open(ServiceAccess::Start).start().unwrap();
        self.wait_until(RUNNING);
    }

    fn stop(&self) {
        self.open(ServiceAccess::Stop).stop().unwrap();
        self.wait_until(STOPPED);
    }

    /// Waits until the service has a state: starting and stopping take time.
    fn wait_until(&self, state: u32) {
        let clock = self.windows.clock();
        let deadline = clock.now() + Duration::from_mins(1);
        while self.open(ServiceAccess::Query).state() != Ok(state) {
            assert!(
                clock.now() < deadline,
                "{} is in state {:?}",
                self.name,
                self.open(ServiceAccess::Query).state()
            );
            clock.sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        remove(self.name.as_ref());
    }
}

fn manager() -> ServiceManager {
    let access = ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE;
    ServiceManager::local_computer(None::<&str>, access).unwrap()
}

/// Stops and deletes a service, if it exists.
fn remove(name: &OsStr) {
    if let Ok(service) = manager().open_service(name, Access::STOP | Access::DELETE) {
        let _ = service.stop();
        service.delete().unwrap();
    }
}

/// Returns the path of the example `idle_service`, which is built beside the tests.
fn program() -> PathBuf {
    let tests = env::current_exe().unwrap();
    tests
        .parent()
        .and_then(|deps| deps.parent())
        .unwrap()
        .join(r"examples\idle_service.exe")
}

#[test]
fn a_service_returns_its_configuration() {
    let _turn = turn();
    let display_name = "A display name longer than the first buffer. ".repeat(5);
    let description = ServiceInfo {
        display_name: (&display_name).into(),
        ..Installed::description("config")
    };
    let config = Installed::install(description)
        .open(ServiceAccess::Query)
        .config()
        .unwrap();
    assert_eq!(config.display_name, wide(&display_name));
    assert_eq!(config.start_type, DEMAND_START);
}

#[test]
fn a_service_starts_and_stops() {
    let _turn = turn();
    let service = Installed::new("life");
    assert_eq!(service.open(ServiceAccess::Query).state(), Ok(STOPPED));
    service.start();
    assert_eq!(
        service.open(ServiceAccess::Start).start(),
        Err(OsError::SERVICE_ALREADY_RUNNING)
    );
    service.stop();
    assert_eq!(
        service.open(ServiceAccess::Stop).stop(),
        Err(OsError::SERVICE_NOT_ACTIVE)
    );
    service.start();
}

#[test]
fn a_disabled_service_does_not_start() {
    let _turn = turn();
    let service = Installed::install(ServiceInfo {
        start_type: ServiceStartType::Disabled,
        ..Installed::description("disabled")
    });
    assert_eq!(
        service
            .open(ServiceAccess::Query)
            .config()
            .unwrap()
            .start_type,
        DISABLED
    );
    assert_eq!(
        service.open(ServiceAccess::Start).start(),
        Err(OsError::SERVICE_DISABLED)
    );
}

#[test]
fn a_service_opened_for_queries_cannot_be_started_or_stopped() {
    let _turn = turn();
    let service = Installed::new("rights");
    assert_eq!(
        service.open(ServiceAccess::Query).start(),
        Err(OsError::ACCESS_DENIED)
    );
    assert_eq!(
        service.open(ServiceAccess::Query).stop(),
        Err(OsError::ACCESS_DENIED)
    );
    let dependents = service.open(ServiceAccess::Query).active_dependents();
    if dependents == Ok(Vec::new()) {
        return skipped_by_wine("EnumDependentServicesW without the access right lists nothing");
    }
    assert_eq!(dependents, Err(OsError::ACCESS_DENIED));
}

#[test]
fn a_method_of_an_instance_is_called_on_that_instance() {
    let _turn = turn();
    let service = Installed::new("instance");
    let wmi = service.windows.wmi();
    let deadline = service.windows.clock().now() + Duration::from_mins(1);
    let wql = format!("SELECT * FROM Win32_Service WHERE Name='{}'", service.name);
    let found = wmi.query(Namespace::CimV2, &wql, deadline).unwrap();
    let status = wmi
        .call(
            &MethodCall::new(Namespace::CimV2, &found[0].path, "StartService", &[]),
            deadline,
        )
        .unwrap();
    assert!(matches!(status, CallStatus::Done(Returned { code: 0, .. })));
    service.wait_until(RUNNING);
}
