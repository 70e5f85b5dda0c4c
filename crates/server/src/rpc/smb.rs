//! The conversions of the messages of the SMB group.

use api::smb::v1;
use storage_ops::{
    Config, HostPath, NewSmbGlobalMapping, OperationResult, RemoveSmbGlobalMapping, UncPath,
};

use crate::rpc::convert::{self, IntoOperation};

impl IntoOperation for v1::NewSmbGlobalMappingRequest {
    type Operation = NewSmbGlobalMapping;

    fn operation(self, _: &Config) -> OperationResult<NewSmbGlobalMapping> {
        let password = convert::secret(self.password, "the password")?;
        let remote = UncPath::parse(&self.remote_path)?;
        let local = if self.local_path.is_empty() {
            None
        } else {
            Some(HostPath::parse(&self.local_path)?)
        };
        Ok(NewSmbGlobalMapping {
            remote,
            local,
            username: convert::text(self.username, "the user name")?,
            password,
        })
    }
}

impl IntoOperation for v1::RemoveSmbGlobalMappingRequest {
    type Operation = RemoveSmbGlobalMapping;

    fn operation(self, _: &Config) -> OperationResult<RemoveSmbGlobalMapping> {
        Ok(RemoveSmbGlobalMapping {
            remote: UncPath::parse(&self.remote_path)?,
        })
    }
}
