//! A client that repeats the cycle of a volume, and misbehaves in between as clients do in
//! production.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tonic::Code;

use crate::call_counts::{CallCounts, SentCall};
use crate::daemon::{DELAYED_SERVER, FAST_SERVER};
use crate::frames;
use crate::rng::Rng;
use crate::run_control::RunControl;
use crate::service_client::{Connections, ServiceClient, Services, encoded};

/// The number of connections without a complete request that a client keeps open.
const SILENT: usize = 4;

pub(crate) struct Client {
    number: u32,
    services: Services,
    connections: Connections,
    counts: Arc<CallCounts>,
    rng: Rng,
    silent: Vec<DuplexStream>,
}

impl Client {
    pub(crate) fn new(
        number: u32,
        seed: u64,
        services: Services,
        connections: Connections,
        counts: Arc<CallCounts>,
    ) -> Self {
        Self {
            number,
            services,
            connections,
            counts,
            rng: Rng::new(seed),
            silent: Vec::new(),
        }
    }

    /// Runs cycles until the run stops, and returns their number.
    pub(crate) async fn run(mut self, control: Arc<RunControl>) -> u64 {
        self.open_silent_connections().await;
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

    /// Opens all silent connections at the start, so that their number does not grow.
    pub(crate) async fn open_silent_connections(&mut self) {
        for _ in 0..SILENT {
            let silent = self.stream().await;
            self.leave_open(silent);
        }
    }

    /// Returns the name of the service of a group.
    fn service(&self, group: &str) -> &'static str {
        self.services
            .into_iter()
            .find(|service| service.ends_with(group))
            .expect("a group that the client uses")
    }

    async fn connect(&self, group: &str) -> ServiceClient {
        ServiceClient::connect(&self.connections, self.service(group), &self.counts).await
    }

    async fn stream(&self) -> DuplexStream {
        self.connections
            .open(self.service("Filesystem"))
            .await
            .expect("the daemon accepts every connection")
    }

    pub(crate) async fn misbehave(&mut self) {
        match self.rng.below(6) {
            0 => {
                let silent = self.stream().await;
                self.leave_open(silent);
            }
            1 => self.send_partial_request().await,
            2 => {
                let large = json!({"path": "x".repeat(1 << 20)});
                let outcome = self
                    .connect("Filesystem")
                    .await
                    .call("PathExists", large)
                    .await;
                let status = outcome.expect_err("a request that is too large");
                assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            }
            3 => self.cancel(false).await,
            4 => self.cancel(true).await,
            _ => {}
        }
    }

    fn leave_open(&mut self, stream: DuplexStream) {
        self.silent.push(stream);
        if self.silent.len() > SILENT {
            self.silent.remove(0);
        }
    }

    /// Sends the beginning of a request, and then closes the connection or leaves it open.
    async fn send_partial_request(&mut self) {
        let service = self.service("Filesystem");
        let call = format!("{service}/PathExists");
        let message = encoded(
            service,
            "PathExists",
            &json!({"path": r"C:\var\lib\kubelet"}),
        );
        let request = frames::request(&call, &message);
        let length = 1 + self
            .rng
            .below(u64::try_from(request.len() - 1).expect("small"));
        let mut stream = self.stream().await;
        // If the headers are complete, the daemon starts the call, and ends it when the connection
        // is closed.
        drop(SentCall::new(&self.counts, &call));
        stream
            .write_all(&request[..usize::try_from(length).expect("small")])
            .await
            .expect("the daemon reads");
        if self.rng.below(2) == 0 {
            self.leave_open(stream);
        }
    }

    /// Cancels a call: only the call, after which the connection is used again, or with the
    /// connection.
    async fn cancel(&mut self, with_connection: bool) {
        let short = self.rng.duration_below(Duration::from_millis(10));
        let long = self.rng.duration_below(Duration::from_millis(100));
        let share = share_of(DELAYED_SERVER, self.number);
        let partition = json!({"disk_number": self.number});
        let (disks, mappings) = (self.connect("Disk").await, self.connect("Smb").await);
        let outcome = match self.rng.below(4) {
            0 => {
                disks
                    .call_with_timeout(short, "PartitionDisk", partition.clone())
                    .await
            }
            1 => {
                disks
                    .call_with_timeout(short, "ListDiskLocations", json!({}))
                    .await
            }
            2 => {
                mappings
                    .call_with_timeout(long, "NewSmbGlobalMapping", mapping(&share))
                    .await
            }
            _ => {
                mappings
                    .call_with_timeout(
                        long,
                        "RemoveSmbGlobalMapping",
                        json!({"remote_path": share}),
                    )
                    .await
            }
        };
        if let Some(Err(status)) = outcome {
            assert_eq!(
                status.code(),
                Code::NotFound,
                "only the share may be missing: {status}"
            );
            assert!(status.message().contains("share"), "{status}");
        }
        if !with_connection {
            disks.call_ok("PartitionDisk", partition).await;
        }
    }

    /// Stages, publishes, unpublishes and unstages the volume of this client's disk.
    pub(crate) async fn cycle(&mut self) {
        let disk_number = self.number;
        let staging = format!(r"C:\var\lib\kubelet\plugins\{disk_number}");
        let published = format!(r"C:\var\lib\kubelet\pods\{disk_number}");
        let disks = self.connect("Disk").await;
        let volumes = self.connect("Volume").await;
        let files = self.connect("Filesystem").await;

        if self.rng.below(4) == 0 {
            disks.call_ok("ListDiskLocations", json!({})).await;
        }
        disks
            .call_ok("PartitionDisk", json!({"disk_number": disk_number}))
            .await;
        let list = json!({"disk_number": disk_number, "partition_number": 0});
        let found = volumes.call_ok("ListVolumesOnDisk", list).await;
        let [volume_id] = &found["volume_ids"].as_array().expect("a list")[..] else {
            panic!("disk {disk_number} does not have one volume: {found}")
        };
        let volume = json!({"volume_id": volume_id});
        if volumes.call_ok("IsVolumeFormatted", volume.clone()).await["formatted"] == false {
            volumes.call_ok("FormatVolume", volume).await;
        }
        let mount = json!({"volume_id": volume_id, "target_path": staging});
        files.call_ok("Mkdir", json!({"path": staging})).await;
        volumes.call_ok("MountVolume", mount.clone()).await;
        files
            .call_ok(
                "CreateSymlink",
                json!({"source_path": staging, "target_path": published}),
            )
            .await;
        let exists = files
            .call_ok("PathExists", json!({"path": published}))
            .await;
        assert_eq!(exists["exists"], true, "the published path does not exist");
        if self.rng.below(4) == 0 {
            self.map_share().await;
        }
        files
            .call_ok("Rmdir", json!({"path": published, "force": false}))
            .await;
        volumes.call_ok("UnmountVolume", mount).await;
        files
            .call_ok("Rmdir", json!({"path": staging, "force": false}))
            .await;
    }

    /// Maps this client's share, and removes the mapping again.
    async fn map_share(&mut self) {
        let share = share_of(FAST_SERVER, self.number);
        let mappings = self.connect("Smb").await;
        mappings
            .call_ok("NewSmbGlobalMapping", mapping(&share))
            .await;
        mappings
            .call_ok("RemoveSmbGlobalMapping", json!({"remote_path": share}))
            .await;
    }
}

/// Returns the share of a server that only this client uses.
fn share_of(server: &str, number: u32) -> String {
    format!(r"\\{server}\share{number}")
}

/// Returns a request to map a share.
fn mapping(share: &str) -> Value {
    json!({"remote_path": share, "local_path": "", "username": r"SOAK\user", "password": "password"})
}
