//! Changes of a node while it runs.

use csi_proxy_client::ErrorKind;
use csi_proxy_sim::control_api::{
    AddRequest, GrowDiskRequest, ListDisksRequest, PlugDiskRequest, SetReachableRequest, SetSmbPasswordRequest,
    UnplugDiskRequest, set_reachable_request::What,
};
use tonic::Code;

use super::program::Program;

const GIB: u64 = 1 << 30;
const DISK: &str = "[[disk]]\nnumber = 1\nsize = \"1 GiB\"\ncontent = \"partitioned\"\nfile_system = \"NTFS\"\n";

fn add(node_file: &str) -> AddRequest {
    AddRequest { node_file: node_file.to_owned(), undetected: false }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_plugged_in_is_found_by_its_serial_number() {
    let mut program = Program::start("").await;
    let disks = program.driver();
    let file = "[[disk]]\nsize = \"2 GiB\"\nserial = \"vol-1\"\n[[disk]]\nsize = \"3 GiB\"\nserial = \"vol-2\"\n";
    let added = program.simulation.add(add(file)).await.expect("disks").into_inner();
    assert_eq!(added.disk_numbers, [1, 2]);
    let ids = disks.disk().list_disk_ids().await.expect("a list");
    assert_eq!(ids[&2].serial_number, "vol-2");

    let hidden = AddRequest { node_file: "[[disk]]\nsize = \"1 GiB\"\n".to_owned(), undetected: true };
    let added = program.simulation.add(hidden).await.expect("a disk").into_inner();
    assert!(!disks.disk().list_disk_ids().await.expect("a list").contains_key(&added.disk_numbers[0]));
    disks.disk().rescan().await.expect("a rescan");
    assert!(disks.disk().list_disk_ids().await.expect("a list").contains_key(&added.disk_numbers[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_unplugged_is_gone_and_comes_back_with_what_is_on_it() {
    let mut program = Program::start(DISK).await;
    let driver = program.driver();
    let volumes = driver.volume().list_volumes_on_disk(1, None).await.expect("a list");
    let handle = program.simulation.unplug_disk(UnplugDiskRequest { disk_number: 1 }).await.expect("unplugged");
    let handle = handle.into_inner().handle;
    assert_eq!(driver.disk().get_disk_stats(1).await.expect_err("no disk").kind(), ErrorKind::NotFound);
    let list = program.simulation.list_disks(ListDisksRequest {}).await.expect("a list").into_inner();
    let unplugged: Vec<_> = list.unplugged.iter().map(|disk| (disk.handle, disk.number, disk.size)).collect();
    assert_eq!(unplugged, [(handle, 1, GIB)]);

    let plug = PlugDiskRequest { handle, undetected: false };
    assert_eq!(program.simulation.plug_disk(plug).await.expect("plugged in").into_inner().disk_number, 1);
    // Its volume arrives some time after it.
    let mut found = driver.volume().list_volumes_on_disk(1, None).await;
    while found.is_err() {
        found = driver.volume().list_volumes_on_disk(1, None).await;
    }
    assert_eq!(found.expect("a list"), volumes);
    let again = program.simulation.plug_disk(plug).await.expect_err("it is plugged in");
    assert_eq!(again.code(), Code::NotFound);
    let system =
        program.simulation.unplug_disk(UnplugDiskRequest { disk_number: 0 }).await.expect_err("Windows is on it");
    assert_eq!(system.code(), Code::FailedPrecondition);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_has_grown_shows_its_new_size_after_a_rescan() {
    let mut program = Program::start(DISK).await;
    let driver = program.driver();
    let grow = |size| GrowDiskRequest { disk_number: 1, size };
    program.simulation.grow_disk(grow(2 * GIB)).await.expect("it grows");
    let disks = program.simulation.list_disks(ListDisksRequest {}).await.expect("a list").into_inner().disks;
    assert_eq!((disks[1].size, disks[1].size_seen), (2 * GIB, GIB));
    driver.disk().rescan().await.expect("a rescan");
    let disks = program.simulation.list_disks(ListDisksRequest {}).await.expect("a list").into_inner().disks;
    assert_eq!(disks[1].size_seen, 2 * GIB);

    let smaller = program.simulation.grow_disk(grow(GIB)).await.expect_err("it is larger");
    assert_eq!(smaller.code(), Code::FailedPrecondition);
    let odd = program.simulation.grow_disk(grow(3 * GIB + 512)).await.expect_err("no multiple");
    assert_eq!(odd.code(), Code::InvalidArgument);
    let missing = program.simulation.grow_disk(GrowDiskRequest { disk_number: 9, size: GIB }).await;
    assert_eq!(missing.expect_err("no such disk").code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_windows_has_not_detected_yet_can_be_grown_and_unplugged() {
    let mut program = Program::start("").await;
    let hidden = AddRequest { node_file: "[[disk]]\nsize = \"1 GiB\"\n".to_owned(), undetected: true };
    let number = program.simulation.add(hidden).await.expect("a disk").into_inner().disk_numbers[0];
    program.simulation.grow_disk(GrowDiskRequest { disk_number: number, size: 2 * GIB }).await.expect("it grows");
    program.simulation.unplug_disk(UnplugDiskRequest { disk_number: number }).await.expect("unplugged");
    let list = program.simulation.list_disks(ListDisksRequest {}).await.expect("a list").into_inner();
    assert!(list.disks.iter().all(|disk| disk.number != number));
    assert_eq!((list.unplugged[0].number, list.unplugged[0].size), (number, 2 * GIB));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_addition_that_fails_changes_nothing() {
    let mut program = Program::start("").await;
    let before = program.simulation.list_disks(ListDisksRequest {}).await.expect("a list");
    let disk = "[[disk]]\nsize = \"1 GiB\"\n";
    for (file, code, reason) in [
        (format!("{disk}[[disk]]\nsize = \"1 GiB\"\nnumber = 0\n"), Code::InvalidArgument, "the number 0"),
        (
            format!("{disk}[[file]]\nkind = \"file\"\npath = 'X:\\file'\n"),
            Code::FailedPrecondition,
            r"cannot create X:\file",
        ),
        (format!("{disk}sise = 1\n"), Code::InvalidArgument, "line 3: unknown field `sise`"),
        (format!("bios_serial = \"x\"\n{disk}"), Code::InvalidArgument, "bios_serial cannot be added"),
    ] {
        let status = program.simulation.add(add(&file)).await.expect_err(reason);
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(reason), "{status}");
    }
    let after = program.simulation.list_disks(ListDisksRequest {}).await.expect("a list");
    assert_eq!(after.into_inner(), before.into_inner());
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_are_added_can_be_stopped_and_started() {
    let mut program = Program::start("").await;
    let smb = "[[smb_server]]\nhost = \"files\"\nshares = [{ name = \"share\" }]\n\
               users = [{ name = \"user\", password = \"old\" }]\n";
    let portal = "[[iscsi_portal]]\naddress = \"10.0.0.10\"\n[[iscsi_target]]\niqn = \"iqn.2026-01.io.k8s:a\"\n\
                  portals = [{ address = \"10.0.0.10\" }]\nluns = [{ number = 0, size = 1073741824 }]\n";
    program.simulation.add(add(&format!("{smb}{portal}"))).await.expect("servers");
    let target =
        |address: &str| format!("[[iscsi_target]]\niqn = \"iqn.b\"\nportals = [{{ address = \"{address}\" }}]\n");
    let elsewhere = program.simulation.add(add(&target("10.0.0.11"))).await.expect_err("no such portal");
    assert!(
        elsewhere.message().ends_with("iscsi_target 1: no iscsi_portal has the address 10.0.0.11, port 3260"),
        "{elsewhere}"
    );
    program.simulation.add(add(&target("10.0.0.10"))).await.expect("the node has the portal");
    let taken = program.simulation.add(add(smb)).await.expect_err("it exists");
    assert!(taken.message().ends_with("the node already has the SMB server files"), "{taken}");

    let reachable = |what, reachable| SetReachableRequest { what: Some(what), reachable };
    let at = || What::IscsiPortal("10.0.0.10".to_owned());
    program.simulation.set_reachable(reachable(at(), false)).await.expect("stopped");
    program.simulation.set_reachable(reachable(at(), true)).await.expect("started");
    let unknown = reachable(What::SmbServer("other".to_owned()), false);
    assert_eq!(program.simulation.set_reachable(unknown).await.expect_err("unknown").code(), Code::NotFound);

    let password = |user: &str| SetSmbPasswordRequest {
        server: "files".to_owned(),
        user: user.to_owned(),
        password: "new".to_owned(),
    };
    program.simulation.set_smb_password(password("user")).await.expect("changed");
    assert_eq!(
        program.simulation.set_smb_password(password("other")).await.expect_err("unknown").code(),
        Code::NotFound
    );
}
