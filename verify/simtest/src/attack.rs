//! What an attacker does who may write in kubelet's directory, and nowhere else.

use std::fmt;
use std::sync::Arc;

use faults::{Probe, Race};
use os::{Access, Handle, NtPath, Open, Options, Os, U16String};
use os_sim::Sim;

use crate::scenarios::{KUBELET, volume};

/// One act against one component of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attack {
    /// The component, below kubelet's directory.
    pub component: &'static str,
    /// What is done to it.
    pub act: Act,
    /// Whether it is undone one call later, so that whoever looks again sees nothing.
    pub undone: bool,
    /// Whether the attacker has had it open for renaming from the beginning, so that nobody else can pin it.
    pub held: bool,
}

/// What is done to a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is renamed, and a link put in its place.
    Swap(Link, Lure),
    /// An empty directory becomes a junction while others have it open.
    Turn(Lure),
    /// It is removed, with what is in it.
    Remove,
    /// It is renamed.
    Rename,
    /// A directory of the name is made where there is none.
    MakeDirectory,
    /// A file.
    MakeFile,
    /// A link.
    MakeLink(Link, Lure),
}

/// A kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A junction or mount point.
    Junction,
    /// A symbolic link.
    Symlink,
}

/// Where a link leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lure {
    /// A directory of the node.
    Directory(&'static str),
    /// The root of the system's own volume, as a mount point.
    SystemVolume,
    /// The root of the volume of disk 2, which somebody else's data are on.
    OtherVolume,
}

/// Directories outside, with full, empty and mounted directories of the names that a path's components have.
const LURES: [Lure; 8] = [
    Lure::Directory(r"C:\Windows"),
    Lure::Directory(r"C:\outside"),
    Lure::Directory(r"C:\vacant"),
    // Nothing at all is in there, so that a volume could be mounted on it.
    Lure::Directory(r"C:\vacant\m"),
    Lure::Directory(r"C:\mounts"),
    Lure::Directory(r"C:\deep"),
    Lure::SystemVolume,
    Lure::OtherVolume,
];

impl Attack {
    /// Every attack on any of `components`.
    pub fn all(components: &[&'static str]) -> Vec<Self> {
        let mut acts = vec![Act::Remove, Act::Rename, Act::MakeDirectory, Act::MakeFile];
        acts.push(Act::MakeLink(Link::Symlink, Lure::Directory(r"C:\gone")));
        for lure in LURES {
            acts.extend([Act::Swap(Link::Junction, lure), Act::MakeLink(Link::Junction, lure), Act::Turn(lure)]);
        }
        // What is done to a junction is done to a symbolic link; one full directory is enough to show it.
        let full = Lure::Directory(r"C:\outside");
        acts.extend([Act::Swap(Link::Symlink, full), Act::MakeLink(Link::Symlink, full)]);
        let mut all = Vec::new();
        for component in components {
            for act in &acts {
                let plain = Self { component, act: *act, undone: false, held: false };
                all.push(plain);
                if matches!(act, Act::Swap(..)) {
                    let undone = Self { undone: true, ..plain };
                    all.extend([undone, Self { held: true, ..plain }, Self { held: true, ..undone }]);
                }
            }
        }
        all
    }

    fn path(&self) -> String {
        format!(r"{KUBELET}\{}", self.component)
    }

    fn aside(&self) -> String {
        format!("{}.aside", self.path())
    }

    /// What the attacker holds open from the beginning.
    pub fn hold(&self, sim: &Sim) -> Option<Box<dyn Handle>> {
        let how = Open::existing(Access::DELETE, Options::REPARSE_POINT);
        self.held.then(|| sim.open(&NtPath::from_win32(&U16String::from_str(&self.path())), &how).ok()).flatten()
    }

    /// The probes that carry it out before the call number `nth`.
    pub fn probes(self, sim: &Sim, nth: u64) -> Vec<Arc<dyn Probe>> {
        let (at, after) = (sim.clone(), sim.clone());
        let mut probes: Vec<Arc<dyn Probe>> = vec![Arc::new(Race::before(nth, move || self.act(&at)))];
        if self.undone {
            probes.push(Arc::new(Race::before(nth + 1, move || self.undo(&after))));
        }
        probes
    }

    /// Carries it out now. Whatever is refused to the attacker is as good as not tried.
    pub fn act(&self, sim: &Sim) {
        let (door, path) = (sim.external(), self.path());
        if self.is_out_of_reach(sim) {
            return;
        }
        let _ = match self.act {
            Act::Swap(link, lure) => door.rename(&path, &self.aside()).and_then(|()| make_link(sim, &path, link, lure)),
            Act::Turn(lure) if door.exists(&path) => make_link(sim, &path, Link::Junction, lure),
            Act::MakeLink(link, lure) if !door.exists(&path) => make_link(sim, &path, link, lure),
            Act::Remove => door.remove_all(&path),
            Act::Rename => door.rename(&path, &self.aside()),
            Act::MakeDirectory => door.mkdir(&path),
            Act::MakeFile if !door.exists(&path) => door.write(&path, b"the attacker's"),
            // There is nothing to turn, or something in the way.
            Act::Turn(_) | Act::MakeLink(..) | Act::MakeFile => Ok(()),
        };
    }

    /// Whether a link that the attacker has made leads out of where it may write, on the way to the component.
    fn is_out_of_reach(&self, sim: &Sim) -> bool {
        let foreign = [volume(sim, 0).to_string(), volume(sim, 2).to_string()];
        let leads_out = |above: &str| {
            let target = sim.external().read_link(&format!(r"{KUBELET}\{above}"));
            target.is_ok_and(|target| !target.starts_with(r"\\?\Volume{") || foreign.contains(&target))
        };
        self.component.match_indices('\\').any(|(end, _)| leads_out(&self.component[..end]))
    }

    fn undo(&self, sim: &Sim) {
        let (door, path) = (sim.external(), self.path());
        if door.exists(&self.aside()) && door.is_link(&path) {
            let _ = door.remove_all(&path).and_then(|()| door.rename(&self.aside(), &path));
        }
    }
}

fn make_link(sim: &Sim, path: &str, link: Link, lure: Lure) -> os::OsResult<()> {
    let target = match lure {
        Lure::Directory(target) => target.to_owned(),
        Lure::SystemVolume => volume(sim, 0).to_string(),
        Lure::OtherVolume => volume(sim, 2).to_string(),
    };
    match link {
        Link::Junction => sim.external().junction(path, &target),
        Link::Symlink => sim.external().symlink(path, &target),
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.act, self.component)?;
        f.write_str(if self.undone { ", undone" } else { "" })?;
        f.write_str(if self.held { ", held" } else { "" })
    }
}
