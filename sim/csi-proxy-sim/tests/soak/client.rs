//! A client: the life of a volume again and again, and in between what goes wrong in the field.

use std::sync::Arc;
use std::time::Duration;

use api::disk::v1::{ListDiskLocationsRequest, ListDiskLocationsResponse, PartitionDiskRequest, PartitionDiskResponse};
use api::filesystem::v1::{
    CreateSymlinkRequest, CreateSymlinkResponse, MkdirRequest, MkdirResponse, PathExistsRequest, PathExistsResponse,
    RmdirRequest, RmdirResponse,
};
use api::smb::v1::{
    NewSmbGlobalMappingRequest, NewSmbGlobalMappingResponse, RemoveSmbGlobalMappingRequest,
    RemoveSmbGlobalMappingResponse,
};
use api::volume::v1::{
    FormatVolumeRequest, FormatVolumeResponse, IsVolumeFormattedRequest, IsVolumeFormattedResponse,
    ListVolumesOnDiskRequest, ListVolumesOnDiskResponse, MountVolumeRequest, MountVolumeResponse, UnmountVolumeRequest,
    UnmountVolumeResponse,
};
use tokio::io::AsyncWriteExt as _;
use tonic::Code;
use transport::address::Location;
use transport::listener::{ClientStream, connect};

use crate::daemon::{QUICK_SERVER, TARDY_SERVER};
use crate::frames;
use crate::ledger::Ledger;
use crate::random::Random;
use crate::service::{Service, Versions, pipe_of};
use crate::stage::Stage;

/// Connections without a whole request that a client leaves open at once.
const SILENT: usize = 4;

pub(crate) struct Client {
    number: u32,
    versions: Versions,
    place: Location,
    ledger: Arc<Ledger>,
    random: Random,
    silent: Vec<ClientStream>,
}

impl Client {
    pub(crate) fn new(number: u32, versions: Versions, place: Location, ledger: Arc<Ledger>) -> Self {
        Self { number, versions, place, ledger, random: Random::new(number), silent: Vec::new() }
    }

    /// Works until told to stop, and says how many volumes it has been through.
    pub(crate) async fn work(mut self, stage: Arc<Stage>) -> u64 {
        // As many as there may be from the start, so that their number does not grow.
        for _ in 0..SILENT {
            let silent = self.stream().await;
            self.leave_open(silent);
        }
        let mut cycles = 0;
        loop {
            self.misbehave().await;
            self.cycle().await;
            if cycles == 0 {
                stage.go_through();
            }
            cycles += 1;
            if stage.is_closed() {
                return cycles;
            }
        }
    }

    async fn service(&self, group: &str) -> Service {
        let Versions { disk, filesystem, smb, volume } = self.versions;
        let version = match group {
            "Disk" => disk,
            "Filesystem" => filesystem,
            "Smb" => smb,
            _ => volume,
        };
        Service::connect(&self.place, group, version, &self.ledger).await
    }

    async fn stream(&self) -> ClientStream {
        let pipe = pipe_of("Filesystem", self.versions.filesystem);
        connect(&self.place.address(&pipe).expect("a name")).await.expect("never refused")
    }

    async fn misbehave(&mut self) {
        match self.random.below(6) {
            0 => {
                let silent = self.stream().await;
                self.leave_open(silent);
            }
            1 => self.stop_within_a_request().await,
            2 => {
                let large = PathExistsRequest { path: "x".repeat((4 << 20) + 1) };
                let outcome = self.service("Filesystem").await.call::<_, PathExistsResponse>("PathExists", large).await;
                let status = outcome.expect_err("too large");
                assert_eq!(status.code(), Code::OutOfRange, "{status}");
            }
            3 => self.cancel(false).await,
            4 => self.cancel(true).await,
            _ => {}
        }
    }

    fn leave_open(&mut self, stream: ClientStream) {
        self.silent.push(stream);
        if self.silent.len() > SILENT {
            self.silent.remove(0);
        }
    }

    /// Sends the begin of a request, and goes or says no more.
    async fn stop_within_a_request(&mut self) {
        let call = format!("{}.Filesystem/PathExists", self.versions.filesystem);
        let request = frames::request(&call, &PathExistsRequest { path: r"C:\var\lib\kubelet".to_owned() });
        let octets = 1 + self.random.below(u64::try_from(request.len() - 1).expect("small"));
        let mut stream = self.stream().await;
        // Its head may be there: then the daemon begins the call, and ends it when the connection does.
        self.ledger.sent(&call);
        self.ledger.abandoned(&call);
        stream.write_all(&request[..usize::try_from(octets).expect("small")]).await.expect("it is read");
        if self.random.below(2) == 0 {
            self.leave_open(stream);
        }
    }

    /// Goes away from a call under way: from the call alone, so that the connection serves on, or with the connection.
    async fn cancel(&mut self, with_connection: bool) {
        let soon = self.random.time_below(Duration::from_millis(10));
        let later = self.random.time_below(Duration::from_millis(100));
        let remote_path = share_of(TARDY_SERVER, self.number);
        let partition = PartitionDiskRequest { disk_number: self.number };
        let (mut disks, mut mappings) = (self.service("Disk").await, self.service("Smb").await);
        match self.random.below(4) {
            0 => {
                let answer = disks.call_for(soon, "PartitionDisk", partition).await;
                let _: Option<PartitionDiskResponse> = answer.map(|outcome| outcome.expect("partitioned, or already"));
            }
            1 => {
                let answer = disks.call_for(soon, "ListDiskLocations", ListDiskLocationsRequest {}).await;
                let _: Option<ListDiskLocationsResponse> = answer.map(|outcome| outcome.expect("a list"));
            }
            2 => {
                let answer = mappings.call_for(later, "NewSmbGlobalMapping", mapping(remote_path)).await;
                let _: Option<NewSmbGlobalMappingResponse> = answer.map(|outcome| outcome.expect("mapped, or already"));
            }
            _ => {
                let request = RemoveSmbGlobalMappingRequest { remote_path };
                let answer = mappings.call_for(later, "RemoveSmbGlobalMapping", request).await;
                let answer: Option<Result<RemoveSmbGlobalMappingResponse, _>> = answer;
                if let Some(Err(status)) = answer {
                    assert_eq!(status.code(), Code::NotFound, "it may not have been mapped: {status}");
                }
            }
        }
        if !with_connection {
            let _: PartitionDiskResponse = disks.must("PartitionDisk", partition).await;
        }
    }

    /// Stages, publishes, unpublishes and unstages the volume of this client's disk.
    async fn cycle(&mut self) {
        let disk_number = self.number;
        let staging = format!(r"C:\var\lib\kubelet\plugins\{disk_number}");
        let published = format!(r"C:\var\lib\kubelet\pods\{disk_number}");
        let mut disks = self.service("Disk").await;
        let mut volumes = self.service("Volume").await;
        let mut files = self.service("Filesystem").await;

        if self.random.below(4) == 0 {
            let _: ListDiskLocationsResponse = disks.must("ListDiskLocations", ListDiskLocationsRequest {}).await;
        }
        let _: PartitionDiskResponse = disks.must("PartitionDisk", PartitionDiskRequest { disk_number }).await;
        let list = ListVolumesOnDiskRequest { disk_number, partition_number: 0 };
        let found: ListVolumesOnDiskResponse = volumes.must("ListVolumesOnDisk", list).await;
        let [volume_id] = &found.volume_ids[..] else { panic!("disk {disk_number} has the volumes {found:?}") };
        let volume_id = volume_id.clone();
        let asked = IsVolumeFormattedRequest { volume_id: volume_id.clone() };
        let state: IsVolumeFormattedResponse = volumes.must("IsVolumeFormatted", asked).await;
        if !state.formatted {
            let format = FormatVolumeRequest { volume_id: volume_id.clone() };
            let _: FormatVolumeResponse = volumes.must("FormatVolume", format).await;
        }
        let _: MkdirResponse = files.must("Mkdir", MkdirRequest { path: staging.clone() }).await;
        let mount = MountVolumeRequest { volume_id: volume_id.clone(), target_path: staging.clone() };
        let _: MountVolumeResponse = volumes.must("MountVolume", mount).await;
        let link = CreateSymlinkRequest { source_path: staging.clone(), target_path: published.clone() };
        let _: CreateSymlinkResponse = files.must("CreateSymlink", link).await;
        let there: PathExistsResponse = files.must("PathExists", PathExistsRequest { path: published.clone() }).await;
        assert!(there.exists, "what was published");
        if self.random.below(4) == 0 {
            self.use_a_share().await;
        }
        let _: RmdirResponse = files.must("Rmdir", RmdirRequest { path: published, force: false }).await;
        let unmount = UnmountVolumeRequest { volume_id, target_path: staging.clone() };
        let _: UnmountVolumeResponse = volumes.must("UnmountVolume", unmount).await;
        let _: RmdirResponse = files.must("Rmdir", RmdirRequest { path: staging, force: false }).await;
    }

    /// Maps a share of its own, for a moment.
    async fn use_a_share(&mut self) {
        let remote_path = share_of(QUICK_SERVER, self.number);
        let mut mappings = self.service("Smb").await;
        let _: NewSmbGlobalMappingResponse = mappings.must("NewSmbGlobalMapping", mapping(remote_path.clone())).await;
        let remove = RemoveSmbGlobalMappingRequest { remote_path };
        let _: RemoveSmbGlobalMappingResponse = mappings.must("RemoveSmbGlobalMapping", remove).await;
    }
}

/// The share of a server that this client has for itself.
fn share_of(server: &str, number: u32) -> String {
    format!(r"\\{server}\share{number}")
}

pub(crate) fn mapping(remote_path: String) -> NewSmbGlobalMappingRequest {
    let (username, password) = ("user".to_owned(), "password".to_owned());
    NewSmbGlobalMappingRequest { remote_path, local_path: String::new(), username, password }
}
