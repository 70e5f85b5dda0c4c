//! The conversions of the messages of the SMB group.

use api::smb::v1;
use storage_ops::{
    Config, HostPath, NewSmbGlobalMapping, OperationResult, RemoveSmbGlobalMapping, SecretText,
    SmbUser, UncPath,
};

use crate::rpc::convert::IntoOperation;

impl IntoOperation for v1::NewSmbGlobalMappingRequest {
    type Operation = NewSmbGlobalMapping;

    fn operation(self, _: &Config) -> OperationResult<NewSmbGlobalMapping> {
        let password = SecretText::parse(self.password, "the password")?;
        let remote = UncPath::parse(&self.remote_path)?;
        let local = if self.local_path.is_empty() {
            None
        } else {
            Some(HostPath::parse(&self.local_path)?)
        };
        Ok(NewSmbGlobalMapping {
            remote,
            local,
            user: SmbUser::parse(&self.username)?,
            password,
        })
    }
}

impl IntoOperation for v1::RemoveSmbGlobalMappingRequest {
    type Operation = RemoveSmbGlobalMapping;

    fn operation(self, _: &Config) -> OperationResult<RemoveSmbGlobalMapping> {
        // NetApp Trident sends `\host\share`.
        Ok(RemoveSmbGlobalMapping {
            remote: UncPath::parse_loose(&self.remote_path)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use api::smb::v1;
    use storage_ops::{Config, UncPath};

    use crate::rpc::convert::IntoOperation as _;

    #[test]
    fn contract_29_a_path_with_a_single_separator_names_a_share_to_remove_but_not_to_map() {
        let config = Config::default();
        let remote_path = r"\files\share\sub".to_owned();
        let remove = v1::RemoveSmbGlobalMappingRequest {
            remote_path: remote_path.clone(),
        };
        let share = UncPath::parse(r"\\files\share\sub").expect("a path");
        assert_eq!(remove.operation(&config).expect("a request").remote, share);
        let create = v1::NewSmbGlobalMappingRequest {
            remote_path,
            ..Default::default()
        };
        assert!(create.operation(&config).is_err());
    }
}
