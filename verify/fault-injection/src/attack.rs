//! The changes that an attacker can make with write access to kubelet's directory only.

use std::fmt;
use std::sync::Arc;

use faults::{Probe, Race};
use os::{Access, Handle, NtPath, Open, Options, Os, U16String};
use os_sim::{Oplock, Sim};

use crate::scenarios::{KUBELET, volume};

/// One change of one component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attack {
    /// The component, below kubelet's directory.
    pub component: &'static str,
    /// The change.
    pub act: Act,
    /// Whether it is reverted one call later, so that a second check does not notice it.
    pub reverted: bool,
    /// Whether the attacker has the component open for renaming from the start, so that no other
    /// handle can prevent it.
    pub held_open: bool,
}

/// A change of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Renames it, and creates a link with its name.
    ReplaceWithLink(LinkKind, LinkTarget),
    /// Converts an empty directory to a junction while it is open elsewhere.
    ConvertToJunction(LinkTarget),
    /// Removes it with its contents.
    Remove,
    /// Renames it.
    Rename,
    /// Creates a directory with its name, if it does not exist.
    CreateDirectory,
    /// Creates a file with its name, if it does not exist.
    CreateFile,
    /// Creates a link with its name, if it does not exist.
    CreateLink(LinkKind, LinkTarget),
    /// Takes an opportunistic lock on it and never gives it up.
    HoldOplock(Oplock),
}

/// The type of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A junction, or a mount point if the target is a volume.
    Junction,
    /// A symbolic link.
    Symlink,
}

/// The target of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// A directory of the node.
    Directory(&'static str),
    /// The root of the system volume, as a mount point.
    SystemVolume,
    /// The root of the volume on disk 2, with another tenant's data.
    OtherVolume,
}

/// Targets outside kubelet's directory. They contain full, empty and mounted directories whose
/// names are components of the path.
const TARGETS: [LinkTarget; 8] = [
    LinkTarget::Directory(r"C:\Windows"),
    LinkTarget::Directory(r"C:\outside"),
    LinkTarget::Directory(r"C:\vacant"),
    // An empty directory, so that a volume could be mounted on it.
    LinkTarget::Directory(r"C:\vacant\m"),
    LinkTarget::Directory(r"C:\mounts"),
    LinkTarget::Directory(r"C:\deep"),
    LinkTarget::SystemVolume,
    LinkTarget::OtherVolume,
];

impl Attack {
    /// Returns every attack on any of `components`.
    pub fn all(components: &[&'static str]) -> Vec<Self> {
        let mut acts = vec![
            Act::Remove,
            Act::Rename,
            Act::CreateDirectory,
            Act::CreateFile,
        ];
        acts.extend([Oplock::Exclusive, Oplock::Handle].map(Act::HoldOplock));
        acts.push(Act::CreateLink(
            LinkKind::Symlink,
            LinkTarget::Directory(r"C:\gone"),
        ));
        for target in TARGETS {
            acts.extend([
                Act::ReplaceWithLink(LinkKind::Junction, target),
                Act::CreateLink(LinkKind::Junction, target),
                Act::ConvertToJunction(target),
            ]);
        }
        // Operations treat junctions and symbolic links alike, so one target is enough for the
        // latter.
        let full = LinkTarget::Directory(r"C:\outside");
        acts.extend([
            Act::ReplaceWithLink(LinkKind::Symlink, full),
            Act::CreateLink(LinkKind::Symlink, full),
        ]);
        let mut all = Vec::new();
        for component in components {
            for act in &acts {
                let plain = Self {
                    component,
                    act: *act,
                    reverted: false,
                    held_open: false,
                };
                all.push(plain);
                if matches!(act, Act::ReplaceWithLink(..)) {
                    let reverted = Self {
                        reverted: true,
                        ..plain
                    };
                    all.extend([
                        reverted,
                        Self {
                            held_open: true,
                            ..plain
                        },
                        Self {
                            held_open: true,
                            ..reverted
                        },
                    ]);
                }
            }
        }
        all
    }

    fn path(&self) -> String {
        format!(r"{KUBELET}\{}", self.component)
    }

    /// Returns the path to which the component is renamed.
    fn renamed(&self) -> String {
        format!("{}.renamed", self.path())
    }

    /// Opens what the attacker holds open from the start.
    pub fn open_held(&self, sim: &Sim) -> Option<Box<dyn Handle>> {
        let how = Open::existing(Access::DELETE, Options::REPARSE_POINT);
        self.held_open
            .then(|| {
                sim.open(
                    &NtPath::from_win32(&U16String::from_str(&self.path())),
                    &how,
                )
                .ok()
            })
            .flatten()
    }

    /// Returns the probes that make the change before the call number `nth`.
    pub fn probes(self, sim: &Sim, nth: u64) -> Vec<Arc<dyn Probe>> {
        let (at, after) = (sim.clone(), sim.clone());
        let mut probes: Vec<Arc<dyn Probe>> =
            vec![Arc::new(Race::before(nth, move || self.act(&at)))];
        if self.reverted {
            probes.push(Arc::new(Race::before(nth + 1, move || self.revert(&after))));
        }
        probes
    }

    /// Makes the change now. If it fails, nothing has changed, as for a real attacker.
    pub fn act(&self, sim: &Sim) {
        let (external, path) = (sim.external(), self.path());
        if self.is_beyond_a_link(sim) {
            return;
        }
        let _ = match self.act {
            Act::ReplaceWithLink(kind, target) => external
                .rename(&path, &self.renamed())
                .and_then(|()| create_link(sim, &path, kind, target)),
            Act::ConvertToJunction(target) if external.exists(&path) => {
                create_link(sim, &path, LinkKind::Junction, target)
            }
            Act::CreateLink(kind, target) if !external.exists(&path) => {
                create_link(sim, &path, kind, target)
            }
            Act::Remove => external.remove_all(&path),
            Act::Rename => external.rename(&path, &self.renamed()),
            Act::CreateDirectory => external.mkdir(&path),
            Act::HoldOplock(oplock) => external.hold_oplock(&path, oplock),
            Act::CreateFile if !external.exists(&path) => external.write(&path, b"the attacker's"),
            // Nothing to convert, or the name exists already.
            Act::ConvertToJunction(_) | Act::CreateLink(..) | Act::CreateFile => Ok(()),
        };
    }

    /// Returns whether a link on the path to the component leads to where the attacker has no write
    /// access.
    fn is_beyond_a_link(&self, sim: &Sim) -> bool {
        let foreign = [volume(sim, 0).to_string(), volume(sim, 2).to_string()];
        let leads_out = |ancestor: &str| {
            let target = sim.external().read_link(&format!(r"{KUBELET}\{ancestor}"));
            target.is_ok_and(|target| {
                !target.starts_with(r"\\?\Volume{") || foreign.contains(&target)
            })
        };
        self.component
            .match_indices('\\')
            .any(|(end, _)| leads_out(&self.component[..end]))
    }

    fn revert(&self, sim: &Sim) {
        let (external, path) = (sim.external(), self.path());
        if external.exists(&self.renamed()) && external.is_link(&path) {
            let _ = external
                .remove_all(&path)
                .and_then(|()| external.rename(&self.renamed(), &path));
        }
    }
}

fn create_link(sim: &Sim, path: &str, kind: LinkKind, target: LinkTarget) -> os::OsResult<()> {
    let target = match target {
        LinkTarget::Directory(target) => target.to_owned(),
        LinkTarget::SystemVolume => volume(sim, 0).to_string(),
        LinkTarget::OtherVolume => volume(sim, 2).to_string(),
    };
    match kind {
        LinkKind::Junction => sim.external().junction(path, &target),
        LinkKind::Symlink => sim.external().symlink(path, &target),
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.act, self.component)?;
        f.write_str(if self.reverted { ", reverted" } else { "" })?;
        f.write_str(if self.held_open { ", held open" } else { "" })
    }
}
