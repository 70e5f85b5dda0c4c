//! Where this source tree is, and which crates it has.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand};

/// The top of the source tree.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The folder for everything that is built, downloaded or made for tests.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// The cargo that runs us, in the source tree.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// Our own crates, without what they depend on.
pub(crate) fn metadata() -> Result<Metadata, cargo_metadata::Error> {
    MetadataCommand::new().current_dir(root()).no_deps().exec()
}
