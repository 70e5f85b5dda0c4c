//! A simulated Windows node: disks, partitions, volumes, files, services, SMB, iSCSI and WMI, with
//! its own clock.
//!
//! The node answers as Windows does, and fills buffers in Windows' layout, byte for byte. All
//! layers of csi-proxy above [`os`] therefore run unchanged on the node, and drivers can be tested
//! without Windows. The node is no mock: all calls read and change one state, and
//! [`Sim::invariants`] checks that this state is consistent.
//!
//! ```
//! use os::Os;
//!
//! let node = os_sim::node().disk(10 << 30).partitioned().formatted("NTFS").build();
//! assert_eq!(node.volumes().unwrap().len(), 2, "the system volume and the new one");
//! ```
//!
//! Simulated time advances only while a thread waits: a sleep, or a call that takes time, advances
//! the clock, and due events happen. If no thread waits, for example in an asynchronous test, call
//! [`Sim::advance`], or let the time follow the wall clock with [`Sim::real_time`].

mod builder;
mod clock;
mod description;
mod disks;
mod external;
mod files;
mod hex;
pub mod iscsi;
mod process;
mod registry;
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
    Content, Description, DescriptionError, DiskDescription, FileDescription, Page83, Span,
    VolumeHealth,
};
pub use external::External;
pub use files::file_system::Oplock;
pub use sim::Sim;
pub use view::{DiskView, FileKind, FileView, PartitionView, Snapshot, VolumeView};
pub use wmi::methods as wmi_methods;
