//! Faults that are injected while the program runs.

use csi_proxy_client::ErrorKind;
use csi_proxy_sim::control_api::fault::Action;
use csi_proxy_sim::control_api::{
    ClearFaultsRequest, Fault, InjectFaultRequest, ListFaultsRequest, ListPrimitivesRequest,
};
use tonic::Code;

use super::program::Program;

const DISKS: &str = "[[disk]]\nnumber = 1\nsize = \"1 GiB\"\n[[disk]]\nnumber = 2\nsize = \"1 GiB\"\n";

/// ERROR_IO_DEVICE.
const IO_DEVICE: u32 = 1117;

fn fails(primitive: &str, code: u32) -> Fault {
    Fault { primitive: primitive.to_owned(), action: Some(Action::Code(code)), ..Fault::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_disturbs_as_many_calls_as_it_is_told_and_is_counted() {
    let mut program = Program::start(DISKS).await;
    let driver = program.driver();
    driver.disk().list_disk_ids().await.expect("a list");
    let id = program.inject(Fault { skip: 1, count: 1, ..fails("device_interfaces", IO_DEVICE) }).await;
    driver.disk().list_disk_ids().await.expect("the first call is skipped");
    let failed = driver.disk().list_disk_ids().await.expect_err("the second call fails");
    assert!(failed.to_string().contains("(1117)"), "{failed}");
    driver.disk().list_disk_ids().await.expect("no more calls fail");

    let faults = program.simulation.list_faults(ListFaultsRequest {}).await.expect("a list").into_inner().faults;
    assert_eq!(faults.len(), 1);
    assert_eq!((faults[0].id, faults[0].hits), (id, 1));
    assert!(faults[0].last_hit.starts_with("device_interfaces"), "{:?}", faults[0]);
    let called = program.simulation.list_primitives(ListPrimitivesRequest {}).await.expect("a list").into_inner();
    let of_disks = called.primitives.iter().find(|primitive| primitive.name == "device_interfaces");
    assert!(of_disks.expect("it was called").calls >= 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_a_disk_spares_the_others_until_it_is_cleared() {
    let mut program = Program::start(DISKS).await;
    let driver = program.driver();
    let fault = Fault { disk_number: Some(1), ..fails("control *", IO_DEVICE) };
    let id = program.inject(fault).await;
    driver.disk().get_disk_stats(1).await.expect_err("the disk fails");
    driver.disk().get_disk_stats(2).await.expect("the other disk works");
    let clear = |id| ClearFaultsRequest { id };
    assert_eq!(program.simulation.clear_faults(clear(id)).await.expect("cleared").into_inner().cleared, 1);
    driver.disk().get_disk_stats(1).await.expect("the disk works again");
    assert_eq!(program.simulation.clear_faults(clear(id)).await.expect_err("it is gone").code(), Code::NotFound);
    assert_eq!(program.simulation.clear_faults(clear(0)).await.expect("none left").into_inner().cleared, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_holds_the_calls_of_one_disk() {
    let mut program = Program::start(DISKS).await;
    let hour = Some(Action::DelayMilliseconds(3_600_000));
    program.inject(Fault { disk_number: Some(1), action: hour, ..Fault::default() }).await;
    let held = program.driver();
    let call = tokio::spawn(async move { held.disk().get_disk_stats(1).await });
    let driver = program.driver();
    loop {
        let faults = program.simulation.list_faults(ListFaultsRequest {}).await.expect("a list").into_inner().faults;
        if faults[0].hits > 0 {
            break;
        }
    }
    driver.disk().get_disk_stats(2).await.expect("the other disk answers");
    assert!(!call.is_finished());
    call.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_ends_the_daemon_which_starts_again() {
    let mut program = Program::start(DISKS).await;
    let driver = program.driver();
    let crash = Fault { count: 1, action: Some(Action::Crash(true)), ..fails("device_interfaces", 0) };
    program.inject(crash).await;
    let cut_off = driver.disk().list_disk_ids().await;
    // The client may have repeated the call, which only reads, at the new daemon.
    if let Err(error) = cut_off {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    let faults = program.simulation.list_faults(ListFaultsRequest {}).await.expect("a list").into_inner().faults;
    assert_eq!(faults[0].hits, 1);
    let mut answered = driver.disk().list_disk_ids().await;
    while answered.is_err() {
        answered = driver.disk().list_disk_ids().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_that_could_never_happen_is_refused() {
    let mut program = Program::start("").await;
    let crash = Some(Action::Crash(true));
    for (fault, reason) in [
        (fails("Open", 5), "no primitive is called \"Open\""),
        (fails("open", 0), "0 is the code of success"),
        (Fault { primitive: "open".to_owned(), ..Fault::default() }, "what happens to the calls is missing"),
        (Fault { action: Some(Action::DelayMilliseconds(0)), ..Fault::default() }, "more than zero"),
        (Fault { action: crash, ..Fault::default() }, "a crash needs a count"),
    ] {
        let request = InjectFaultRequest { fault: Some(fault) };
        let status = program.simulation.inject_fault(request).await.expect_err(reason);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(reason), "{status}");
    }
}
