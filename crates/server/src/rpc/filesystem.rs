//! The filesystem group.

use std::num::TryFromIntError;

use api::filesystem::{v1, v1beta1, v2alpha1};
use storage_ops::{
    Config, Context, CreateSymlink, Fault, HostPath, IsSymlink, Mkdir, Outcome, PathExists, Rmdir, RmdirContents,
};

use crate::rpc::convert::{self, Ask, IntoWire};

crate::rpc::handlers::services! {
    filesystem::filesystem_server::{Filesystem, FilesystemServer};
    v1 | v1beta2 => {
        path_exists(PathExistsRequest) -> PathExistsResponse,
        mkdir(MkdirRequest) -> MkdirResponse,
        rmdir(RmdirRequest) -> RmdirResponse,
        create_symlink(CreateSymlinkRequest) -> CreateSymlinkResponse,
        is_symlink(IsSymlinkRequest) -> IsSymlinkResponse,
    }
    v2alpha1 => {
        path_exists(PathExistsRequest) -> PathExistsResponse,
        mkdir(MkdirRequest) -> MkdirResponse,
        rmdir(RmdirRequest) -> RmdirResponse,
        rmdir_contents(RmdirContentsRequest) -> RmdirContentsResponse,
        create_symlink(CreateSymlinkRequest) -> CreateSymlinkResponse,
        is_symlink(IsSymlinkRequest) -> IsSymlinkResponse,
    }
    v1beta1 | v1alpha1 => {
        path_exists(PathExistsRequest) -> PathExistsResponse,
        mkdir(MkdirRequest) -> MkdirResponse,
        rmdir(RmdirRequest) -> RmdirResponse,
        link_path(LinkPathRequest) -> LinkPathResponse,
        is_mount_point(IsMountPointRequest) -> IsMountPointResponse,
    }
}

/// What an old path is for.
fn context(number: i32) -> Outcome<Option<Context>> {
    match v1beta1::PathContext::try_from(number) {
        Ok(v1beta1::PathContext::Plugin) => Ok(Some(Context::Plugin)),
        Ok(v1beta1::PathContext::Pod) => Ok(Some(Context::Pod)),
        Err(_) => Err(Fault::invalid(format!("{number} is not a path context"))),
    }
}

impl Ask for v1::PathExistsRequest {
    type Operation = PathExists;

    fn operation(self, _: &Config) -> Outcome<PathExists> {
        Ok(PathExists { path: HostPath::parse(&self.path)?, context: None })
    }
}

impl Ask for v1beta1::PathExistsRequest {
    type Operation = PathExists;

    fn operation(self, _: &Config) -> Outcome<PathExists> {
        Ok(PathExists { path: HostPath::parse(&self.path)?, context: context(self.context)? })
    }
}

impl IntoWire<v1::PathExistsResponse> for bool {
    fn into_wire(self) -> Result<v1::PathExistsResponse, TryFromIntError> {
        Ok(v1::PathExistsResponse { exists: self })
    }
}

impl IntoWire<v1beta1::PathExistsResponse> for bool {
    fn into_wire(self) -> Result<v1beta1::PathExistsResponse, TryFromIntError> {
        Ok(v1beta1::PathExistsResponse { error: String::new(), exists: self })
    }
}

impl Ask for v1::MkdirRequest {
    type Operation = Mkdir;

    fn operation(self, _: &Config) -> Outcome<Mkdir> {
        Ok(Mkdir { path: HostPath::parse(&self.path)?, context: None })
    }
}

impl Ask for v1beta1::MkdirRequest {
    type Operation = Mkdir;

    fn operation(self, _: &Config) -> Outcome<Mkdir> {
        Ok(Mkdir { path: HostPath::parse(&self.path)?, context: context(self.context)? })
    }
}

impl Ask for v1::RmdirRequest {
    type Operation = Rmdir;

    fn operation(self, _: &Config) -> Outcome<Rmdir> {
        Ok(Rmdir { path: HostPath::parse(&self.path)?, context: None, force: self.force })
    }
}

impl Ask for v1beta1::RmdirRequest {
    type Operation = Rmdir;

    fn operation(self, _: &Config) -> Outcome<Rmdir> {
        Ok(Rmdir { path: HostPath::parse(&self.path)?, context: context(self.context)?, force: self.force })
    }
}

impl Ask for v2alpha1::RmdirContentsRequest {
    type Operation = RmdirContents;

    fn operation(self, _: &Config) -> Outcome<RmdirContents> {
        Ok(RmdirContents { path: HostPath::parse(&self.path)? })
    }
}

impl Ask for v1::CreateSymlinkRequest {
    type Operation = CreateSymlink;

    fn operation(self, _: &Config) -> Outcome<CreateSymlink> {
        let (source, target) = (HostPath::parse(&self.source_path)?, HostPath::parse(&self.target_path)?);
        Ok(CreateSymlink { source, target })
    }
}

impl Ask for v1beta1::LinkPathRequest {
    type Operation = CreateSymlink;

    fn operation(self, _: &Config) -> Outcome<CreateSymlink> {
        let (source, target) = (HostPath::parse(&self.source_path)?, HostPath::parse(&self.target_path)?);
        Ok(CreateSymlink { source, target })
    }
}

impl Ask for v1::IsSymlinkRequest {
    type Operation = IsSymlink;

    fn operation(self, config: &Config) -> Outcome<IsSymlink> {
        Ok(IsSymlink { path: convert::loose(&self.path, config)? })
    }
}

impl Ask for v1beta1::IsMountPointRequest {
    type Operation = IsSymlink;

    fn operation(self, config: &Config) -> Outcome<IsSymlink> {
        Ok(IsSymlink { path: convert::loose(&self.path, config)? })
    }
}

impl IntoWire<v1::IsSymlinkResponse> for bool {
    fn into_wire(self) -> Result<v1::IsSymlinkResponse, TryFromIntError> {
        Ok(v1::IsSymlinkResponse { is_symlink: self })
    }
}

impl IntoWire<v1beta1::IsMountPointResponse> for bool {
    fn into_wire(self) -> Result<v1beta1::IsMountPointResponse, TryFromIntError> {
        Ok(v1beta1::IsMountPointResponse { error: String::new(), is_mount_point: self })
    }
}
