//! A client: the life of a volume again and again, and in between what goes wrong in the field.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::disk::v1::PartitionDiskRequest;
use api::disk::v1::disk_client::DiskClient;
use api::filesystem::v1::filesystem_client::FilesystemClient;
use api::filesystem::v1::{CreateSymlinkRequest, MkdirRequest, PathExistsRequest, RmdirRequest};
use api::smb::v1::NewSmbGlobalMappingRequest;
use api::smb::v1::smb_client::SmbClient;
use api::volume::v1::volume_client::VolumeClient;
use api::volume::v1::{
    FormatVolumeRequest, IsVolumeFormattedRequest, ListVolumesOnDiskRequest, MountVolumeRequest, UnmountVolumeRequest,
};
use hyper_util::rt::TokioIo;
use pipe::address::Place;
use pipe::listener::{ClientStream, connect};
use tokio::io::AsyncWriteExt as _;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};
use tower::service_fn;

use crate::ledger::Ledger;

/// Silent connections that a client leaves open at once.
const SILENT: usize = 4;

const FILESYSTEM: &str = "csi-proxy-filesystem-v1";

pub(crate) struct Client {
    number: u32,
    place: Place,
    ledger: Arc<Ledger>,
    over: Arc<AtomicBool>,
    random: u64,
    silent: Vec<ClientStream>,
}

impl Client {
    pub(crate) fn new(number: u32, place: Place, ledger: Arc<Ledger>, over: Arc<AtomicBool>) -> Self {
        Self { number, place, ledger, over, random: 0x9e37_79b9_7f4a_7c15 ^ u64::from(number), silent: Vec::new() }
    }

    /// Works until told to stop, and says how many volumes it has been through.
    pub(crate) async fn work(mut self) -> u64 {
        let mut cycles = 0;
        loop {
            self.misbehave().await;
            self.cycle().await;
            cycles += 1;
            if self.over.load(Ordering::Relaxed) {
                return cycles;
            }
        }
    }

    /// A number below `bound`, after Marsaglia.
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    async fn stream(&self, pipe: &str) -> ClientStream {
        connect(&self.place.address(pipe).expect("a name")).await.expect("never refused")
    }

    async fn misbehave(&mut self) {
        match self.below(6) {
            0 => {
                let stream = self.stream(FILESYSTEM).await;
                self.silent.push(stream);
                if self.silent.len() > SILENT {
                    self.silent.remove(0);
                }
            }
            1 => {
                // A frame that says it has 16 octets and has three.
                let mut stream = self.stream(FILESYSTEM).await;
                let half =
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x10\x01\x04\0\0\0\x01\x83\x86\x84";
                stream.write_all(half).await.expect("it is read");
            }
            2 => {
                let mut client = FilesystemClient::new(channel(&self.place, FILESYSTEM).await);
                let large = PathExistsRequest { path: "x".repeat((4 << 20) + 1) };
                let outcome = self.call("PathExists", client.path_exists(large)).await;
                assert_eq!(outcome.expect_err("too large").code(), Code::OutOfRange);
            }
            3 => self.cancel(false).await,
            4 => self.cancel(true).await,
            _ => {}
        }
    }

    /// Goes away from a call under way: from the call alone, or with the whole connection, as a killed client does.
    async fn cancel(&mut self, with_connection: bool) {
        let channel = channel(&self.place, "csi-proxy-disk-v1").await;
        let mut client = DiskClient::new(channel.clone());
        let patience = Duration::from_micros(self.below(10_000));
        self.ledger.sent("PartitionDisk");
        let request = PartitionDiskRequest { disk_number: self.number };
        let call = async move { client.partition_disk(request).await };
        let keep = (!with_connection).then_some(channel);
        match tokio::time::timeout(patience, call).await {
            Ok(outcome) => {
                self.ledger.answered("PartitionDisk", &outcome);
                outcome.expect("the disk is partitioned, perhaps already");
            }
            Err(_) => self.ledger.abandoned("PartitionDisk"),
        }
        drop(keep);
    }

    /// One call, which has one answer.
    async fn call<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, Status> {
        call_of(&self.ledger, method, call).await
    }

    async fn must<T>(&self, method: &'static str, call: impl Future<Output = Result<Response<T>, Status>>) -> T {
        self.call(method, call).await.unwrap_or_else(|status| panic!("{method} of client {}: {status}", self.number))
    }

    /// Stages, publishes, unpublishes and unstages the volume of this client's disk.
    async fn cycle(&mut self) {
        let disk_number = self.number;
        let staging = format!(r"C:\var\lib\kubelet\plugins\{disk_number}");
        let published = format!(r"C:\var\lib\kubelet\pods\{disk_number}");
        let mut disks = DiskClient::new(channel(&self.place, "csi-proxy-disk-v1").await);
        let mut volumes = VolumeClient::new(channel(&self.place, "csi-proxy-volume-v1").await);
        let mut files = FilesystemClient::new(channel(&self.place, FILESYSTEM).await);

        self.must("PartitionDisk", disks.partition_disk(PartitionDiskRequest { disk_number })).await;
        let list = ListVolumesOnDiskRequest { disk_number, partition_number: 0 };
        let found = self.must("ListVolumesOnDisk", volumes.list_volumes_on_disk(list)).await.volume_ids;
        let [volume_id] = &found[..] else { panic!("disk {disk_number} has the volumes {found:?}") };
        let formatted = IsVolumeFormattedRequest { volume_id: volume_id.clone() };
        if !self.must("IsVolumeFormatted", volumes.is_volume_formatted(formatted)).await.formatted {
            let format = FormatVolumeRequest { volume_id: volume_id.clone() };
            self.must("FormatVolume", volumes.format_volume(format)).await;
        }
        self.must("Mkdir", files.mkdir(MkdirRequest { path: staging.clone() })).await;
        let mount = MountVolumeRequest { volume_id: volume_id.clone(), target_path: staging.clone() };
        self.must("MountVolume", volumes.mount_volume(mount)).await;
        let link = CreateSymlinkRequest { source_path: staging.clone(), target_path: published.clone() };
        self.must("CreateSymlink", files.create_symlink(link)).await;
        let exists = PathExistsRequest { path: published.clone() };
        assert!(self.must("PathExists", files.path_exists(exists)).await.exists);
        self.must("Rmdir", files.rmdir(RmdirRequest { path: published, force: false })).await;
        let unmount = UnmountVolumeRequest { volume_id: volume_id.clone(), target_path: staging.clone() };
        self.must("UnmountVolume", volumes.unmount_volume(unmount)).await;
        self.must("Rmdir", files.rmdir(RmdirRequest { path: staging, force: false })).await;
    }
}

async fn call_of<T>(
    ledger: &Ledger,
    method: &'static str,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Status> {
    ledger.sent(method);
    let outcome = call.await.map(Response::into_inner);
    ledger.answered(method, &outcome);
    outcome
}

/// Maps a share of the slow server, and says how many calls of others were answered meanwhile.
pub(crate) async fn slow_call(place: Place, ledger: Arc<Ledger>) -> u64 {
    let mut client = SmbClient::new(channel(&place, "csi-proxy-smb-v1").await);
    let request = NewSmbGlobalMappingRequest {
        remote_path: r"\\slow\share".to_owned(),
        local_path: String::new(),
        username: "user".to_owned(),
        password: "password".to_owned(),
    };
    let before = ledger.answers();
    let call = client.new_smb_global_mapping(request);
    call_of(&ledger, "NewSmbGlobalMapping", call).await.expect("the share is mapped");
    ledger.answers() - before
}

async fn channel(place: &Place, pipe: &str) -> Channel {
    let address = place.address(pipe).expect("a name");
    let connector = service_fn(move |_| {
        let address = address.clone();
        async move { connect(&address).await.map(TokioIo::new) }
    });
    let endpoint = tonic::transport::Endpoint::from_static("http://csi-proxy");
    endpoint.connect_with_connector(connector).await.expect("never refused")
}
