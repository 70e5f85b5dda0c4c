//! The conversions of the messages of the filesystem group.

use std::num::TryFromIntError;

use api::filesystem::{v1, v1beta1, v2alpha1};
use storage_ops::{
    Config, CreateSymlink, HostPath, IsSymlink, Mkdir, OperationError, OperationResult,
    PathContext, PathExists, Rmdir, RmdirContents,
};

use crate::rpc::convert::{self, IntoOperation, IntoResponse};

/// Parses the context of a path in old versions: whether it is for the plugin or for a pod.
fn context(number: i32) -> OperationResult<Option<PathContext>> {
    match v1beta1::PathContext::try_from(number) {
        Ok(v1beta1::PathContext::Plugin) => Ok(Some(PathContext::Plugin)),
        Ok(v1beta1::PathContext::Pod) => Ok(Some(PathContext::Pod)),
        Err(_) => Err(OperationError::invalid(format!(
            "context {number} is unknown; use PLUGIN (0) or POD (1)"
        ))),
    }
}

impl IntoOperation for v1::PathExistsRequest {
    type Operation = PathExists;

    fn operation(self, _: &Config) -> OperationResult<PathExists> {
        Ok(PathExists {
            path: HostPath::parse(&self.path)?,
            context: None,
        })
    }
}

impl IntoOperation for v1beta1::PathExistsRequest {
    type Operation = PathExists;

    fn operation(self, _: &Config) -> OperationResult<PathExists> {
        Ok(PathExists {
            path: HostPath::parse(&self.path)?,
            context: context(self.context)?,
        })
    }
}

impl IntoResponse<v1::PathExistsResponse> for bool {
    fn into_response(self) -> Result<v1::PathExistsResponse, TryFromIntError> {
        Ok(v1::PathExistsResponse { exists: self })
    }
}

impl IntoResponse<v1beta1::PathExistsResponse> for bool {
    fn into_response(self) -> Result<v1beta1::PathExistsResponse, TryFromIntError> {
        Ok(v1beta1::PathExistsResponse {
            error: String::new(),
            exists: self,
        })
    }
}

impl IntoOperation for v1::MkdirRequest {
    type Operation = Mkdir;

    fn operation(self, _: &Config) -> OperationResult<Mkdir> {
        Ok(Mkdir {
            path: HostPath::parse(&self.path)?,
            context: None,
        })
    }
}

impl IntoOperation for v1beta1::MkdirRequest {
    type Operation = Mkdir;

    fn operation(self, _: &Config) -> OperationResult<Mkdir> {
        Ok(Mkdir {
            path: HostPath::parse(&self.path)?,
            context: context(self.context)?,
        })
    }
}

impl IntoOperation for v1::RmdirRequest {
    type Operation = Rmdir;

    fn operation(self, _: &Config) -> OperationResult<Rmdir> {
        Ok(Rmdir {
            path: HostPath::parse(&self.path)?,
            context: None,
            force: self.force,
        })
    }
}

impl IntoOperation for v1beta1::RmdirRequest {
    type Operation = Rmdir;

    fn operation(self, _: &Config) -> OperationResult<Rmdir> {
        Ok(Rmdir {
            path: HostPath::parse(&self.path)?,
            context: context(self.context)?,
            force: self.force,
        })
    }
}

impl IntoOperation for v2alpha1::RmdirContentsRequest {
    type Operation = RmdirContents;

    fn operation(self, _: &Config) -> OperationResult<RmdirContents> {
        Ok(RmdirContents {
            path: HostPath::parse(&self.path)?,
        })
    }
}

impl IntoOperation for v1::CreateSymlinkRequest {
    type Operation = CreateSymlink;

    fn operation(self, _: &Config) -> OperationResult<CreateSymlink> {
        let (source, target) = (
            HostPath::parse(&self.source_path)?,
            HostPath::parse(&self.target_path)?,
        );
        Ok(CreateSymlink { source, target })
    }
}

impl IntoOperation for v1beta1::LinkPathRequest {
    type Operation = CreateSymlink;

    fn operation(self, _: &Config) -> OperationResult<CreateSymlink> {
        let (source, target) = (
            HostPath::parse(&self.source_path)?,
            HostPath::parse(&self.target_path)?,
        );
        Ok(CreateSymlink { source, target })
    }
}

impl IntoOperation for v1::IsSymlinkRequest {
    type Operation = IsSymlink;

    fn operation(self, config: &Config) -> OperationResult<IsSymlink> {
        Ok(IsSymlink {
            path: convert::loose(&self.path, config)?,
        })
    }
}

impl IntoOperation for v1beta1::IsMountPointRequest {
    type Operation = IsSymlink;

    fn operation(self, config: &Config) -> OperationResult<IsSymlink> {
        Ok(IsSymlink {
            path: convert::loose(&self.path, config)?,
        })
    }
}

impl IntoResponse<v1::IsSymlinkResponse> for bool {
    fn into_response(self) -> Result<v1::IsSymlinkResponse, TryFromIntError> {
        Ok(v1::IsSymlinkResponse { is_symlink: self })
    }
}

impl IntoResponse<v1beta1::IsMountPointResponse> for bool {
    fn into_response(self) -> Result<v1beta1::IsMountPointResponse, TryFromIntError> {
        Ok(v1beta1::IsMountPointResponse {
            error: String::new(),
            is_mount_point: self,
        })
    }
}
