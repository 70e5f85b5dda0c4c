//! The conversions of the messages of the filesystem group.

use api::filesystem::{v1, v1beta1, v2alpha1};
use storage_ops::{
    CreateSymlink, HostPath, IsSymlink, Mkdir, OperationError, OperationResult, PathContext,
    PathExists, Rmdir, RmdirContents,
};

use crate::rpc::convert;

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

convert::requests! {
    |request, config|
    v1::PathExistsRequest => PathExists {
        path: HostPath::parse(&request.path)?,
        context: None,
    }
    v1beta1::PathExistsRequest => PathExists {
        path: HostPath::parse(&request.path)?,
        context: context(request.context)?,
    }
    v1::MkdirRequest => Mkdir {
        path: HostPath::parse(&request.path)?,
        context: None,
    }
    v1beta1::MkdirRequest => Mkdir {
        path: HostPath::parse(&request.path)?,
        context: context(request.context)?,
    }
    v1::RmdirRequest => Rmdir {
        path: HostPath::parse(&request.path)?,
        context: None,
        force: request.force,
    }
    v1beta1::RmdirRequest => Rmdir {
        path: HostPath::parse(&request.path)?,
        context: context(request.context)?,
        force: request.force,
    }
    v2alpha1::RmdirContentsRequest => RmdirContents {
        path: HostPath::parse(&request.path)?,
    }
    v1::CreateSymlinkRequest, v1beta1::LinkPathRequest => CreateSymlink {
        source: HostPath::parse(&request.source_path)?,
        target: HostPath::parse(&request.target_path)?,
    }
    v1::IsSymlinkRequest, v1beta1::IsMountPointRequest => IsSymlink {
        path: convert::loose(&request.path, config)?,
    }
}

convert::responses! {
    |result|
    bool => v1::PathExistsResponse { exists: result }
    bool => v1beta1::PathExistsResponse {
        error: String::new(),
        exists: result,
    }
    bool => v1::IsSymlinkResponse { is_symlink: result }
    bool => v1beta1::IsMountPointResponse {
        error: String::new(),
        is_mount_point: result,
    }
}
