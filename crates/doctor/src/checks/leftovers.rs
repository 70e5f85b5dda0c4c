//! Leftovers of the Go program, of drivers or of the last boot: SMB mappings, mount points, links,
//! iSCSI sessions.

use std::collections::{BTreeMap, BTreeSet};

use os::{Namespace, OsError};
use storage_ops::inspect::{
    LinkKind, LinkReadings, SearchLimits, VolumeReadings, is_refused_by_server,
    is_server_unreachable,
};
use storage_ops::{Config, HostPath, UncPath};

use crate::examination::{Examination, Settings, query};
use crate::finding::Report;
use crate::redaction::NameKind;
use crate::words::{counted, listed, quoted};

const SMB: &str = "SMB mappings";
const LINKS: &str = "Links and mount points";
const ISCSI: &str = "iSCSI sessions";

/// Kubelet's deepest directories of volumes, `pods\<pod>\volumes\<plugin>\<volume>\mount`, and
/// those of drivers are less deep than this.
const LIMITS: SearchLimits = SearchLimits {
    depth: 9,
    entries: 50_000,
};

/// `iscsi_runs`: whether the iSCSI initiator runs. If not, its classes cannot be queried.
pub(super) fn check(
    examination: &mut Examination<'_>,
    iscsi_runs: bool,
    volumes: &[VolumeReadings],
) {
    let mapped = check_mappings(examination);
    let node = &examination.settings.node;
    let directories: Vec<_> = std::iter::once(&node.kubelet_dir)
        .chain(&node.working_dirs)
        .cloned()
        .collect();
    for directory in directories {
        check_links(examination, &directory, mapped.as_ref());
    }
    check_mount_manager(examination, volumes);
    if iscsi_runs {
        check_sessions(examination);
    }
}

/// Returns the mapped shares, or `None` if they could not be read.
fn check_mappings(examination: &mut Examination<'_>) -> Option<BTreeSet<String>> {
    let mappings = match query(
        examination.os,
        &examination.settings.node,
        Namespace::Smb,
        "SELECT * FROM MSFT_SmbGlobalMapping",
    ) {
        Ok(mappings) => mappings,
        Err(code) => {
            examination
                .report
                .unchecked(SMB, "the SMB mappings", code, Some(code));
            return None;
        }
    };
    let requires_privacy = examination.settings.node.require_privacy;
    let Examination {
        inspector,
        names,
        report,
        ..
    } = examination;
    let (mut mapped, mut readable) = (BTreeSet::new(), 0);
    // Wait only once for a server that does not answer, not for each of its shares.
    let mut silent: BTreeMap<String, OsError> = BTreeMap::new();
    for mapping in &mappings {
        let remote = mapping.text("RemotePath").unwrap_or_default();
        let Ok(path) = UncPath::parse(remote) else {
            continue;
        };
        let share = path.share();
        let server = path.server();
        let name = quoted(&names.of(NameKind::Share, &share));
        if !remote.eq_ignore_ascii_case(&share) {
            report.warning(
                SMB,
                format!(
                    "{} is mapped: a directory of a share instead of the whole share",
                    quoted(&names.of(NameKind::Share, remote))
                ),
                "csi-proxy maps whole shares, and Windows refuses a second mapping of this share; \
                 remove this mapping when no pod uses it",
            );
        }
        if requires_privacy && mapping.bool("RequirePrivacy") == Some(false) {
            report.warning(
                SMB,
                format!("{name} is mapped without the encryption that csi-proxy requires"),
                "csi-proxy uses the mapping as it is; when no pod uses it, remove it \
                 (Remove-SmbGlobalMapping), and the driver maps the share again",
            );
        }
        mapped.insert(share);
        let outcome = match silent.get(&server) {
            Some(code) => Err(*code),
            None => inspector
                .read_share(&path)
                .map_err(|error| error.code().unwrap_or(OsError::GEN_FAILURE)),
        };
        match outcome {
            Ok(()) => readable += 1,
            Err(code) => {
                let advice = if is_server_unreachable(code) {
                    silent.insert(server, code);
                    "check the name and TCP port 445 of the server"
                } else if is_refused_by_server(code) {
                    "check the account and its rights at the server; if its password has changed, \
                     update the secret of the volume, and the driver maps the share again"
                } else if code == OsError::BAD_NET_NAME {
                    "check whether the server still has the share; if not, remove the mapping \
                     (Remove-SmbGlobalMapping)"
                } else {
                    "if no pod uses the share, remove the mapping (Remove-SmbGlobalMapping), and the \
                     driver maps it again"
                };
                report.warning(
                    SMB,
                    format!("{name} is mapped, but cannot be read: {code}"),
                    advice,
                );
            }
        }
    }
    report.ok(
        SMB,
        format!("{} can be read", counted(readable, "mapped share")),
    );
    Some(mapped)
}

fn check_links(
    examination: &mut Examination<'_>,
    directory: &HostPath,
    mapped: Option<&BTreeSet<String>>,
) {
    let Examination {
        inspector,
        names,
        report,
        ..
    } = examination;
    let place = quoted(&directory.to_string());
    let survey = match inspector.links_below(directory, LIMITS) {
        Ok(survey) => survey,
        // Reported as a working directory that does not exist.
        Err(error)
            if matches!(
                error.code(),
                Some(OsError::FILE_NOT_FOUND | OsError::PATH_NOT_FOUND)
            ) =>
        {
            return;
        }
        Err(error) => {
            return report.unchecked(
                LINKS,
                format!("the links below {place}"),
                &error,
                error.code(),
            );
        }
    };
    let mut stale = Vec::new();
    let mut dangling = Vec::new();
    let mut unmapped = Vec::new();
    let mut good = 0;
    for link in &survey.links {
        match (&link.target_exists, link.kind) {
            (Ok(false), LinkKind::Volume(_)) => stale.push(quoted(&link.path)),
            (Ok(false), _) => dangling.push(quoted(&link.path)),
            (Ok(true), _) => {
                match share_of(link)
                    .filter(|share| mapped.is_some_and(|mapped| !mapped.contains(share)))
                {
                    Some(share) => {
                        let share = quoted(&names.of(NameKind::Share, &share));
                        unmapped.push(format!("{} to {share}", quoted(&link.path)));
                    }
                    None => good += 1,
                }
            }
            (Err(error), _) => {
                report.unchecked(
                    LINKS,
                    format!("the target of {}", quoted(&link.path)),
                    error,
                    error.code(),
                );
            }
        }
    }
    let advice = "if the pod is gone, remove the directory with rmdir; otherwise attach the disk \
                  again or restart the pod";
    warn_of(
        report,
        "mount point",
        "to volumes that no longer exist",
        &stale,
        advice,
    );
    let advice = "if the pod is gone, remove the link with rmdir, which does not touch the target";
    warn_of(
        report,
        "link",
        "to paths that do not exist",
        &dangling,
        advice,
    );
    let advice = "restart the pod, so that its driver maps the share; if the pod is gone, remove \
                  the link with rmdir";
    warn_of(
        report,
        "link",
        "to shares that are not mapped",
        &unmapped,
        advice,
    );
    if let Some((path, error)) = &survey.unreadable {
        report.unchecked(LINKS, quoted(path), error, error.code());
    }
    let cut = if survey.is_cut {
        "; the search ended at its limit"
    } else {
        ""
    };
    let looked = format!("links below {place}: {good} working");
    report.ok(
        LINKS,
        format!(
            "{looked} ({} checked{cut})",
            counted(survey.entries, "name")
        ),
    );
}

/// Adds a warning that lists links or mount points, if there are any.
fn warn_of(report: &mut Report, noun: &str, problem: &str, paths: &[String], advice: &str) {
    if !paths.is_empty() {
        report.warning(
            LINKS,
            format!(
                "{} {problem}: {}",
                counted(paths.len(), noun),
                listed(paths)
            ),
            advice,
        );
    }
}

/// Returns the share that a link leads to, in lower case.
fn share_of(link: &LinkReadings) -> Option<String> {
    let rest = link
        .target
        .strip_prefix(r"\??\UNC\")
        .or_else(|| link.target.strip_prefix(r"\??\unc\"))?;
    UncPath::parse(&format!(r"\\{}", rest.trim_end_matches('\\')))
        .ok()
        .map(|path| path.share())
}

/// Checks the directories that the mount manager has for volumes.
fn check_mount_manager(examination: &mut Examination<'_>, volumes: &[VolumeReadings]) {
    let Examination {
        inspector,
        report,
        settings: Settings { node, .. },
        ..
    } = examination;
    let (mut stale, mut outside) = (Vec::new(), Vec::new());
    for volume in volumes {
        let paths = match &volume.paths {
            Ok(paths) => paths,
            Err(error) => {
                report.unchecked(
                    LINKS,
                    format!("where {} is mounted", volume.id),
                    error,
                    error.code(),
                );
                continue;
            }
        };
        for path in paths {
            match inspector.leads_to(path, volume.id) {
                Ok(true) if is_outside(node, path) => outside.push(quoted(path)),
                Ok(true) => {}
                Ok(false) => stale.push(quoted(path)),
                Err(error) => {
                    report.unchecked(
                        LINKS,
                        format!("the mount point {}", quoted(path)),
                        &error,
                        error.code(),
                    );
                }
            }
        }
    }
    let advice = "no action is needed unless a driver mounts volumes there; in that case name the \
                  directory with -working-dir, because MountVolume and UnmountVolume refuse paths \
                  outside of the working directories";
    warn_of(
        report,
        "mount point",
        "outside of the working directories",
        &outside,
        advice,
    );
    if stale.is_empty() {
        return report.ok(
            LINKS,
            format!(
                "no stale mount points ({} checked)",
                counted(volumes.len(), "volume")
            ),
        );
    }
    report.warning(
        LINKS,
        format!(
            "Windows lists {} that no longer exist: {}",
            counted(stale.len(), "mount point"),
            listed(&stale)
        ),
        "mountvol.exe PATH /D for each; until then Windows reports a mount that is not there",
    );
}

/// Returns whether csi-proxy refuses to mount a volume at this path. A drive letter and a directory
/// above a working directory do not count.
fn is_outside(node: &Config, path: &str) -> bool {
    let Ok(path) = HostPath::parse(path) else {
        return false;
    };
    let mut directories = std::iter::once(&node.kubelet_dir)
        .chain(&node.working_dirs)
        .chain(&node.plugin_dir)
        .chain(&node.pod_dir);
    !path.is_drive_root()
        && !directories.any(|directory| path.is_in(directory) || directory.is_in(&path))
}

fn check_sessions(examination: &mut Examination<'_>) {
    let sessions = match query(
        examination.os,
        &examination.settings.node,
        // The initiator may wait for a target, so its queries have connections of their own.
        Namespace::Iscsi,
        "SELECT * FROM MSFT_iSCSISession",
    ) {
        Ok(sessions) => sessions,
        Err(code) => {
            return examination
                .report
                .unchecked(ISCSI, "the iSCSI sessions", code, Some(code));
        }
    };
    let Examination { names, report, .. } = examination;
    let (mut connected, mut persistent) = (0, 0);
    for session in &sessions {
        if session.bool("IsConnected") == Some(true) {
            connected += 1;
            persistent += usize::from(session.bool("IsPersistent") == Some(true));
            continue;
        }
        let target = quoted(&names.of(
            NameKind::Target,
            session.text("TargetNodeAddress").unwrap_or_default(),
        ));
        report.warning(
            ISCSI,
            format!("the session to {target} is not connected"),
            "if no pod uses the target: Unregister-IscsiSession, so that Windows does not connect \
             it again",
        );
    }
    report.ok(
        ISCSI,
        format!("sessions: {connected} connected, {persistent} of them persistent"),
    );
}
