//! Unix sockets.
//!
//! Only the owner can open the socket and its directory. Creating a socket and restricting its mode
//! are two steps, and the directory protects the socket between them. A daemon that died leaves its
//! file behind; the kernel's answer to a probe shows whether a daemon still listens. Two daemons
//! that start together cannot both replace the same stale file, because each of them locks the
//! directory while it probes and binds.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::Listener;
use crate::address::{Address, Location};

const OWNER_ONLY_FILE: u32 = 0o600;
const OWNER_ONLY_DIRECTORY: u32 = 0o700;
const NOT_OWNER: u32 = 0o077;

/// The client's end of a connection.
pub type ClientStream = UnixStream;

/// A listening socket. Dropping the endpoint removes the file of the socket, unless another daemon
/// has replaced the file.
#[derive(Debug)]
pub struct UnixEndpoint {
    listener: UnixListener,
    address: Address,
    path: PathBuf,
    file: FileId,
}

/// Opens the endpoint at `address`, and creates its directory if that does not exist. Must run in a
/// tokio runtime.
///
/// Fails with `AddrInUse` if another daemon listens there, and with `PermissionDenied` if other
/// users can enter the directory.
pub fn bind(address: &Address) -> io::Result<UnixEndpoint> {
    open(address, check_private)
}

/// Opens the endpoint at `address` like [`bind`], also in a directory that other users can enter,
/// for simulators and tests. They cannot open the socket, except in the moment before its mode is
/// set.
pub fn bind_in_any_directory(address: &Address) -> io::Result<UnixEndpoint> {
    open(address, |_| Ok(()))
}

/// Connects to the endpoint at `address`.
pub async fn connect(address: &Address) -> io::Result<ClientStream> {
    socket_directory(address)?;
    UnixStream::connect(address.path()).await
}

fn open(
    address: &Address,
    check: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<UnixEndpoint> {
    let opened = try_open(address, check);
    opened.map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen at {address}: {error}"))
    })
}

/// Refuses a directory that other users can enter.
fn check_private(directory: &Path) -> io::Result<()> {
    let mode = fs::metadata(directory)?.mode();
    if mode & NOT_OWNER == 0 {
        return Ok(());
    }
    let what = format!(
        "other users can open {} (mode {:o}); set its mode to 700",
        directory.display(),
        mode & 0o7777
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

fn try_open(
    address: &Address,
    check: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<UnixEndpoint> {
    let directory = socket_directory(address)?;
    let path = address.path();
    DirBuilder::new()
        .recursive(true)
        .mode(OWNER_ONLY_DIRECTORY)
        .create(directory)?;
    check(directory)?;

    let lock = File::open(directory)?;
    lock.lock()?;
    clear_stale(&path)?;
    let listener = UnixListener::bind(&path)?;
    let file = FileId::of(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(OWNER_ONLY_FILE))?;
    Ok(UnixEndpoint {
        listener,
        address: address.clone(),
        path,
        file,
    })
}

fn socket_directory(address: &Address) -> io::Result<&Path> {
    match address.location() {
        Location::Directory(directory) if directory.as_os_str().is_empty() => Ok(Path::new(".")),
        Location::Directory(directory) => Ok(directory),
        Location::NamedPipes => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("{address} is a named pipe, which exists only on Windows"),
        )),
    }
}

/// Removes the socket file of a daemon that no longer runs.
fn clear_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the file exists and is not a socket; remove it",
            ));
        }
        Ok(_) => {}
    }
    // A datagram socket cannot connect to a listener. The error shows that the listener exists, and
    // the attempt uses no entry of its backlog, which may be full.
    match UnixDatagram::unbound()?.connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        _ => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another daemon is listening there",
        )),
    }
}

impl Listener for UnixEndpoint {
    type Stream = UnixStream;

    async fn accept(&mut self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }

    fn client_process(stream: &UnixStream) -> Option<u32> {
        u32::try_from(stream.peer_cred().ok()?.pid()?).ok()
    }

    fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for UnixEndpoint {
    fn drop(&mut self) {
        let is_ours = FileId::of(&self.path).is_ok_and(|file| file == self.file);
        if is_ours {
            // A file that cannot be removed is stale, and the next daemon replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The identity of a file, independent of its path.
#[derive(Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(path: &Path) -> io::Result<Self> {
        fs::symlink_metadata(path).map(|file| Self {
            device: file.dev(),
            inode: file.ino(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    use super::*;

    struct Directory(tempfile::TempDir);

    impl Directory {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn address(&self) -> Address {
            Location::Directory(self.0.path().join("sockets")).address("csi-proxy-disk-v1")
        }
    }

    /// Leaves a stale socket file, as a killed daemon does.
    fn leave_stale_file(address: &Address) {
        let Location::Directory(directory) = address.location() else {
            panic!("{address} is not a socket")
        };
        DirBuilder::new()
            .mode(OWNER_ONLY_DIRECTORY)
            .create(directory)
            .unwrap();
        drop(std::os::unix::net::UnixListener::bind(address.path()).unwrap());
        assert!(address.path().exists());
    }

    #[tokio::test]
    async fn bytes_cross_a_connection() {
        let directory = Directory::new();
        let mut endpoint = bind(&directory.address()).unwrap();
        let mut client = connect(&directory.address()).await.unwrap();
        let mut server = endpoint.accept().await.unwrap();
        client.write_all(b"ping").await.unwrap();
        let mut bytes = [0; 4];
        server.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"ping");
    }

    #[tokio::test]
    async fn only_the_owner_can_reach_the_socket() {
        let directory = Directory::new();
        let endpoint = bind(&directory.address()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&endpoint.path), 0o600);
        assert_eq!(mode(endpoint.path.parent().unwrap()), 0o700);
    }

    #[tokio::test]
    async fn a_directory_that_other_users_can_open_is_refused() {
        let directory = Directory::new();
        let sockets = directory.0.path().join("sockets");
        fs::create_dir(&sockets).unwrap();
        fs::set_permissions(&sockets, Permissions::from_mode(0o755)).unwrap();
        let error = bind(&directory.address()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        texts::seen!(error.to_string());
        assert!(
            error
                .to_string()
                .contains("(mode 755); set its mode to 700"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn the_stale_socket_of_a_dead_daemon_is_replaced() {
        let directory = Directory::new();
        leave_stale_file(&directory.address());
        let _endpoint = bind(&directory.address()).unwrap();
        connect(&directory.address()).await.unwrap();
    }

    #[tokio::test]
    async fn the_socket_of_a_live_daemon_is_an_error_that_names_it() {
        let directory = Directory::new();
        let mut first = bind(&directory.address()).unwrap();
        let error = bind(&directory.address()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        texts::seen!(error.to_string());
        assert!(
            error.to_string().contains(&directory.address().to_string()),
            "{error}"
        );
        let mut client = connect(&directory.address()).await.unwrap();
        client.write_all(b"!").await.unwrap();
        assert_eq!(
            first.accept().await.unwrap().read_u8().await.unwrap(),
            b'!',
            "the first connection is the client's"
        );
    }

    #[tokio::test]
    async fn a_file_that_is_not_a_socket_is_not_removed() {
        let directory = Directory::new();
        leave_stale_file(&directory.address());
        fs::remove_file(directory.address().path()).unwrap();
        fs::write(directory.address().path(), "precious").unwrap();
        let error = bind(&directory.address()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        texts::seen!(error.to_string());
        assert_eq!(
            fs::read_to_string(directory.address().path()).unwrap(),
            "precious"
        );
    }

    #[tokio::test]
    async fn dropping_the_endpoint_removes_its_file() {
        let directory = Directory::new();
        drop(bind(&directory.address()).unwrap());
        assert!(!directory.address().path().exists());
    }

    #[tokio::test]
    async fn dropping_the_endpoint_keeps_the_file_of_a_successor() {
        let directory = Directory::new();
        let first = bind(&directory.address()).unwrap();
        fs::remove_file(directory.address().path()).unwrap();
        let mut second = bind(&directory.address()).unwrap();
        drop(first);
        let _client = connect(&directory.address()).await.unwrap();
        timeout(Duration::from_secs(10), second.accept())
            .await
            .unwrap()
            .unwrap();
    }

    #[tokio::test]
    async fn a_named_pipe_cannot_be_opened_on_unix() {
        let pipe = Location::NamedPipes.address("csi-proxy-disk-v1");
        for error in [bind(&pipe).unwrap_err(), connect(&pipe).await.unwrap_err()] {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            texts::seen!(error.to_string());
        }
    }
}
