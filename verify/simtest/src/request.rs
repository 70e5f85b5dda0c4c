//! What is proved: an operation on a node in some state, and what it may change there.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use os_sim::Sim;
use storage_ops::{Error, Kind, Node, Operation};

/// An operation on a node in some state.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The node before the operation.
    pub state: State,
    /// The operation.
    pub asked: Asked,
}

/// A node's state, by name.
#[derive(Clone, Copy)]
pub struct State {
    /// What is special about it.
    pub name: &'static str,
    /// Builds such a node.
    pub build: fn() -> Sim,
}

/// Makes an operation, whose arguments may depend on the node.
pub type Ask = fn(&Sim) -> Box<dyn Request>;

/// An operation with its arguments, by name.
#[derive(Clone, Copy)]
pub struct Asked {
    /// The operation's name, with the arguments that tell it from others of the name.
    pub name: &'static str,
    /// The operation.
    pub request: Ask,
    /// How the lines of a snapshot begin that it may change. All other lines must stay.
    pub changes: &'static [&'static str],
    /// The disk it is about, if it is about one.
    pub disk: Option<u32>,
    /// Whether its answer may fall short of the undisturbed one: a list may lack a disk that could not be read, as one
    /// odd disk must not hide the others, and a size may be that from before the disk grew, as drivers break where
    /// there is none.
    pub leaves_out: bool,
    /// Whether it must be refused, as what the caller may not ask for.
    pub refused: bool,
    /// What the node must be once it has said that it is done. Without it, an operation that always did the same wrong
    /// thing would agree with itself.
    pub reaches: Option<fn(&Sim) -> bool>,
}

impl Asked {
    /// An operation that changes nothing and is about no disk.
    pub const fn new(name: &'static str, request: Ask) -> Self {
        Self { name, request, changes: &[], disk: None, leaves_out: false, refused: false, reaches: None }
    }

    /// One that may change the lines of a snapshot that begin so.
    #[must_use]
    pub const fn changing(self, changes: &'static [&'static str]) -> Self {
        Self { changes, ..self }
    }

    /// One whose answer may lack a disk that could not be read.
    #[must_use]
    pub const fn leaving_out(self) -> Self {
        Self { leaves_out: true, ..self }
    }

    /// One that must be refused.
    #[must_use]
    pub const fn refused(self) -> Self {
        Self { refused: true, ..self }
    }

    /// One after whose success this is so.
    #[must_use]
    pub const fn reaching(self, reaches: fn(&Sim) -> bool) -> Self {
        Self { reaches: Some(reaches), ..self }
    }

    /// One about disk `number`.
    #[must_use]
    pub const fn about_disk(self, number: u32) -> Self {
        Self { disk: Some(number), ..self }
    }
}

/// Each of `asked` in each of `states`.
pub fn all_of(asked: &[Asked], states: &[State]) -> Vec<Scenario> {
    asked.iter().flat_map(|asked| states.iter().map(|state| Scenario { state: *state, asked: *asked })).collect()
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.asked.name, self.state.name)
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Any operation, whatever it answers.
pub trait Request: Send + Sync {
    /// The operation's name.
    fn operation(&self) -> &'static str;
    /// What it does, to go after "cannot".
    fn describe(&self) -> String;
    /// Carries it out.
    fn run(&self, node: &Node) -> Answer;
}

/// What an operation answered, in comparable form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Success, with what it answered.
    Done(String),
    /// Its failure.
    Refused(Box<Error>),
    /// It panicked: always a defect.
    Panicked(String),
}

impl Answer {
    /// Whether it says that the caller may not ask for that.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Refused(error) if error.kind() == Kind::PermissionDenied)
    }

    /// Whether it says that the work goes on, or that somebody else's does: then one asks again later.
    pub fn says_later(&self) -> bool {
        matches!(self, Self::Refused(error) if matches!(error.kind(), Kind::Busy | Kind::StillRunning))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(output) => write!(f, "ok {output}"),
            Self::Refused(error) => write!(f, "{:?}: {error}", error.kind()),
            Self::Panicked(message) => write!(f, "panic: {message}"),
        }
    }
}

impl<O: Operation> Request for O {
    fn operation(&self) -> &'static str {
        O::NAME
    }

    fn describe(&self) -> String {
        Operation::describe(self)
    }

    fn run(&self, node: &Node) -> Answer {
        // A lock that a panic poisons is one more thing that the checks would see.
        match catch_unwind(AssertUnwindSafe(|| node.run(self))) {
            Ok(Ok(output)) => Answer::Done(format!("{output:?}")),
            Ok(Err(error)) => Answer::Refused(Box::new(error)),
            Err(panic) => {
                let words = panic.downcast_ref::<String>().cloned();
                let words = words.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                Answer::Panicked(words.unwrap_or_default())
            }
        }
    }
}
