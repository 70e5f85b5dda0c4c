//! The file operations of kubelet and of a driver's container.

use std::fmt::Display;

use crate::control_api::{
    ContainerFiles, FileEntry, FileKind, ListDirectoryRequest, ListDirectoryResponse,
    MakeDirectoryRequest, MakeDirectoryResponse, MakeSymlinkRequest, MakeSymlinkResponse,
    ReadFileRequest, ReadFileResponse, ReadLinkRequest, ReadLinkResponse, RemoveRequest,
    RemoveResponse, RenameRequest, RenameResponse, StatRequest, StatResponse, WriteFileRequest,
    WriteFileResponse,
};
use os::{OsError, OsResult};
use os_sim::{FileView, Sim};
use tonic::{Code, Request, Response, Status};

/// The file system of a node.
#[derive(Debug)]
pub(super) struct Files(pub(super) Sim);

type Answer<T> = Result<Response<T>, Status>;

impl Files {
    /// Describes the file `view` at `path`.
    fn entry(&self, path: &str, view: FileView) -> OsResult<FileEntry> {
        let (kind, size) = match &view.kind {
            os_sim::FileKind::Directory => (FileKind::Directory, 0),
            os_sim::FileKind::File(data) => (FileKind::File, data.len()),
            os_sim::FileKind::Symlink(_) => (FileKind::Symlink, 0),
            os_sim::FileKind::MountPoint(_) => (FileKind::MountPoint, 0),
            os_sim::FileKind::Reparse(_) => (FileKind::Other, 0),
        };
        let is_link = matches!(kind, FileKind::Symlink | FileKind::MountPoint);
        let target = if is_link {
            self.0.external().read_link(path)?
        } else {
            String::new()
        };
        Ok(FileEntry {
            name: view.path,
            kind: kind.into(),
            size: size.try_into().unwrap_or(u64::MAX),
            target,
        })
    }

    fn list(&self, directory: &str) -> OsResult<Vec<FileEntry>> {
        let views = self.0.entries(directory)?.into_iter();
        let path =
            |view: &FileView| format!(r"{}\{}", directory.trim_end_matches(['\\', '/']), view.path);
        views.map(|view| self.entry(&path(&view), view)).collect()
    }

    /// Describes what is at a path, or at the end of the links at that path.
    fn stat(&self, path: &str, follow: bool) -> OsResult<FileEntry> {
        self.entry(path, self.0.entry(path, follow)?)
    }
}

#[tonic::async_trait]
impl ContainerFiles for Files {
    async fn make_directory(
        &self,
        request: Request<MakeDirectoryRequest>,
    ) -> Answer<MakeDirectoryResponse> {
        let path = path(request.into_inner().path)?;
        self.0
            .external()
            .mkdir_all(&path)
            .map_err(|error| cannot(format!("make the directory {path}"), error))?;
        Ok(Response::new(MakeDirectoryResponse {}))
    }

    async fn write_file(&self, request: Request<WriteFileRequest>) -> Answer<WriteFileResponse> {
        let request = request.into_inner();
        let path = path(request.path)?;
        let written = self.0.external().write(&path, request.data);
        written.map_err(|error| cannot(format!("write the file {path}"), error))?;
        Ok(Response::new(WriteFileResponse {}))
    }

    async fn read_file(&self, request: Request<ReadFileRequest>) -> Answer<ReadFileResponse> {
        let path = path(request.into_inner().path)?;
        let data = self
            .0
            .external()
            .read(&path)
            .map_err(|error| cannot(format!("read the file {path}"), error))?;
        Ok(Response::new(ReadFileResponse { data }))
    }

    async fn list_directory(
        &self,
        request: Request<ListDirectoryRequest>,
    ) -> Answer<ListDirectoryResponse> {
        let path = path(request.into_inner().path)?;
        let entries = self
            .list(&path)
            .map_err(|error| cannot(format!("list the directory {path}"), error))?;
        Ok(Response::new(ListDirectoryResponse { entries }))
    }

    async fn stat(&self, request: Request<StatRequest>) -> Answer<StatResponse> {
        let StatRequest {
            path: requested,
            follow,
        } = request.into_inner();
        let path = path(requested)?;
        let entry = self
            .stat(&path, follow)
            .map_err(|error| cannot(format!("describe {path}"), error));
        Ok(Response::new(match entry {
            Ok(entry) => StatResponse {
                exists: true,
                entry: Some(entry),
            },
            Err(status) if status.code() == Code::NotFound => StatResponse {
                exists: false,
                entry: None,
            },
            Err(status) => return Err(status),
        }))
    }

    async fn read_link(&self, request: Request<ReadLinkRequest>) -> Answer<ReadLinkResponse> {
        let path = path(request.into_inner().path)?;
        let target = self.0.external().read_link(&path);
        let target = target.map_err(|error| cannot(format!("read the link {path}"), error))?;
        Ok(Response::new(ReadLinkResponse { target }))
    }

    async fn make_symlink(
        &self,
        request: Request<MakeSymlinkRequest>,
    ) -> Answer<MakeSymlinkResponse> {
        let request = request.into_inner();
        let (path, target) = (path(request.path)?, request.target);
        let made = self.0.external().symlink(&path, &target);
        made.map_err(|error| cannot(format!("make the symbolic link {path} to {target}"), error))?;
        Ok(Response::new(MakeSymlinkResponse {}))
    }

    async fn rename(&self, request: Request<RenameRequest>) -> Answer<RenameResponse> {
        let request = request.into_inner();
        let (from, to) = (path(request.path)?, path(request.new_path)?);
        let renamed = self.0.external().rename(&from, &to);
        renamed.map_err(|error| cannot(format!("rename {from} to {to}"), error))?;
        Ok(Response::new(RenameResponse {}))
    }

    async fn remove(&self, request: Request<RemoveRequest>) -> Answer<RemoveResponse> {
        let request = request.into_inner();
        let path = path(request.path)?;
        let files = self.0.external();
        let removed = if request.recursive {
            files.remove_all(&path)
        } else {
            files.remove(&path)
        };
        removed.map_err(|error| cannot(format!("remove {path}"), error))?;
        Ok(Response::new(RemoveResponse {}))
    }
}

/// Returns the path of a request, which must not be empty: an empty one would stand for `C:\`.
fn path(path: String) -> Result<String, Status> {
    if path.is_empty() {
        Err(Status::invalid_argument("the path is missing"))
    } else {
        Ok(path)
    }
}

/// Returns the status of an operation that failed with `error`, such as "read C:\file".
fn cannot(what: impl Display, error: OsError) -> Status {
    let code = match error {
        OsError::FILE_NOT_FOUND
        | OsError::PATH_NOT_FOUND
        | OsError::BAD_NETPATH
        | OsError::BAD_NET_NAME => Code::NotFound,
        OsError::ALREADY_EXISTS => Code::AlreadyExists,
        OsError::INVALID_NAME => Code::InvalidArgument,
        _ => Code::FailedPrecondition,
    };
    Status::new(code, format!("cannot {what}: {error}"))
}
