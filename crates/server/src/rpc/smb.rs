//! The conversions of the messages of the SMB group.

use api::smb::v1;
use storage_ops::{
    HostPath, NewSmbGlobalMapping, RemoveSmbGlobalMapping, SecretText, SmbUser, UncPath,
};

use crate::rpc::convert;

convert::requests! {
    |request, config|
    // The password first, so that no error leaves it in memory.
    v1::NewSmbGlobalMappingRequest => NewSmbGlobalMapping {
        password: SecretText::parse(request.password, "the password")?,
        remote: UncPath::parse(&request.remote_path)?,
        local: if request.local_path.is_empty() {
            None
        } else {
            Some(HostPath::parse(&request.local_path)?)
        },
        user: SmbUser::parse(&request.username)?,
    }
    // NetApp Trident sends `\host\share`.
    v1::RemoveSmbGlobalMappingRequest => RemoveSmbGlobalMapping {
        remote: UncPath::parse_loose(&request.remote_path)?,
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
