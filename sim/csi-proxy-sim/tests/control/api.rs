//! Requests of the control API that `ctl` cannot make, and the codes of refused requests.

use csi_proxy_sim::control_api::fault::Action;
use csi_proxy_sim::control_api::{
    AddRequest, ClearFaultsRequest, ContainerFilesClient, Fault, GrowDiskRequest,
    InjectFaultRequest, ListDisksRequest, MakeDirectoryRequest, PlugDiskRequest, ReadFileRequest,
    SaveStateRequest, SimulationClient, UnplugDiskRequest, connect,
};
use tonic::transport::Channel;
use tonic::{Code, Response, Status};
use transport::address::Location;

use super::program::Program;

async fn channel(program: &Program) -> Channel {
    connect(&Location::Directory(program.sockets()))
        .await
        .expect("a connection")
}

fn code<T>(result: Result<Response<T>, Status>) -> Code {
    result.err().expect("the request is refused").code()
}

#[tokio::test]
async fn a_refused_request_has_a_code_that_says_whose_mistake_it_is() {
    let program = Program::start_on("", &[]);
    let channel = channel(&program).await;
    let (mut node, mut files) = (
        SimulationClient::new(channel.clone()),
        ContainerFilesClient::new(channel),
    );
    let unknown_key = AddRequest {
        node_file: "sise = 1".into(),
        undetected: false,
    };
    assert_eq!(code(node.add(unknown_key).await), Code::InvalidArgument);
    let no_drive = AddRequest {
        node_file: "[[file]]\nkind = \"file\"\npath = 'X:\\f'\n".into(),
        undetected: false,
    };
    assert_eq!(code(node.add(no_drive).await), Code::FailedPrecondition);
    assert_eq!(
        code(node.unplug_disk(UnplugDiskRequest { disk_number: 0 }).await),
        Code::FailedPrecondition
    );
    assert_eq!(
        code(
            node.plug_disk(PlugDiskRequest {
                handle: 7,
                undetected: false
            })
            .await
        ),
        Code::NotFound
    );
    assert_eq!(
        code(
            node.grow_disk(GrowDiskRequest {
                disk_number: 0,
                size: 512
            })
            .await
        ),
        Code::InvalidArgument
    );
    assert_eq!(
        code(
            node.grow_disk(GrowDiskRequest {
                disk_number: 0,
                size: 4096
            })
            .await
        ),
        Code::FailedPrecondition
    );
    assert_eq!(
        code(node.save_state(SaveStateRequest {}).await),
        Code::FailedPrecondition
    );
    assert_eq!(
        code(
            files
                .read_file(ReadFileRequest {
                    path: r"C:\no".into()
                })
                .await
        ),
        Code::NotFound
    );
    let empty = files
        .make_directory(MakeDirectoryRequest::default())
        .await
        .expect_err("no path");
    assert_eq!(
        (empty.code(), empty.message()),
        (Code::InvalidArgument, "the path is missing")
    );
}

#[tokio::test]
async fn a_fault_that_could_never_happen_is_refused() {
    let program = Program::start_on("", &[]);
    let mut node = SimulationClient::new(channel(&program).await);
    let fault = |primitive: &str, action| Fault {
        primitive: primitive.to_owned(),
        action,
        ..Fault::default()
    };
    for (fault, reason) in [
        (
            fault("Open", Some(Action::Code(5))),
            "no primitive is called \"Open\"",
        ),
        (
            fault("open", Some(Action::Code(0))),
            "0 is the code of success",
        ),
        (fault("open", None), "what happens to the calls is missing"),
        (
            fault("", Some(Action::DelayMilliseconds(0))),
            "more than zero",
        ),
        (
            fault("", Some(Action::Crash(true))),
            "a crash needs a count",
        ),
    ] {
        let status = node
            .inject_fault(InjectFaultRequest { fault: Some(fault) })
            .await
            .expect_err(reason);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(reason), "{status}");
    }
    let valid = InjectFaultRequest {
        fault: Some(fault("open", Some(Action::Code(5)))),
    };
    node.inject_fault(valid).await.expect("a fault");
    assert_eq!(
        node.clear_faults(ClearFaultsRequest { id: 0 })
            .await
            .expect("cleared")
            .into_inner()
            .cleared,
        1
    );
}

#[tokio::test]
async fn an_unplugged_disk_is_listed_with_its_number() {
    let program = Program::start_on("[[disk]]\nnumber = 7\nsize = \"1 GiB\"\n", &[]);
    program.ctl(&["unplug", "7"]).ok();
    let mut node = SimulationClient::new(channel(&program).await);
    let unplugged = node
        .list_disks(ListDisksRequest {})
        .await
        .expect("a list")
        .into_inner()
        .unplugged;
    assert_eq!((unplugged.len(), unplugged[0].number), (1, 7));
}
