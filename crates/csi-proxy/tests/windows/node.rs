//! The services, volumes and disks of the node that the daemon runs on.

use std::time::Duration;

use api::disk::v1::disk_client::DiskClient;
use api::disk::v1::{GetDiskStatsRequest, ListDiskIDsRequest};
use api::system::v1alpha1::system_client::SystemClient;
use api::system::v1alpha1::{
    GetBiosSerialNumberRequest, GetServiceRequest, ServiceStatus, StartServiceRequest,
    StopServiceRequest,
};
use api::volume::v2alpha1::volume_client::VolumeClient;
use api::volume::v2alpha1::{GetClosestVolumeIdFromTargetPathRequest, GetVolumeStatsRequest};
use os::abi::FIRMWARE_SMBIOS;
use os::{Namespace, Os as _};
use os_win32::Windows;
use tonic::Code;
use tonic::transport::Channel;

use crate::daemon::{Daemon, Scratch, connect, turn};
use crate::service_control::Installed;
use crate::skip::skipped_by_wine;

#[tokio::test]
async fn the_serial_number_is_the_one_that_wmi_reports() {
    let _turn = turn().await;
    let _daemon = Daemon::start(&[]);
    let mut system = SystemClient::new(connect("csi-proxy-system-v1alpha1").await);
    let answer = system
        .get_bios_serial_number(GetBiosSerialNumberRequest {})
        .await
        .expect("an answer");
    let windows = Windows::new();
    let deadline = windows.clock().now() + Duration::from_mins(1);
    let bios = windows
        .wmi()
        .query(
            Namespace::CimV2,
            "SELECT SerialNumber FROM Win32_BIOS",
            deadline,
        )
        .expect("WMI");
    let (ours, theirs) = (
        answer.into_inner().serial_number,
        bios[0].text("SerialNumber").expect("a serial number"),
    );
    let mut smbios = vec![
        0;
        windows
            .firmware_table(FIRMWARE_SMBIOS, 0, &mut [])
            .expect("a size")
    ];
    windows
        .firmware_table(FIRMWARE_SMBIOS, 0, &mut smbios)
        .expect("a table");
    // Where SMBIOS has no serial number, the daemon asks WMI too.
    if ours != theirs
        && !smbios
            .split(|&byte| byte == 0)
            .any(|text| text == theirs.as_bytes())
    {
        return skipped_by_wine(&format!(
            "Win32_BIOS answers {theirs:?}, which SMBIOS does not contain"
        ));
    }
    assert_eq!(ours, theirs);
}

async fn closest_volume(volumes: &mut VolumeClient<Channel>, path: &str) -> String {
    let request = GetClosestVolumeIdFromTargetPathRequest {
        target_path: path.into(),
    };
    volumes
        .get_closest_volume_id_from_target_path(request)
        .await
        .expect("a volume")
        .into_inner()
        .volume_id
}

#[tokio::test]
async fn drive_c_is_one_volume_with_a_size_for_all_paths_on_it() {
    let _turn = turn().await;
    let scratch = Scratch::new("volume");
    let _daemon = Daemon::start(&[]);
    let mut volumes = VolumeClient::new(connect("csi-proxy-volume-v2alpha1").await);
    let id = closest_volume(&mut volumes, r"C:\").await;
    assert!(
        id.starts_with(r"\\?\Volume{") && id.ends_with(r"}\"),
        "{id}"
    );
    assert_eq!(closest_volume(&mut volumes, &scratch.join("")).await, id);
    assert_eq!(
        closest_volume(&mut volumes, &scratch.join("").replace('\\', "/")).await,
        id
    );
    let stats = volumes
        .get_volume_stats(GetVolumeStatsRequest { volume_id: id })
        .await
        .expect("stats")
        .into_inner();
    assert!(
        stats.used_bytes > 0 && stats.used_bytes < stats.total_bytes,
        "{stats:?}"
    );
}

#[tokio::test]
async fn every_listed_disk_has_a_size() {
    let _turn = turn().await;
    let _daemon = Daemon::start(&[]);
    let mut disks = DiskClient::new(connect("csi-proxy-disk-v1").await);
    let ids = match disks.list_disk_ids(ListDiskIDsRequest {}).await {
        Err(error)
            if error
                .message()
                .contains("the device is not functioning (31)") =>
        {
            return skipped_by_wine("device interfaces cannot be listed (31)");
        }
        answer => answer.expect("a list").into_inner().disk_ids,
    };
    if ids.is_empty() {
        return skipped_by_wine("no device interface of a disk is listed");
    }
    for number in ids.into_keys() {
        let stats = disks
            .get_disk_stats(GetDiskStatsRequest {
                disk_number: number,
            })
            .await;
        assert!(
            stats.expect("stats").into_inner().total_bytes > 0,
            "disk {number}"
        );
    }
}

async fn status(system: &mut SystemClient<Channel>, name: &str) -> ServiceStatus {
    system
        .get_service(GetServiceRequest { name: name.into() })
        .await
        .expect("a service")
        .into_inner()
        .status()
}

#[tokio::test]
async fn starting_a_running_service_and_stopping_a_stopped_one_succeed() {
    let _turn = turn().await;
    let Some(service) = Installed::idle("csi-proxy-test-idle", Duration::ZERO, &[]) else {
        return;
    };
    let _daemon = Daemon::start(&[]);
    let mut system = SystemClient::new(connect("csi-proxy-system-v1alpha1").await);
    let name = service.name().to_owned();
    assert_eq!(status(&mut system, &name).await, ServiceStatus::Stopped);
    for _ in 0..2 {
        system
            .start_service(StartServiceRequest { name: name.clone() })
            .await
            .expect("a start");
        assert_eq!(status(&mut system, &name).await, ServiceStatus::Running);
    }
    for _ in 0..2 {
        system
            .stop_service(StopServiceRequest {
                name: name.clone(),
                force: false,
            })
            .await
            .expect("a stop");
        assert_eq!(status(&mut system, &name).await, ServiceStatus::Stopped);
    }
    let missing = system
        .get_service(GetServiceRequest {
            name: "csi-proxy-test-none".into(),
        })
        .await;
    assert_eq!(missing.expect_err("no such service").code(), Code::NotFound);
}

#[tokio::test]
async fn a_service_that_others_depend_on_is_stopped_with_them_or_not_at_all() {
    let _turn = turn().await;
    let Some(base) = Installed::idle("csi-proxy-test-base", Duration::ZERO, &[]) else {
        return;
    };
    let needs = ["depend=", base.name()];
    let Some(top) = Installed::idle("csi-proxy-test-top", Duration::ZERO, &needs) else {
        return;
    };
    let _daemon = Daemon::start(&[]);
    let mut system = SystemClient::new(connect("csi-proxy-system-v1alpha1").await);
    system
        .start_service(StartServiceRequest {
            name: top.name().into(),
        })
        .await
        .expect("a start");
    let of_base = status(&mut system, base.name()).await;
    if of_base == ServiceStatus::Stopped {
        return skipped_by_wine("a service is started without those that it depends on");
    }
    assert_eq!(of_base, ServiceStatus::Running);
    let stop = |force| StopServiceRequest {
        name: base.name().into(),
        force,
    };
    if system.stop_service(stop(false)).await.is_ok() {
        return skipped_by_wine("a service is stopped while others depend on it");
    }
    system.stop_service(stop(true)).await.expect("both stop");
    assert_eq!(
        status(&mut system, top.name()).await,
        ServiceStatus::Stopped
    );
}
