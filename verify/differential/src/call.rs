//! Random calls, and the trees on which they are made.

use serde_json::{Value, json};

use super::random::Random;
use super::spelling;
use super::tree::{Entry, Tree};

/// The group-versions of the file system RPCs.
const VERSIONS: [&str; 5] = ["v1alpha1", "v1beta1", "v1beta2", "v1", "v2alpha1"];

/// What a call does, whatever its name is in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rpc {
    PathExists,
    Mkdir,
    Rmdir {
        force: bool,
    },
    RmdirContents,
    /// `LinkPath` in old versions.
    CreateSymlink,
    /// `IsMountPoint` in old versions.
    IsSymlink,
}

/// A call of one RPC.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) version: &'static str,
    pub(super) rpc: Rpc,
    /// The path; for a link, the path of the link.
    pub(super) path: String,
    /// The source of a link.
    pub(super) source: String,
    /// The context, in the versions and RPCs that have one.
    pub(super) context: Option<Value>,
}

impl Call {
    /// A call that changes nothing.
    pub(super) fn probe() -> Self {
        Self {
            version: "v1",
            rpc: Rpc::PathExists,
            path: KUBELET.into(),
            source: String::new(),
            context: None,
        }
    }

    fn is_old(&self) -> bool {
        ["v1alpha1", "v1beta1"].contains(&self.version)
    }

    /// Returns the name of the RPC in the version.
    pub(super) fn name(&self) -> &'static str {
        match self.rpc {
            Rpc::PathExists => "PathExists",
            Rpc::Mkdir => "Mkdir",
            Rpc::Rmdir { .. } => "Rmdir",
            Rpc::RmdirContents => "RmdirContents",
            Rpc::CreateSymlink if self.is_old() => "LinkPath",
            Rpc::CreateSymlink => "CreateSymlink",
            Rpc::IsSymlink if self.is_old() => "IsMountPoint",
            Rpc::IsSymlink => "IsSymlink",
        }
    }

    /// Returns the call as the client reads it.
    pub(super) fn line(&self) -> Value {
        let mut request = match self.rpc {
            Rpc::CreateSymlink => json!({"sourcePath": self.source, "targetPath": self.path}),
            Rpc::Rmdir { force } => json!({"path": self.path, "force": force}),
            _ => json!({"path": self.path}),
        };
        if let Some(context) = &self.context {
            request["context"] = context.clone();
        }
        json!({"api": format!("filesystem/{}", self.version), "rpc": self.name(), "request": request})
    }

    /// Returns the paths of the call.
    pub(super) fn paths(&self) -> Vec<&str> {
        let source = (self.rpc == Rpc::CreateSymlink).then_some(self.source.as_str());
        std::iter::once(self.path.as_str()).chain(source).collect()
    }
}

/// The working directory of both programs, their default.
pub(super) const KUBELET: &str = r"C:\var\lib\kubelet";

/// The entries of every tree, from the drive's root. `/` at the end marks a directory, `-` a file
/// that is read-only.
const ENTRIES: [&str; 26] = [
    "outside/",
    "outside/file",
    "outside/dir/",
    "var/lib/kubelet-evil/",
    "var/lib/kubelet-evil/dir/",
    "var/lib/kubelet-evil/file",
    "var/lib/kubelet2/",
    "var/lib/kubelet/",
    "var/lib/kubelet/file.txt",
    "var/lib/kubelet/pods/",
    "var/lib/kubelet/pods/p1/",
    "var/lib/kubelet/pods/p1/volumes/",
    "var/lib/kubelet/pods/p1/volumes/mount/",
    "var/lib/kubelet/pods/p1/volumes/mount/data",
    "var/lib/kubelet/pods/p1/etc-hosts",
    "var/lib/kubelet/pods/p2/",
    "var/lib/kubelet/pods/p2/Größe 容量/",
    "var/lib/kubelet/pods/p2/with space/",
    "var/lib/kubelet/pods/p2/a.b.c",
    "var/lib/kubelet/plugins/",
    "var/lib/kubelet/plugins/csi/",
    "var/lib/kubelet/plugins/csi/GlobalMount/",
    "var/lib/kubelet/plugins/csi/read-only-",
    "var/lib/kubelet/plugins/csi/d/",
    "var/lib/kubelet/plugins/csi/d/d/",
    "var/lib/kubelet/plugins/csi/d/d/read-only-",
];

/// Makes calls and trees.
pub(super) struct Generator(Random);

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// Returns whether the working directory is replaced before the next call.
    pub(super) fn replaces_working_directory(&mut self) -> bool {
        self.0.below(400) == 0
    }

    /// Makes a tree: most of the entries.
    pub(super) fn tree(&mut self) -> Tree {
        let mut tree = Tree::default();
        for entry in ENTRIES {
            let path = entry.trim_end_matches(['/', '-']).replace('/', r"\");
            let parent = path
                .rsplit_once('\\')
                .map(|(parent, _)| parent)
                .filter(|parent| *parent != r"var\lib");
            let parent_is_missing = parent.is_some_and(|parent| tree.get(parent).is_none());
            if parent_is_missing || path != r"var\lib\kubelet" && self.0.chance(8) {
                continue;
            }
            let found = if entry.ends_with('/') {
                Entry::Directory
            } else {
                Entry::File {
                    is_writable: !entry.ends_with('-'),
                    content: path.clone(),
                }
            };
            tree.0.insert(path, found);
        }
        tree
    }

    /// Makes a call that suits a tree.
    pub(super) fn call(&mut self, tree: &Tree) -> Call {
        let random = &mut self.0;
        let version = *random.pick(&VERSIONS);
        let rpc = match random.below(100) {
            0..20 => Rpc::PathExists,
            20..45 => Rpc::Mkdir,
            45..55 => Rpc::Rmdir { force: false },
            55..68 => Rpc::Rmdir { force: true },
            68..74 => Rpc::CreateSymlink,
            74..90 if version == "v2alpha1" => Rpc::RmdirContents,
            _ => Rpc::IsSymlink,
        };
        let path = path(random, tree, rpc);
        let source = if rpc == Rpc::CreateSymlink {
            self::path(random, tree, rpc)
        } else {
            String::new()
        };
        let mut call = Call {
            version,
            rpc,
            path,
            source,
            context: None,
        };
        let has_context = matches!(rpc, Rpc::PathExists | Rpc::Mkdir | Rpc::Rmdir { .. });
        if call.is_old() && has_context {
            call.context = Some(if random.chance(3) {
                json!(7)
            } else {
                json!(*random.pick(&["PLUGIN", "POD"]))
            });
        }
        call
    }
}

/// Makes a path to an existing or a new entry, often in another spelling.
fn path(random: &mut Random, tree: &Tree, rpc: Rpc) -> String {
    const NEW: [&str; 8] = [
        "new",
        r"new\deep\er",
        "x",
        "Ünïcode 日本",
        "pvc-1234",
        "mount",
        "a.b",
        "data",
    ];
    let entries: Vec<&String> = tree.0.keys().filter(|path| is_in_play(path)).collect();
    // Most paths are in the working directory.
    let inside: Vec<&String> = entries
        .iter()
        .copied()
        .filter(|path| path.starts_with(r"var\lib\kubelet\"))
        .collect();
    let from = if inside.is_empty() || random.chance(12) {
        &entries
    } else {
        &inside
    };
    let mut path = if from.is_empty() || random.chance(3) {
        KUBELET.to_owned()
    } else {
        format!(r"C:\{}", random.pick(from))
    };
    if random.chance(match rpc {
        Rpc::Mkdir => 60,
        Rpc::CreateSymlink => 70,
        _ => 20,
    }) {
        path = format!(r"{path}\{}", random.pick(&NEW));
    }
    // Some differences show only after two changes.
    for _ in 0..[0, 0, 0, 1, 1, 2][random.below(6)] {
        path = spelling::change(random, &path);
    }
    path
}

fn is_in_play(path: &str) -> bool {
    path.starts_with(r"var\lib\") || path.starts_with("outside")
}

#[cfg(test)]
mod tests {
    use super::{Generator, Rpc};

    #[test]
    fn a_seed_repeats_trees_and_calls_and_another_seed_makes_others() {
        let run = |seed| {
            let mut generator = Generator::new(seed);
            let tree = generator.tree();
            let calls: Vec<_> = (0..50)
                .map(|_| generator.call(&tree).line().to_string())
                .collect();
            (format!("{tree:?}"), calls)
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7).1, run(8).1);
    }

    #[test]
    fn every_rpc_of_every_version_is_called() {
        let mut generator = Generator::new(1);
        let tree = generator.tree();
        let calls: Vec<_> = (0..2000).map(|_| generator.call(&tree)).collect();
        let names: std::collections::BTreeSet<_> = calls
            .iter()
            .map(|call| (call.version, call.name()))
            .collect();
        // Five RPCs in each version, and RmdirContents in one.
        assert_eq!(names.len(), 26, "{names:?}");
        let forced = calls
            .iter()
            .filter(|call| call.rpc == Rpc::Rmdir { force: true })
            .count();
        assert!(forced > 100, "{forced}");
    }
}
