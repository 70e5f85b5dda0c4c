//! Scenarios: each operation in each state of a node that matters to it, as tables.

use std::fmt;

use os_sim::Sim;
use storage_ops::{Config, HostPath, Operation, SecretText, VolumeId};

use crate::request::Request;

pub mod disk;
pub mod filesystem;
pub mod iscsi;
pub mod nested;
pub mod pairs;
pub mod races;
pub mod siblings;
pub mod smb;
pub mod system;
pub mod volume;

/// A gibibyte.
pub(crate) const GIB: u64 = 1 << 30;

/// Kubelet's directory.
pub(crate) const KUBELET: &str = r"C:\var\lib\kubelet";

/// A request to a node in a certain state.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The node before the operation.
    pub state: State,
    /// The operation and its requirements.
    pub spec: Spec,
}

/// A named state of a node.
#[derive(Clone, Copy)]
pub struct State {
    /// What distinguishes it from the other states of its table.
    pub name: &'static str,
    /// Builds a node in this state.
    pub build: fn() -> Sim,
}

const fn state(name: &'static str, build: fn() -> Sim) -> State {
    State { name, build }
}

/// Makes a request. Its arguments may depend on the node.
pub type MakeRequest = fn(&Sim) -> Box<dyn Request>;

/// An operation with its arguments and requirements.
#[derive(Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one requirement of a row, and no combination of them is excluded"
)]
pub struct Spec {
    /// The operation's name, followed in parentheses by what distinguishes its arguments.
    pub name: &'static str,
    /// The operation.
    pub request: MakeRequest,
    /// The settings of the node.
    pub config: fn() -> Config,
    /// The prefixes of the lines of a snapshot that the operation may change. All other lines must
    /// stay the same.
    pub changes: &'static [&'static str],
    /// The disk that the operation works on, if any.
    pub disk: Option<u32>,
    /// Whether the answer may be less complete than in the reference run. A list may lack a disk
    /// that could not be read, because one faulty disk must not hide all other disks. A size may be
    /// the old size of a disk that has grown, because drivers fail without a size.
    pub may_omit: bool,
    /// Whether a success may leave the node as it was: PartitionDisk brings a partitioned disk
    /// online only if that is known to endanger no data.
    pub may_leave: bool,
    /// Whether the operation must be denied.
    pub denied: bool,
    /// Whether the operation may format a volume that has a file system, each time that it runs.
    pub formats_again: bool,
    /// A condition that must hold after success. Without it, an operation that always does the same
    /// wrong thing would match its own reference run.
    pub postcondition: Option<fn(&Sim) -> bool>,
}

impl Spec {
    /// Specifies an operation that changes nothing and works on no disk.
    pub const fn new(name: &'static str, request: MakeRequest) -> Self {
        let config = Config::default;
        Self {
            name,
            request,
            config,
            changes: &[],
            disk: None,
            may_omit: false,
            may_leave: false,
            denied: false,
            formats_again: false,
            postcondition: None,
        }
    }

    /// Gives the node other settings than the default ones.
    #[must_use]
    pub const fn with(self, config: fn() -> Config) -> Self {
        Self { config, ..self }
    }

    /// Allows changes of the lines of a snapshot that begin with one of `changes`.
    #[must_use]
    pub const fn may_change(self, changes: &'static [&'static str]) -> Self {
        Self { changes, ..self }
    }

    /// Allows an answer without a disk that could not be read.
    #[must_use]
    pub const fn may_omit_disks(self) -> Self {
        Self {
            may_omit: true,
            ..self
        }
    }

    /// Allows a success that leaves the node as it was.
    #[must_use]
    pub const fn may_leave_node(self) -> Self {
        Self {
            may_leave: true,
            ..self
        }
    }

    /// Requires that the operation is denied.
    #[must_use]
    pub const fn must_be_denied(self) -> Self {
        Self {
            denied: true,
            ..self
        }
    }

    /// Allows to format a volume that has a file system.
    #[must_use]
    pub const fn may_format_again(self) -> Self {
        Self {
            formats_again: true,
            ..self
        }
    }

    /// Requires that `postcondition` holds after a success.
    #[must_use]
    pub const fn ensures(self, postcondition: fn(&Sim) -> bool) -> Self {
        Self {
            postcondition: Some(postcondition),
            ..self
        }
    }

    /// Names the disk that the operation works on.
    #[must_use]
    pub const fn on_disk(self, number: u32) -> Self {
        Self {
            disk: Some(number),
            ..self
        }
    }

    /// Returns the operation's name without the arguments that may follow it.
    pub fn operation(&self) -> &'static str {
        self.name.split('(').next().unwrap_or(self.name)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.spec.name, self.state.name)
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns all scenarios except those of [`races`].
pub fn all() -> Vec<Scenario> {
    [
        disk::scenarios(),
        volume::scenarios(),
        filesystem::scenarios(),
        siblings::scenarios(),
        nested::scenarios(),
        smb::scenarios(),
        iscsi::scenarios(),
        system::scenarios(),
    ]
    .concat()
}

/// Combines each of `specs` with each of `states`.
fn combine(specs: &[Spec], states: &[State]) -> Vec<Scenario> {
    combine_all(specs, states, |spec| spec)
}

/// Combines each of `specs`, with what `common` adds to all of them, with each of `states`.
fn combine_all(specs: &[Spec], states: &[State], common: impl Fn(Spec) -> Spec) -> Vec<Scenario> {
    let with_state = |spec: &Spec, state: &State| Scenario {
        state: *state,
        spec: common(*spec),
    };
    specs
        .iter()
        .flat_map(|spec| states.iter().map(|state| with_state(spec, state)))
        .collect()
}

pub(crate) fn boxed(operation: impl Operation) -> Box<dyn Request> {
    Box::new(operation)
}

pub(crate) fn path(text: &str) -> HostPath {
    HostPath::parse(text).expect("the tables contain valid paths")
}

pub(crate) fn secret_text(text: &str) -> SecretText {
    SecretText::parse(text.to_owned(), "the secret").expect("the tables contain valid texts")
}

/// Returns the first volume of a disk, or a volume ID that no node has if the disk has no volume.
pub(crate) fn volume(sim: &Sim, disk: u32) -> VolumeId {
    let name = sim.volume_on(disk).map(|volume| volume.name());
    let name =
        name.unwrap_or_else(|| r"\\?\Volume{00000000-0000-0000-0000-00000000dead}\".to_owned());
    VolumeId::parse(&name).expect("a valid volume name")
}
