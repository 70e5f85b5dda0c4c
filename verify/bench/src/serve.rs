//! A minimal tonic server: PathExists as one `lstat`, without the daemon's checks, limits, metrics
//! and log.

use std::error::Error;
use std::io::ErrorKind;
use std::path::PathBuf;

use api::filesystem::v1::filesystem_server::{self, FilesystemServer};
use api::filesystem::v1::{PathExistsRequest, PathExistsResponse};
use tokio::task::JoinSet;
use tonic::{Request, Response, Status};

const WORKING_DIRECTORY: &str = r"C:\var\lib\kubelet\";

pub(crate) async fn run(socket_folder: PathBuf, root: PathBuf) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(&socket_folder)?;
    let mut serving = JoinSet::new();
    // As many endpoints as csi-proxy has, so that their memory compares.
    for version in &api::GROUP_VERSIONS {
        let socket = socket_folder.join(format!("{}.sock", version.pipe()));
        let service = FilesystemServer::new(Filesystem { root: root.clone() });
        serving.spawn(async move {
            imp::serve(service, socket)
                .await
                .map_err(|error| error.to_string())
        });
    }
    while let Some(ended) = serving.join_next().await {
        ended??;
    }
    Ok(())
}

struct Filesystem {
    root: PathBuf,
}

#[tonic::async_trait]
impl filesystem_server::Filesystem for Filesystem {
    async fn path_exists(
        &self,
        request: Request<PathExistsRequest>,
    ) -> Result<Response<PathExistsResponse>, Status> {
        let path = &request.get_ref().path;
        let below = path.strip_prefix(WORKING_DIRECTORY).ok_or_else(|| {
            Status::permission_denied(format!("{path} is not in {WORKING_DIRECTORY}"))
        })?;
        // On the runtime's own thread, which costs least.
        match std::fs::symlink_metadata(self.root.join(below.replace('\\', "/"))) {
            Ok(_) => Ok(Response::new(PathExistsResponse { exists: true })),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Ok(Response::new(PathExistsResponse { exists: false }))
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(unix)]
mod imp {
    use std::convert::Infallible;
    use std::error::Error;
    use std::path::PathBuf;

    use tokio::net::UnixListener;
    use tokio_stream::wrappers::UnixListenerStream;
    use tonic::body::Body;
    use tonic::codegen::Service;
    use tonic::codegen::http::{Request, Response};
    use tonic::transport::Server;

    /// Serves one group-version without tonic's router, which the daemon does not use either.
    pub(super) async fn serve<S>(service: S, socket: PathBuf) -> Result<(), Box<dyn Error>>
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send,
    {
        let listener = UnixListener::bind(socket)?;
        Ok(Server::builder()
            .serve_with_incoming(service, UnixListenerStream::new(listener))
            .await?)
    }
}

#[cfg(not(unix))]
mod imp {
    use std::error::Error;
    use std::path::PathBuf;

    #[expect(clippy::unused_async, reason = "the function for Unix awaits")]
    pub(super) async fn serve<S>(_service: S, _socket: PathBuf) -> Result<(), Box<dyn Error>> {
        Err("tokio has Unix sockets on Unix only".into())
    }
}
