//! [`Sim`]: a simulated node, and the changes that a test can make to it.

mod additions;

use std::sync::Arc;
use std::time::Duration;

use os::abi::DiskAttributes;
use os::{Clock, OsError, Time, Uuid};

use crate::clock::timing::Timing;
use crate::clock::{ClockMode, SharedState};
use crate::description::{Description, DescriptionError, DiskDescription};
use crate::disks::Disk;
use crate::external::External;
use crate::files::file_system::FileSystem;
use crate::iscsi::PortalAddress;
use crate::process::Process;
use crate::registry::Registry;
use crate::state::{Event, State};
use crate::wmi::storage_jobs::FormatArguments;

/// A simulated Windows node, as one process on it sees it through [`os::Os`]. Clones are the same
/// process.
///
/// The process ends when its last clone is dropped: Windows closes its handles, and every call on a
/// handle that the program still holds fails with `INVALID_HANDLE`. Jobs that the process started
/// in the storage provider continue.
#[derive(Clone, Debug)]
pub struct Sim {
    pub(crate) process: Arc<Process>,
}

/// The description of [`Sim::default_node`].
pub(crate) const DEFAULT_NODE: &str = include_str!("default_node.toml");

impl Sim {
    pub(crate) fn new(state: State) -> Self {
        Self {
            process: Arc::new(Process::new(SharedState::new(state))),
        }
    }

    /// Creates a node from a description.
    pub fn describe(description: &Description) -> Result<Self, DescriptionError> {
        State::describe(description).map(Self::new)
    }

    /// Creates a node from a description in TOML.
    pub fn from_toml(text: &str) -> Result<Self, DescriptionError> {
        Self::describe(&Description::from_toml(text)?)
    }

    /// Creates the built-in node. It has the objects that the drivers look for: disks as Azure,
    /// Google, Amazon and VMware present them, SMB servers, iSCSI targets and services.
    pub fn default_node() -> Self {
        Self::from_toml(DEFAULT_NODE).expect("the built-in description is valid")
    }

    pub(crate) fn shared(&self) -> &Arc<SharedState> {
        &self.process.shared
    }

    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.shared().with(act)
    }

    /// Starts another process on the node and returns the node as that process sees it.
    pub fn process(&self) -> Arc<Self> {
        let process = Process::new(Arc::clone(self.shared()));
        Arc::new(Self {
            process: Arc::new(process),
        })
    }

    /// Starts a process whose account lacks the privilege to create symbolic links
    /// (`SeCreateSymbolicLinkPrivilege`).
    pub fn process_without_symlink_privilege(&self) -> Arc<Self> {
        let started = self.process();
        self.with(|state| state.without_symlink_privilege.insert(started.process.id));
        started
    }

    /// Returns the file operations of a container on the node, which do not go through csi-proxy.
    pub fn external(&self) -> External<'_> {
        External(self.shared())
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.shared().now()
    }

    /// Advances the simulated time by `span` and lets the events that are due happen.
    pub fn advance(&self, span: Duration) {
        self.shared().advance(span);
    }

    /// Stops the clock. From now on only [`Self::advance`] advances the time, and threads that wait
    /// block until then.
    #[must_use]
    pub fn held(self) -> Self {
        self.shared().set_mode(|_| ClockMode::Held);
        self
    }

    /// Makes simulated time follow the wall clock from now on.
    #[must_use]
    pub fn real_time(self) -> Self {
        self.shared().follow_real_time();
        self
    }

    /// Sets all durations to zero: those of the node's operations, and those of the answers of all
    /// servers.
    #[must_use]
    pub fn fast(self) -> Self {
        self.with(|state| {
            state.timing = Timing::NONE;
            for service in &mut state.services.services {
                service.start_takes = Duration::ZERO;
                service.stop_takes = Duration::ZERO;
            }
            state
                .smb
                .servers
                .iter_mut()
                .for_each(|server| server.answer_takes = Duration::ZERO);
            state
                .iscsi
                .portals
                .iter_mut()
                .for_each(|portal| portal.answer_takes = Duration::ZERO);
        });
        self
    }

    /// Sets whether an offline volume answers `IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS`. Default:
    /// false.
    pub fn set_offline_volumes_have_extents(&self, have_extents: bool) {
        self.with(|state| state.offline_volumes_have_extents = have_extents);
    }

    /// Makes the storage provider's cache out of date for every disk: another size, other
    /// attributes and no partitions.
    pub fn make_provider_stale(&self) {
        self.with(|state| state.disks.values_mut().for_each(Disk::make_cache_stale));
    }

    /// Changes how long operations take.
    pub fn set_timing(&self, change: impl FnOnce(&mut Timing)) {
        self.with(|state| change(&mut state.timing));
    }

    /// Attaches a disk and returns its number. If it is not `detected`, Windows shows it after the
    /// next rescan.
    pub fn attach_disk(
        &self,
        disk: &DiskDescription,
        detected: bool,
    ) -> Result<u32, DescriptionError> {
        self.with(|state| state.attach(disk, detected))
    }

    /// Removes a disk without warning, as if its cable were pulled. Returns a handle for
    /// [`Self::plug_disk`], or `None` if no disk has this number.
    pub fn unplug_disk(&self, number: u32) -> Option<u64> {
        self.with(|state| {
            let device = state.attached_device(number)?;
            let disk = state.detach(device)?;
            state.unplugged.insert(device, disk);
            Some(device)
        })
    }

    /// Attaches an unplugged disk and returns its number, which may differ from the one it had. If
    /// it is not `detected`, Windows shows it after the next rescan. Returns `None` if no unplugged
    /// disk has this handle.
    pub fn plug_disk(&self, handle: u64, detected: bool) -> Option<u32> {
        self.with(|state| {
            let disk = state.unplugged.remove(&handle)?;
            Some(state.reattach(disk, detected))
        })
    }

    /// Formats a volume with NTFS, as another program does. Its files are lost. Returns false if
    /// the volume does not exist.
    pub fn format(&self, volume: Uuid) -> bool {
        let ntfs = FormatArguments {
            volume,
            kind: "NTFS".to_owned(),
            cluster_size: None,
        };
        self.with(|state| state.format(&ntfs) == 0)
    }

    /// Sets whether a disk is read-only, as another program does.
    pub fn set_disk_read_only(&self, number: u32, read_only: bool) {
        self.with(|state| {
            if let Some(device) = state.device(number) {
                state.set_attribute(device, DiskAttributes::READ_ONLY, read_only);
            }
        });
    }

    /// Returns the names of the services.
    pub fn service_names(&self) -> Vec<String> {
        self.with(|state| {
            state
                .services
                .services
                .iter()
                .map(|service| service.name.clone())
                .collect()
        })
    }

    /// Sets the error of requests to a device that was removed. Default: `DEV_NOT_EXIST`.
    pub fn set_removed_code(&self, code: OsError) {
        self.with(|state| state.removed_code = Some(code));
    }

    /// Enlarges a disk to `bytes`. Windows does not detect the new size by itself.
    ///
    /// Returns false if no disk has this number, or if the disk already has at least this size.
    pub fn grow_disk(&self, number: u32, bytes: u64) -> bool {
        self.with(|state| {
            let device = state.attached_device(number);
            let Some(disk) = device.and_then(|device| state.disks.get_mut(&device)) else {
                return false;
            };
            let grows = bytes > disk.size;
            disk.size = disk.size.max(bytes);
            grows
        })
    }

    /// Deletes a partition without a mounted volume, as another program does with a control code.
    /// The storage provider learns of it when its cache is refreshed.
    ///
    /// Returns false if the disk or the partition does not exist.
    pub fn delete_partition(&self, disk: u32, partition: u32) -> bool {
        self.with(|state| {
            let Some(disk) = state
                .device(disk)
                .and_then(|device| state.disks.get_mut(&device))
            else {
                return false;
            };
            let before = disk.partitions.len();
            disk.partitions.retain(|known| known.number != partition);
            disk.partitions.len() < before
        })
    }

    /// Changes a user's password on an SMB server. Mappings made with the old password can no
    /// longer be used.
    ///
    /// Returns false if there is no such user.
    pub fn rotate_smb_password(&self, host: &str, user: &str, password: &str) -> bool {
        self.with(|state| state.smb.rotate(host, user, password))
    }

    /// Sets whether an SMB server answers. Returns false if there is no such server.
    pub fn set_smb_reachable(&self, host: &str, reachable: bool) -> bool {
        self.with(|state| {
            let server = state
                .smb
                .servers
                .iter_mut()
                .find(|server| server.host.eq_ignore_ascii_case(host));
            server.map(|server| server.reachable = reachable).is_some()
        })
    }

    /// Sets whether an iSCSI portal answers. Returns false if there is no such portal.
    ///
    /// A session through a portal that stops has no connection until the portal answers again. After
    /// [`Self::set_iscsi_hold_time`], Windows removes its disks.
    pub fn set_portal_reachable(&self, address: &str, port: u16, reachable: bool) -> bool {
        self.with(|state| {
            let at = PortalAddress::new(address, port);
            let Some(effects) = state.iscsi.set_reachable(&at, reachable, state.now) else {
                return false;
            };
            for effect in effects {
                state.apply(effect);
            }
            if !reachable {
                state.schedule(state.iscsi.hold_time, Event::IscsiHoldTimeEnds);
            }
            true
        })
    }

    /// Sets how long Windows holds requests to the disks of an iSCSI session that has lost its
    /// connection, before it removes the disks. Default: one minute, also on a node without delays.
    pub fn set_iscsi_hold_time(&self, hold_time: Duration) {
        self.with(|state| state.iscsi.hold_time = hold_time);
    }

    /// Sets whether a policy forbids storing credentials. Creating a persistent mapping with
    /// credentials then fails.
    pub fn set_stored_credentials_forbidden(&self, forbidden: bool) {
        self.with(|state| state.smb.forbids_stored_credentials = forbidden);
    }

    /// Restarts the node like [`Self::reboot`], and gives each disk except the system disk the
    /// number of another one. Different seeds give different numbers, as far as there are as many.
    pub fn reboot_with_other_disk_numbers(&self, seed: u64) {
        self.with(|state| state.renumber_disks(seed));
        self.reboot();
    }

    /// Puts another node in the place of this one, which goes on at the present time.
    pub fn replace(&self, other: &Self) {
        let mut new = other.with(|state| state.clone());
        self.with(|state| {
            new.continue_from(state);
            *state = new;
        });
    }

    /// Restarts the node: closes all handles, drops all jobs and volatile registry keys,
    /// disconnects the SMB mappings and detects all disks again.
    pub fn reboot(&self) {
        self.with(|state| {
            state.handles.clear();
            state.cancel(|event| !matches!(event, Event::JobEnds(_)));
            state.jobs.clear();
            state.job_results.clear();
            state.file_systems_mut().for_each(FileSystem::close_all);
            for disk in state.disks.values_mut() {
                disk.visible = true;
                disk.known_to_provider = true;
                disk.refresh();
                let offline = disk.is_offline();
                for volume in disk.volumes_mut() {
                    volume.arrived = !offline;
                    volume.known_to_provider = !offline;
                }
            }
            state.automount();
            state.smb.reboot();
            state.registry = Registry::default();
            state.started = state.now;
            let now = Time(state.now);
            state.services.reboot(now);
            state
                .iscsi
                .reboot()
                .into_iter()
                .for_each(|effect| state.apply(effect));
        });
    }

    /// Returns the number of open handles.
    pub fn open_handles(&self) -> usize {
        self.with(|state| state.handles.len())
    }

    /// Returns the number of WMI methods that are still running.
    pub fn running_jobs(&self) -> usize {
        self.with(|state| state.jobs.len())
    }
}
