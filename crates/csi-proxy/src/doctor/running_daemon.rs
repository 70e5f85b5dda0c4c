//! What the status pages of the running daemon tell: its flags, and the disks that it has last seen.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use ::doctor::{SeenDisk, System};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::flags::Flags;
use crate::flags::table::TABLE;

/// The port at which the manifests let the daemon answer.
const DEFAULT_PORT: &str = "9818";
/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum bytes of an answer.
const MAX_ANSWER: u64 = 16 << 20;

/// The running daemon.
#[derive(Debug, PartialEq)]
pub(super) struct RunningDaemon {
    /// The address of its status pages.
    pub(super) address: String,
    /// Its flags, as a user would write them.
    pub(super) flags: Vec<String>,
    /// The disks that it has last seen.
    pub(super) disks: Vec<SeenDisk>,
}

/// A part of `/statusz?format=json`.
#[derive(Deserialize)]
struct Status {
    process_id: u32,
    #[serde(default)]
    last_seen: LastSeen,
}

/// A part of `last_seen` in the status.
#[derive(Default, Deserialize)]
struct LastSeen {
    disks: Vec<SeenDisk>,
}

/// Reads the status pages of the process that serves one of `pipes`. Any program may listen at the
/// address, so an answer of another process is ignored.
pub(super) fn read(known: &Flags, pipes: &[String], system: &dyn System) -> Option<RunningDaemon> {
    let mut pipes = pipes.iter().filter_map(|name| system.pipe(name).ok());
    let server = pipes.next()?.process;
    let addresses = known.metrics_addresses.iter();
    let ports = addresses.filter_map(|address| Some(address.rsplit_once(':')?.1));
    for port in ports.chain([DEFAULT_PORT]) {
        // The daemon answers only requests for the loopback address.
        let address = format!("127.0.0.1:{port}");
        let status: Option<Status> = answer(&address, "/statusz?format=json");
        let Some(status) = status.filter(|status| status.process_id == server) else {
            continue;
        };
        let flags: BTreeMap<String, String> = answer(&address, "/flagz?format=json")?;
        let names: Vec<_> = TABLE
            .iter()
            .flat_map(|section| section.flags)
            .map(|flag| flag.name)
            .collect();
        let flags = flags
            .iter()
            .filter(|(name, value)| names.contains(&name.as_str()) && !value.is_empty())
            .map(|(name, value)| format!("-{name}={value}"));
        return Some(RunningDaemon {
            flags: flags.collect(),
            disks: status.last_seen.disks,
            address,
        });
    }
    None
}

/// Reads a page with a JSON value.
fn answer<T: DeserializeOwned>(address: &str, page: &str) -> Option<T> {
    let mut stream = TcpStream::connect_timeout(&address.parse().ok()?, LIMIT).ok()?;
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    write!(
        stream,
        "GET {page} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut text = String::new();
    stream.take(MAX_ANSWER).read_to_string(&mut text).ok()?;
    let (_, body) = text.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use ::doctor::{Pipe, ServiceRegistration, System};
    use os::{OsError, OsResult};

    use super::read;
    use crate::flags::Flags;

    /// A system on which one process serves the pipes.
    struct ServedBy(u32);

    impl System for ServedBy {
        fn build(&self) -> OsResult<u32> {
            Err(OsError::ACCESS_DENIED)
        }

        fn pipe(&self, _name: &str) -> OsResult<Pipe> {
            Ok(Pipe {
                process: self.0,
                program: None,
                access: Err(OsError::ACCESS_DENIED),
            })
        }

        fn service(&self, _name: &str) -> OsResult<ServiceRegistration> {
            Err(OsError::SERVICE_DOES_NOT_EXIST)
        }
    }

    #[test]
    fn only_the_process_that_serves_the_pipes_tells_the_flags() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                // A client whose request was not read to its end would get a reset instead of a body.
                let mut request = String::new();
                let mut lines = BufReader::new(&stream);
                while !request.ends_with("\r\n\r\n") {
                    lines.read_line(&mut request).expect("a request");
                }
                let body = if request.contains("statusz") {
                    r#"{"process_id": 7, "last_seen": {"disks": [{"disk": 2, "serial_number": "a", "lun": "0", "seconds_ago": 5.0}]}}"#
                } else {
                    r#"{"kubelet-path": "D:\\k", "node": "sim.toml", "log_dir": ""}"#
                };
                write!(stream, "HTTP/1.0 200 OK\r\n\r\n{body}").expect("a client");
            }
        });
        let known = Flags {
            metrics_addresses: vec![address.clone()],
            ..Flags::default()
        };
        let pipes = ["csi-proxy-disk-v1".to_owned()];
        let found = read(&known, &pipes, &ServedBy(7)).expect("a daemon");
        assert_eq!(
            (found.address, found.flags, found.disks[0].disk),
            (address, vec![r"-kubelet-path=D:\k".to_owned()], 2)
        );
        assert_eq!(read(&known, &pipes, &ServedBy(8)), None);
        assert_eq!(read(&known, &[], &ServedBy(7)), None);
    }
}
