//! A client that repeats the cycle of a volume, and misbehaves in between as clients do in production.

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

use crate::call_counts::CallCounts;
use crate::daemon::{DELAYED_SERVER, FAST_SERVER};
use crate::frames;
use crate::rng::Rng;
use crate::run_control::RunControl;
use crate::service_client::{ServiceClient, Versions, pipe_of};

/// The number of connections without a complete request that a client keeps open.
const SILENT: usize = 4;

pub(crate) struct Client {
    number: u32,
    versions: Versions,
    location: Location,
    counts: Arc<CallCounts>,
    rng: Rng,
    silent: Vec<ClientStream>,
}

impl Client {
    pub(crate) fn new(number: u32, versions: Versions, location: Location, counts: Arc<CallCounts>) -> Self {
        Self { number, versions, location, counts, rng: Rng::new(number), silent: Vec::new() }
    }

    /// Runs cycles until the run stops, and returns their number.
    pub(crate) async fn run(mut self, control: Arc<RunControl>) -> u64 {
        // All of them from the start, so that their number does not grow.
        for _ in 0..SILENT {
            let silent = self.stream().await;
            self.leave_open(silent);
        }
        let mut cycles = 0;
        loop {
            self.misbehave().await;
            self.cycle().await;
            if cycles == 0 {
                control.add_warmed_up();
            }
            cycles += 1;
            if control.is_stopping() {
                return cycles;
            }
        }
    }

    async fn connect(&self, group: &str) -> ServiceClient {
        let Versions { disk, filesystem, smb, volume } = self.versions;
        let version = match group {
            "Disk" => disk,
            "Filesystem" => filesystem,
            "Smb" => smb,
            _ => volume,
        };
        ServiceClient::connect(&self.location, group, version, &self.counts).await
    }

    async fn stream(&self) -> ClientStream {
        let pipe = pipe_of("Filesystem", self.versions.filesystem);
        connect(&self.location.address(&pipe)).await.expect("the daemon accepts every connection")
    }

    async fn misbehave(&mut self) {
        match self.rng.below(6) {
            0 => {
                let silent = self.stream().await;
                self.leave_open(silent);
            }
            1 => self.send_partial_request().await,
            2 => {
                let large = PathExistsRequest { path: "x".repeat((4 << 20) + 1) };
                let outcome = self.connect("Filesystem").await.call::<_, PathExistsResponse>("PathExists", large).await;
                let status = outcome.expect_err("a request that is too large");
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

    /// Sends the beginning of a request, and then closes the connection or leaves it open.
    async fn send_partial_request(&mut self) {
        let call = format!("{}.Filesystem/PathExists", self.versions.filesystem);
        let request = frames::request(&call, &PathExistsRequest { path: r"C:\var\lib\kubelet".to_owned() });
        let length = 1 + self.rng.below(u64::try_from(request.len() - 1).expect("small"));
        let mut stream = self.stream().await;
        // If the headers are complete, the daemon starts the call, and ends it when the connection is closed.
        self.counts.add_sent(&call);
        self.counts.add_abandoned(&call);
        stream.write_all(&request[..usize::try_from(length).expect("small")]).await.expect("the daemon reads");
        if self.rng.below(2) == 0 {
            self.leave_open(stream);
        }
    }

    /// Cancels a call: only the call, after which the connection is used again, or with the connection.
    async fn cancel(&mut self, with_connection: bool) {
        let short = self.rng.duration_below(Duration::from_millis(10));
        let long = self.rng.duration_below(Duration::from_millis(100));
        let remote_path = share_of(DELAYED_SERVER, self.number);
        let partition = PartitionDiskRequest { disk_number: self.number };
        let (mut disks, mut mappings) = (self.connect("Disk").await, self.connect("Smb").await);
        match self.rng.below(4) {
            0 => {
                let answer = disks.call_with_timeout(short, "PartitionDisk", partition).await;
                let _: Option<PartitionDiskResponse> = answer.map(|outcome| outcome.expect("partitioned, or already"));
            }
            1 => {
                let answer = disks.call_with_timeout(short, "ListDiskLocations", ListDiskLocationsRequest {}).await;
                let _: Option<ListDiskLocationsResponse> = answer.map(|outcome| outcome.expect("a list"));
            }
            2 => {
                let answer = mappings.call_with_timeout(long, "NewSmbGlobalMapping", mapping(remote_path)).await;
                let _: Option<NewSmbGlobalMappingResponse> = answer.map(|outcome| outcome.expect("mapped, or already"));
            }
            _ => {
                let request = RemoveSmbGlobalMappingRequest { remote_path };
                let answer = mappings.call_with_timeout(long, "RemoveSmbGlobalMapping", request).await;
                let answer: Option<Result<RemoveSmbGlobalMappingResponse, _>> = answer;
                if let Some(Err(status)) = answer {
                    assert_eq!(status.code(), Code::NotFound, "the share may not have been mapped: {status}");
                }
            }
        }
        if !with_connection {
            let _: PartitionDiskResponse = disks.call_ok("PartitionDisk", partition).await;
        }
    }

    /// Stages, publishes, unpublishes and unstages the volume of this client's disk.
    async fn cycle(&mut self) {
        let disk_number = self.number;
        let staging = format!(r"C:\var\lib\kubelet\plugins\{disk_number}");
        let published = format!(r"C:\var\lib\kubelet\pods\{disk_number}");
        let mut disks = self.connect("Disk").await;
        let mut volumes = self.connect("Volume").await;
        let mut files = self.connect("Filesystem").await;

        if self.rng.below(4) == 0 {
            let _: ListDiskLocationsResponse = disks.call_ok("ListDiskLocations", ListDiskLocationsRequest {}).await;
        }
        let _: PartitionDiskResponse = disks.call_ok("PartitionDisk", PartitionDiskRequest { disk_number }).await;
        let list = ListVolumesOnDiskRequest { disk_number, partition_number: 0 };
        let found: ListVolumesOnDiskResponse = volumes.call_ok("ListVolumesOnDisk", list).await;
        let [volume_id] = &found.volume_ids[..] else {
            panic!("disk {disk_number} does not have one volume: {found:?}")
        };
        let volume_id = volume_id.clone();
        let asked = IsVolumeFormattedRequest { volume_id: volume_id.clone() };
        let state: IsVolumeFormattedResponse = volumes.call_ok("IsVolumeFormatted", asked).await;
        if !state.formatted {
            let format = FormatVolumeRequest { volume_id: volume_id.clone() };
            let _: FormatVolumeResponse = volumes.call_ok("FormatVolume", format).await;
        }
        let _: MkdirResponse = files.call_ok("Mkdir", MkdirRequest { path: staging.clone() }).await;
        let mount = MountVolumeRequest { volume_id: volume_id.clone(), target_path: staging.clone() };
        let _: MountVolumeResponse = volumes.call_ok("MountVolume", mount).await;
        let link = CreateSymlinkRequest { source_path: staging.clone(), target_path: published.clone() };
        let _: CreateSymlinkResponse = files.call_ok("CreateSymlink", link).await;
        let published_path: PathExistsResponse =
            files.call_ok("PathExists", PathExistsRequest { path: published.clone() }).await;
        assert!(published_path.exists, "the published path does not exist");
        if self.rng.below(4) == 0 {
            self.map_share().await;
        }
        let _: RmdirResponse = files.call_ok("Rmdir", RmdirRequest { path: published, force: false }).await;
        let unmount = UnmountVolumeRequest { volume_id, target_path: staging.clone() };
        let _: UnmountVolumeResponse = volumes.call_ok("UnmountVolume", unmount).await;
        let _: RmdirResponse = files.call_ok("Rmdir", RmdirRequest { path: staging, force: false }).await;
    }

    /// Maps this client's share, and removes the mapping again.
    async fn map_share(&mut self) {
        let remote_path = share_of(FAST_SERVER, self.number);
        let mut mappings = self.connect("Smb").await;
        let _: NewSmbGlobalMappingResponse =
            mappings.call_ok("NewSmbGlobalMapping", mapping(remote_path.clone())).await;
        let remove = RemoveSmbGlobalMappingRequest { remote_path };
        let _: RemoveSmbGlobalMappingResponse = mappings.call_ok("RemoveSmbGlobalMapping", remove).await;
    }
}

/// Returns the share of a server that only this client uses.
fn share_of(server: &str, number: u32) -> String {
    format!(r"\\{server}\share{number}")
}

pub(crate) fn mapping(remote_path: String) -> NewSmbGlobalMappingRequest {
    let (username, password) = (r"SOAK\user".to_owned(), "password".to_owned());
    NewSmbGlobalMappingRequest { remote_path, local_path: String::new(), username, password }
}
