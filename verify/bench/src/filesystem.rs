//! PathExists and IsSymlink as one `lstat`.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::PathBuf;

use api::filesystem::v1::filesystem_server;
use api::filesystem::v1::{
    CreateSymlinkRequest, CreateSymlinkResponse, IsSymlinkRequest, IsSymlinkResponse, MkdirRequest, MkdirResponse,
    PathExistsRequest, PathExistsResponse, RmdirRequest, RmdirResponse,
};
use tonic::{Request, Response, Status};

/// The only folder in which paths may be.
const WORKING_DIRECTORY: &str = r"C:\var\lib\kubelet\";

pub(crate) struct Filesystem {
    root: PathBuf,
}

impl Filesystem {
    /// Answers for the files in `root` as if it were the working directory.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns `None` if there is nothing at the path.
    fn metadata(&self, path: &str) -> Result<Option<Metadata>, Status> {
        let below = path
            .strip_prefix(WORKING_DIRECTORY)
            .ok_or_else(|| Status::permission_denied(format!("{path} is not in {WORKING_DIRECTORY}")))?;
        // On the runtime's own thread: a thread pool would cost several times as much as the call, and this server is
        // to show the lowest cost of a tonic server.
        match fs::symlink_metadata(self.root.join(below.replace('\\', "/"))) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[tonic::async_trait]
impl filesystem_server::Filesystem for Filesystem {
    async fn path_exists(&self, request: Request<PathExistsRequest>) -> Result<Response<PathExistsResponse>, Status> {
        let exists = self.metadata(&request.get_ref().path)?.is_some();
        Ok(Response::new(PathExistsResponse { exists }))
    }

    async fn mkdir(&self, _: Request<MkdirRequest>) -> Result<Response<MkdirResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn rmdir(&self, _: Request<RmdirRequest>) -> Result<Response<RmdirResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn create_symlink(
        &self,
        _: Request<CreateSymlinkRequest>,
    ) -> Result<Response<CreateSymlinkResponse>, Status> {
        Err(Status::unimplemented("not measured"))
    }

    async fn is_symlink(&self, request: Request<IsSymlinkRequest>) -> Result<Response<IsSymlinkResponse>, Status> {
        let metadata = self.metadata(&request.get_ref().path)?;
        let metadata = metadata.ok_or_else(|| Status::not_found("the path does not exist"))?;
        Ok(Response::new(IsSymlinkResponse { is_symlink: metadata.is_symlink() }))
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::Filesystem;

    #[test]
    fn only_paths_in_the_working_directory_are_answered() {
        let crate_folder = Filesystem::new(env!("CARGO_MANIFEST_DIR").into());
        assert!(crate_folder.metadata(r"C:\var\lib\kubelet\src\main.rs").expect("a path in it").is_some());
        assert!(crate_folder.metadata(r"C:\var\lib\kubelet\src\missing").expect("a path in it").is_none());
        let refused = crate_folder.metadata(r"C:\Windows").expect_err("a path elsewhere");
        assert_eq!(refused.code(), Code::PermissionDenied);
    }
}
