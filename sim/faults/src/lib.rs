//! Wrappers of an [`os::Os`] that watch and disturb its calls, for tests.
//!
//! [`Probed`] is an `Os` as one process sees it, with a [`Probe`] called before and after each
//! call. Three probes are provided: [`Fault`] makes a chosen call fail, take longer or end the
//! process; [`Race`] runs a step of another actor right before a chosen call; [`Trace`] counts and
//! records all calls.
//!
//! [`Layered`] is an `Os` that changes a few calls and forwards all others; a [`Layer`] names the
//! calls it changes. One is provided: [`CorruptingOs`] replaces one kind of answer with other
//! bytes.
//!
//! None of them knows which `Os` it wraps: the simulated node, another wrapper or a test double.
//!
//! ```
//! use faults::{Fault, FaultAction, Probed, When};
//! use os::{Os, OsError};
//!
//! let node = os_sim::node().build();
//! let first_call_fails = Fault::at(0, When::Before, FaultAction::Fail(OsError::IO_DEVICE));
//! let probed = Probed::new(node.process(), first_call_fails);
//! assert_eq!(probed.volumes(), Err(OsError::IO_DEVICE));
//! assert!(probed.volumes().is_ok());
//! ```

mod corruption;
mod fault;
mod layer;
mod primitives;
mod probe;
mod race;
mod trace;

pub use corruption::{CorruptedAnswer, CorruptingOs, Corruption};
pub use fault::{Fault, When};
pub use layer::{Layer, Layered};
pub use probe::{Call, FaultAction, Outcome, PRIMITIVES, Probe, Probed, matches};
pub use race::Race;
pub use trace::{Counts, Record, Trace};
