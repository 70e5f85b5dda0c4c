//! Unix sockets.
//!
//! The socket can be opened by its owner only, and so can its folder: creating a socket and narrowing its mode are
//! two steps, and the folder covers the moment between them. A daemon that died leaves its file behind; whether one
//! still listens is told by the kernel's answer to a probe. Two daemons that start together cannot both replace the same stale file,
//! because each holds a lock on the folder while it looks and binds.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::Listener;
use crate::address::{Address, Location};

const OWNER_ONLY_FILE: u32 = 0o600;
const OWNER_ONLY_FOLDER: u32 = 0o700;
const NOT_OWNER: u32 = 0o077;

/// A client's end of a connection.
pub type ClientStream = UnixStream;

/// A socket that is ours. Dropping it removes the file, unless another daemon has put its own there since.
#[derive(Debug)]
pub struct UnixEndpoint {
    listener: UnixListener,
    address: Address,
    path: PathBuf,
    file: FileId,
}

/// Opens the endpoint at `address`, making its folder where there is none. Must be called within a tokio runtime.
///
/// An address at which someone listens is an `AddrInUse` error; a folder that others may enter is refused.
pub fn bind(address: &Address) -> io::Result<UnixEndpoint> {
    open(address).map_err(|error| io::Error::new(error.kind(), format!("cannot listen at {address}: {error}")))
}

/// Connects to the endpoint at `address`.
pub async fn connect(address: &Address) -> io::Result<ClientStream> {
    socket_folder(address)?;
    UnixStream::connect(address.path()).await
}

fn open(address: &Address) -> io::Result<UnixEndpoint> {
    let folder = socket_folder(address)?;
    let path = address.path();
    DirBuilder::new().recursive(true).mode(OWNER_ONLY_FOLDER).create(folder)?;
    let mode = fs::metadata(folder)?.mode();
    if mode & NOT_OWNER != 0 {
        let what = format!("{} is open to others (mode {:o}); make it 700", folder.display(), mode & 0o7777);
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }

    let lock = File::open(folder)?;
    lock.lock()?;
    clear_stale(&path)?;
    let listener = UnixListener::bind(&path)?;
    let file = FileId::of(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(OWNER_ONLY_FILE))?;
    Ok(UnixEndpoint { listener, address: address.clone(), path, file })
}

fn socket_folder(address: &Address) -> io::Result<&Path> {
    match address.location() {
        Location::Directory(folder) if folder.as_os_str().is_empty() => Ok(Path::new(".")),
        Location::Directory(folder) => Ok(folder),
        Location::NamedPipes => {
            Err(io::Error::new(io::ErrorKind::Unsupported, format!("{address} is a named pipe; those are on Windows")))
        }
    }
}

/// Removes the socket of a daemon that is gone.
fn clear_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(file) if !file.file_type().is_socket() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "what is there is not a socket"));
        }
        Ok(_) => {}
    }
    // A datagram cannot be sent to a listener, and being told so takes no place in its queue, which may be full.
    match UnixDatagram::unbound()?.connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        _ => Err(io::Error::new(io::ErrorKind::AddrInUse, "another daemon is listening there")),
    }
}

impl Listener for UnixEndpoint {
    type Stream = UnixStream;

    async fn accept(&mut self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }

    fn address(&self) -> &Address {
        &self.address
    }
}

impl Drop for UnixEndpoint {
    fn drop(&mut self) {
        let still_ours = FileId::of(&self.path).is_ok_and(|file| file == self.file);
        if still_ours {
            // A file that cannot be removed is stale from now on, and the next daemon replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Which file it is, whatever it is called.
#[derive(Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(path: &Path) -> io::Result<Self> {
        fs::symlink_metadata(path).map(|file| Self { device: file.dev(), inode: file.ino() })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn address(&self) -> Address {
            Location::Directory(self.0.path().join("sockets")).address("csi-proxy-disk-v1").unwrap()
        }
    }

    /// Leaves behind what a daemon that was killed leaves behind.
    fn die_at(address: &Address) {
        let Location::Directory(folder) = address.location() else { panic!("{address} is no socket") };
        DirBuilder::new().mode(OWNER_ONLY_FOLDER).create(folder).unwrap();
        drop(std::os::unix::net::UnixListener::bind(address.path()).unwrap());
        assert!(address.path().exists());
    }

    #[tokio::test]
    async fn bytes_cross_a_connection() {
        let folder = Folder::new();
        let mut endpoint = bind(&folder.address()).unwrap();
        let mut client = connect(&folder.address()).await.unwrap();
        let mut server = endpoint.accept().await.unwrap();
        client.write_all(b"ping").await.unwrap();
        let mut bytes = [0; 4];
        server.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"ping");
    }

    #[tokio::test]
    async fn only_the_owner_can_reach_the_socket() {
        let folder = Folder::new();
        let endpoint = bind(&folder.address()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&endpoint.path), 0o600);
        assert_eq!(mode(endpoint.path.parent().unwrap()), 0o700);
    }

    #[tokio::test]
    async fn a_folder_open_to_others_is_refused() {
        let folder = Folder::new();
        let sockets = folder.0.path().join("sockets");
        fs::create_dir(&sockets).unwrap();
        fs::set_permissions(&sockets, Permissions::from_mode(0o755)).unwrap();
        let error = bind(&folder.address()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().contains("is open to others (mode 755)"), "{error}");
    }

    #[tokio::test]
    async fn a_dead_daemons_socket_is_replaced() {
        let folder = Folder::new();
        die_at(&folder.address());
        let _endpoint = bind(&folder.address()).unwrap();
        connect(&folder.address()).await.unwrap();
    }

    #[tokio::test]
    async fn a_live_daemons_socket_is_an_error_that_names_it() {
        let folder = Folder::new();
        let mut first = bind(&folder.address()).unwrap();
        let error = bind(&folder.address()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains(&folder.address().to_string()), "{error}");
        let mut client = connect(&folder.address()).await.unwrap();
        client.write_all(b"!").await.unwrap();
        assert_eq!(first.accept().await.unwrap().read_u8().await.unwrap(), b'!', "its first connection is the client");
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let folder = Folder::new();
        die_at(&folder.address());
        fs::remove_file(folder.address().path()).unwrap();
        fs::write(folder.address().path(), "precious").unwrap();
        assert_eq!(bind(&folder.address()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(folder.address().path()).unwrap(), "precious");
    }

    #[tokio::test]
    async fn the_file_goes_with_its_endpoint() {
        let folder = Folder::new();
        drop(bind(&folder.address()).unwrap());
        assert!(!folder.address().path().exists());
    }

    #[tokio::test]
    async fn the_file_of_a_successor_stays() {
        let folder = Folder::new();
        let first = bind(&folder.address()).unwrap();
        fs::remove_file(folder.address().path()).unwrap();
        let mut second = bind(&folder.address()).unwrap();
        drop(first);
        let _client = connect(&folder.address()).await.unwrap();
        timeout(Duration::from_secs(10), second.accept()).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_pipe_cannot_be_opened_here() {
        let pipe = Location::NamedPipes.address("csi-proxy-disk-v1").unwrap();
        assert_eq!(bind(&pipe).unwrap_err().kind(), io::ErrorKind::Unsupported);
        assert_eq!(connect(&pipe).await.unwrap_err().kind(), io::ErrorKind::Unsupported);
    }
}
