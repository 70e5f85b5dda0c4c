//! The WMI class of SMB global mappings.

use os::{Instance, MethodCall, Namespace, OsError, Value};

use crate::error::{OperationError, OperationResult};
use crate::node::run::Run;
use crate::provider::wmi::{call, query, quote};
use crate::types::{UncPath, lower_case};

pub(super) const CLASS: &str = "MSFT_SmbGlobalMapping";

/// Finds the mapping of a share.
pub(super) fn find(run: Run<'_>, share: &str) -> OperationResult<Option<Instance>> {
    let wql = format!("SELECT * FROM {CLASS} WHERE RemotePath = {}", quote(share));
    // WMI may consider letters equal that Windows and servers do not.
    let is_same = |mapping: &Instance| mapping.text("RemotePath").is_none_or(|path| lower_case(path) == share);
    Ok(query(run, Namespace::Smb, &wql)?.into_iter().find(is_same))
}

/// Returns the mappings to other shares of the server of `remote`, with their remote paths in lower case.
pub(super) fn others(run: Run<'_>, remote: &UncPath) -> OperationResult<Vec<(String, Instance)>> {
    let (share, server) = (remote.share(), format!(r"\\{}\", remote.server()));
    let mappings = query(run, Namespace::Smb, &format!("SELECT * FROM {CLASS}"))?;
    let named = mappings.into_iter().filter_map(|mapping| Some((lower_case(mapping.text("RemotePath")?), mapping)));
    Ok(named.filter(|(path, _)| path.starts_with(&server) && *path != share).collect())
}

/// Removes the mapping of a share. Unless forced, Windows refuses that while files are open on it.
pub(super) fn remove(run: Run<'_>, share: &str, mapping: &Instance, force: bool) -> OperationResult<()> {
    let force = [("Force", Value::Bool(force))];
    let remove = MethodCall::new(Namespace::Smb, &mapping.path, "Remove", &force);
    let returned = call(run, &remove, run.timeouts().change)?;
    if returned.code != 0 {
        return Err(OperationError::of(
            OsError(returned.code),
            format!("Windows did not remove the mapping of {share}"),
        ));
    }
    run.node().smb_mappings.forget(run.host(), share);
    Ok(())
}
