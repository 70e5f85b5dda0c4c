//! The SMB group.

use api::smb::v1;

use super::Client;
use crate::credentials::Credentials;
use crate::error::Error;

/// SMB global mappings of the node: shares that every user of the node, and so every container, can
/// reach.
#[derive(Clone, Debug)]
pub struct Smb(pub(crate) Client);

impl Smb {
    /// Maps the share on which `remote_path` lies, `\\host\share` or a path below it, for all users
    /// of the node. With a `local_path`, creates a link to `remote_path` there, by the rules of
    /// [`create_symlink`](crate::Filesystem::create_symlink). Without credentials, the share must
    /// allow guests.
    ///
    /// An existing mapping that can be read is reused. A mapping that the server refuses is
    /// replaced, with these credentials.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if `remote_path` has no host or no
    /// share; [`FailedPrecondition`](crate::ErrorKind::FailedPrecondition) if the server cannot be
    /// reached, or if another user has mapped the share, since Windows has one user for each share.
    pub async fn new_smb_global_mapping(
        &self,
        remote_path: &str,
        local_path: Option<&str>,
        credentials: Option<Credentials<'_>>,
    ) -> Result<(), Error> {
        let Credentials { username, password } = credentials.unwrap_or(Credentials {
            username: "",
            password: "",
        });
        let request = v1::NewSmbGlobalMappingRequest {
            remote_path: remote_path.to_owned(),
            local_path: local_path.unwrap_or_default().to_owned(),
            username: username.to_owned(),
            password: password.to_owned(),
        };
        self.0.change(request).await.map(drop)
    }

    /// Removes the mapping of the share on which `remote_path` lies. Links to the share remain.
    ///
    /// A change: [repeated](crate#retries) only if the request was not sent.
    ///
    /// # Errors
    ///
    /// [`NotFound`](crate::ErrorKind::NotFound) if the share is not mapped.
    pub async fn remove_smb_global_mapping(&self, remote_path: &str) -> Result<(), Error> {
        self.0
            .change(v1::RemoveSmbGlobalMappingRequest {
                remote_path: remote_path.to_owned(),
            })
            .await
            .map(drop)
    }
}
