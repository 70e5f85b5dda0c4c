//! What a node does about each step, and answers.

mod disk;
mod events;
mod filesystem;
mod iscsi;
mod smb;
mod system;
mod volume;

pub(crate) use volume::OVERHEAD;

use std::collections::BTreeMap;

use tonic::Code;

use crate::directory_tree::{Key, Names};
use crate::messages::Payload;
use crate::reference_model::{KUBELET, Model};
use crate::transition::{Call, Id, Transition};

/// What a call must be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Says(Payload),
    /// The locations of these disks, where they are listed.
    Locations(BTreeMap<u32, [String; 4]>),
    /// These disks, with page 83 and serial number where they are known.
    Ids(BTreeMap<u32, Option<[String; 2]>>),
    /// These volumes in this order.
    Volumes(Vec<Key>),
    /// A size of at most `extent` and hardly less; always the same for one `sizing`.
    Stats {
        extent: u64,
        sizing: u32,
    },
    /// One of these codes: a request may be wrong in several ways.
    Fails(Vec<Code>),
    /// A failure with these words in it.
    FailsSaying(Code, &'static str),
    /// The contract leaves it open; the node stays as it is.
    Anything,
}

/// What the drivers' end of the contract calls "not staged yet".
const NOT_MOUNTED: &str = "because it does not exist";

const NOT_THERE: &[Code] = &[Code::NotFound];
const INVALID: &[Code] = &[Code::InvalidArgument];
const PRECONDITION: &[Code] = &[Code::FailedPrecondition];
/// Windows does not tell a file on the way from nothing there.
const BEHIND_FILE: &[Code] = &[Code::NotFound, Code::FailedPrecondition];
const TAKEN: &[Code] = &[Code::AlreadyExists, Code::FailedPrecondition];

impl Expected {
    pub(crate) fn nothing() -> Self {
        Self::Says(Payload::Nothing)
    }

    fn yes(yes: bool) -> Self {
        Self::Says(Payload::Yes(yes))
    }

    fn fails(codes: &[Code]) -> Self {
        Self::Fails(codes.to_vec())
    }
}

/// All that is wrong with a request.
#[derive(Default)]
struct Faults(Vec<Code>);

impl Faults {
    fn of(codes: &[Code]) -> Self {
        Self(codes.to_vec())
    }

    /// What `outcome` has, or its fault noted.
    fn note<T>(&mut self, outcome: Result<T, Self>) -> Option<T> {
        outcome.map_err(|Self(codes)| self.0.extend(codes)).ok()
    }

    fn none(self) -> Checked<()> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl From<Faults> for Expected {
    fn from(Faults(codes): Faults) -> Self {
        Self::Fails(codes)
    }
}

type Checked<T> = Result<T, Faults>;

/// Turns an early end into the answer.
fn either(answer: Checked<Expected>) -> Expected {
    answer.unwrap_or_else(Expected::from)
}

/// Reads a path that must be absolute on a drive.
fn strict(text: &str) -> Checked<Names> {
    let invalid = || Faults::of(INVALID);
    let (drive, rest) = text.split_at_checked(2).ok_or_else(invalid)?;
    let rest = rest.strip_prefix('\\').ok_or_else(invalid)?;
    if !drive.eq_ignore_ascii_case("c:")
        || text.encode_utf16().count() > 260
        || rest.contains(['"', '/', ':', '?', '*', '|'])
    {
        return Err(invalid());
    }
    let names: Names = rest.split('\\').map(str::to_lowercase).collect();
    if names.iter().any(|name| name == "..") { Err(invalid()) } else { Ok(names) }
}

/// Reads a path that may lack a drive and have forward slashes.
fn loose(text: &str) -> Checked<Names> {
    let text = text.replace('/', "\\");
    let bare = text.starts_with('\\') && !text.starts_with(r"\\");
    strict(&if bare { format!("C:{text}") } else { text })
}

/// Checks that a path lies in a working directory, and is not one.
fn working(names: Names) -> Checked<Names> {
    let inside = names.len() > KUBELET.len() && names.iter().zip(KUBELET).all(|(name, known)| name == known);
    if inside { Ok(names) } else { Err(Faults::of(&[Code::PermissionDenied, Code::InvalidArgument])) }
}

impl Model {
    /// A volume that a call names: one that can be had.
    fn named(&self, id: &Id) -> Checked<Key> {
        match id {
            Id::Of(key) if self.is_present(*key) => Ok(*key),
            Id::Of(_) | Id::Nobody => Err(Faults::of(NOT_THERE)),
            Id::Text(_) => Err(Faults::of(INVALID)),
        }
    }

    /// Whether the contract says what becomes of the node.
    pub(crate) fn decides(&self, step: &Transition) -> bool {
        match step {
            // Of a mapping that another daemon has left, nobody can tell an outage from the end.
            Transition::Call(Call::NewSmbGlobalMapping { .. }, _) => {
                self.network || self.mappings.values().all(|mapping| mapping.known)
            }
            _ => true,
        }
    }

    pub(crate) fn step(mut self, step: &Transition) -> Self {
        self.expected = match step {
            Transition::Call(call, _) => self.call(call),
            Transition::Event(event) if self.happen(event) => Expected::nothing(),
            Transition::Event(_) => Expected::Anything,
        };
        self
    }

    fn call(&mut self, call: &Call) -> Expected {
        match call {
            Call::ListDiskLocations => self.list_disk_locations(),
            Call::ListDiskIds => self.list_disk_ids(),
            Call::GetDiskNumberByName(name) => self.get_disk_number_by_name(name),
            Call::GetDiskStats(number) => self.get_disk_stats(*number),
            Call::GetDiskState(number) => self.get_disk_state(*number),
            Call::SetDiskState(number, online) => self.set_disk_state(*number, *online),
            Call::PartitionDisk(number) => self.partition_disk(*number),
            Call::Rescan => self.rescan(),

            Call::ListVolumesOnDisk(number, part) => self.list_volumes_on_disk(*number, *part),
            Call::IsVolumeFormatted(id) => either(self.is_volume_formatted(id)),
            Call::FormatVolume(id) => either(self.format_volume(id)),
            Call::MountVolume(id, at) => either(self.mount_volume(id, at)),
            Call::UnmountVolume(id, at) => either(self.unmount_volume(id, at)),
            Call::ResizeVolume(id, size) => either(self.resize_volume(id, *size)),
            Call::ResizeDisk(number, size) => either(self.resize_disk(*number, *size)),
            Call::GetVolumeStats(id) => either(self.get_volume_stats(id)),
            Call::GetDiskNumberFromVolumeId(id) => either(self.get_disk_number_from_volume_id(id)),
            Call::GetVolumeIdFromTargetPath(at) => either(self.get_volume_id_from_target_path(at)),
            Call::GetClosestVolumeIdFromTargetPath(at) => either(self.get_closest_volume_id_from_target_path(at)),
            Call::WriteVolumeCache(id) => either(self.write_volume_cache(id)),

            Call::PathExists(path) => either(self.path_exists(path)),
            Call::Mkdir(path) => either(self.mkdir(path)),
            Call::Rmdir(path, force) => either(self.rmdir(path, *force)),
            Call::RmdirContents(path) => either(self.rmdir_contents(path)),
            Call::CreateSymlink { source, link } => either(self.create_symlink(source, link)),
            Call::IsSymlink(path) => either(self.is_symlink(path)),

            Call::NewSmbGlobalMapping { remote, local, user, password } => {
                either(self.new_smb_global_mapping(remote, local, user, password))
            }
            Call::RemoveSmbGlobalMapping(remote) => either(self.remove_smb_global_mapping(remote)),

            Call::GetBiosSerialNumber => Expected::Says(Payload::Text(crate::reference_model::BIOS.to_owned())),
            Call::GetService(name) => self.get_service(name),
            Call::StartService(name) => self.start_service(name),
            Call::StopService(name, force) => self.stop_service(name, *force),

            Call::ListTargetPortals => self.list_target_portals(),
            Call::AddTargetPortal(at) => self.add_target_portal(at),
            Call::DiscoverTargetPortal(at) => self.discover_target_portal(at),
            Call::RemoveTargetPortal(at) => self.remove_target_portal(at),
            Call::ConnectTarget { iqn, method, secret } => self.connect_target(iqn, method, secret),
            Call::DisconnectTarget(iqn) => self.disconnect_target(iqn),
            Call::GetTargetDisks(iqn) => self.get_target_disks(iqn),
            Call::SetMutualChapSecret(secret) => self.set_mutual_chap_secret(secret),
        }
    }
}
