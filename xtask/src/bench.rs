//! `cargo xtask bench`: placeholder.
use crate::Error;
use crate::summary::Summary;
use clap::Args;
pub(crate) const PACKAGE: &str = "csi-proxy-bench";
#[derive(Args, Default)]
pub(crate) struct Options {}
pub(crate) fn run(_: &Options) -> Result<Summary, Error> {
    Ok(Summary::default())
}
