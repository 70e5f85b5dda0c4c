//! The filesystem group.

use api::filesystem::{v1, v2alpha1};

use super::Client;
use crate::error::Error;

/// Directories and links of the node, in the working directories of csi-proxy: kubelet's directory
/// and those that its administrator has added.
///
/// A path is absolute, with a drive, as in `C:\var\lib\kubelet\pods`. Other paths fail with
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument), paths outside the working directories
/// with [`PermissionDenied`](crate::ErrorKind::PermissionDenied), and paths through a link with
/// [`FailedPrecondition`](crate::ErrorKind::FailedPrecondition).
#[derive(Clone, Debug)]
pub struct Filesystem(pub(crate) Client);

/// A symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symlink<'a> {
    /// Where the link is: `target_path` of the RPC.
    pub path: &'a str,
    /// The directory or file that the link leads to: `source_path` of the RPC.
    pub leads_to: &'a str,
}

impl Filesystem {
    /// Returns whether the path exists. A link exists even if its target does not. False if the
    /// parent is missing.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    pub async fn path_exists(&self, path: &str) -> Result<bool, Error> {
        let response = self
            .0
            .read(v1::PathExistsRequest {
                path: path.to_owned(),
            })
            .await?;
        Ok(response.exists)
    }

    /// Returns whether the path is a link or a mount point whose target exists. The path may lie
    /// outside the working directories, may lack the drive and may have forward slashes.
    ///
    /// A read: [repeated](crate#retries) while the daemon is unavailable.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the path does not exist.
    pub async fn is_symlink(&self, path: &str) -> Result<bool, Error> {
        let response = self
            .0
            .read(v1::IsSymlinkRequest {
                path: path.to_owned(),
            })
            .await?;
        Ok(response.is_symlink)
    }

    /// Creates the directory and its missing parents. Succeeds if the directory, or a link to one,
    /// exists already.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    pub async fn mkdir(&self, path: &str) -> Result<(), Error> {
        self.0
            .change(v1::MkdirRequest {
                path: path.to_owned(),
            })
            .await
            .map(drop)
    }

    /// Removes an empty directory, a link or a mount point. The target of a link and the volume of
    /// a mount point are never touched.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the path does not exist and
    /// [`FailedPrecondition`](crate::ErrorKind::FailedPrecondition) if the directory is not empty.
    pub async fn rmdir(&self, path: &str) -> Result<(), Error> {
        self.0
            .change(v1::RmdirRequest {
                path: path.to_owned(),
                force: false,
            })
            .await
            .map(drop)
    }

    /// Removes a directory with its contents, a link or a mount point, as Rmdir does with `force`.
    /// Links are removed and not followed. A missing path is a success.
    ///
    /// Warning: data of a pod may be in the directory. A driver needs [`rmdir`](Self::rmdir) for
    /// what it has created.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    pub async fn rmdir_all(&self, path: &str) -> Result<(), Error> {
        self.0
            .change(v1::RmdirRequest {
                path: path.to_owned(),
                force: true,
            })
            .await
            .map(drop)
    }

    /// Removes the contents of the directory or of the volume that is mounted there, and keeps the
    /// directory. Links in it are removed and not followed.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`Unimplemented`](crate::ErrorKind::Unimplemented) if the node does not serve filesystem
    /// v2alpha1.
    pub async fn rmdir_contents(&self, path: &str) -> Result<(), Error> {
        self.0
            .change(v2alpha1::RmdirContentsRequest {
                path: path.to_owned(),
            })
            .await
            .map(drop)
    }

    /// Creates a link. It is a directory link unless it leads to a file. Succeeds if the same link
    /// exists already, except with the csi-proxy written in Go.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) if another object exists at the path of
    /// the link; [`NotFound`](crate::ErrorKind::NotFound) if its parent does not exist.
    pub async fn create_symlink(&self, link: Symlink<'_>) -> Result<(), Error> {
        let (source_path, target_path) = (link.leads_to.to_owned(), link.path.to_owned());
        self.0
            .change(v1::CreateSymlinkRequest {
                source_path,
                target_path,
            })
            .await
            .map(drop)
    }
}
