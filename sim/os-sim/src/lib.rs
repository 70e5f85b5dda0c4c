//! A simulated Windows node: disks, partitions, volumes, files, services, SMB, iSCSI and WMI, with a clock of its own.
//!
//! It answers what Windows answers, byte for byte where that is bytes, so that all of csi-proxy above [`os`] runs
//! on it unchanged, and so that drivers can be tested where there is no Windows. It is not a mock: there is one
//! state, which everything changes and reads, and [`Sim::invariants`] says whether it still makes sense.
//!
//! ```
//! use os::{Os, Uuid};
//!
//! let node = os_sim::node().disk(10 << 30).partitioned().formatted("NTFS").build();
//! assert_eq!(node.volumes().unwrap().len(), 2, "the system's and the new one");
//! ```
//!
//! Simulated time moves when somebody waits: a sleeper, or a call that takes time, moves it and lets happen what
//! falls due. Where nobody blocks, as in an asynchronous test, [`Sim::advance`] or [`Sim::real_time`] move it.

mod builder;
mod clock;
mod description;
mod disks;
mod external;
mod files;
mod hex;
pub mod iscsi;
mod process;
pub mod services;
mod sim;
pub mod smb;
pub mod smbios;
mod state;
mod view;
mod wmi;

pub use builder::{Builder, node};
pub use clock::timing::Timing;
pub use description::{
    Content, Description, DescriptionError, DiskDescription, FileDescription, Page83, Span, VolumeHealth,
};
pub use external::External;
pub use process::Process;
pub use sim::{DetachedDisk, Sim};
pub use view::{DiskView, FileKind, FileView, PartitionView, Snapshot, VolumeView};
pub use wmi::{method_call, wql};
