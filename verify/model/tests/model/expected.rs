//! The transitions of the reference model: the new state and the expected answer of each call.

mod disk;
mod events;
mod filesystem;
mod smb;
mod volume;

pub(crate) use volume::OVERHEAD;

use std::collections::BTreeMap;

use tonic::Code;

use crate::directory_tree::{DiskKey, Names};
use crate::messages::Payload;
use crate::reference_model::{INNER, KUBELET, Model};
use crate::transition::{Call, Transition, VolumeName};

/// The expected answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Returns(Payload),
    /// The locations of the disks that are listed.
    Locations(BTreeMap<u32, [String; 4]>),
    /// These disks, with page 83 identifier and serial number where the model knows them.
    Ids(BTreeMap<u32, Option<[String; 2]>>),
    /// These volumes, in this order.
    Volumes(Vec<DiskKey>),
    /// A size slightly below `extent`, which stays the same within a `size_generation`.
    Stats {
        extent: u64,
        size_generation: u32,
    },
    /// A failure with one of these codes; a request may be invalid in several ways.
    Fails(Vec<Code>),
    /// A failure whose message contains these words.
    FailsWith(Code, &'static str),
    /// The contract does not specify the answer; the state does not change.
    Unspecified,
}

/// The words that drivers take as "not staged yet".
const NOT_MOUNTED: &str = "because it does not exist";

const NOT_FOUND: &[Code] = &[Code::NotFound];
const INVALID: &[Code] = &[Code::InvalidArgument];
const PRECONDITION: &[Code] = &[Code::FailedPrecondition];
/// Windows does not distinguish a file as a parent from a missing parent.
const BEHIND_FILE: &[Code] = &[Code::NotFound, Code::FailedPrecondition];
const TAKEN: &[Code] = &[Code::AlreadyExists, Code::FailedPrecondition];

impl Expected {
    pub(crate) fn nothing() -> Self {
        Self::Returns(Payload::Empty)
    }

    fn bool(value: bool) -> Self {
        Self::Returns(Payload::Bool(value))
    }

    fn fails(codes: &[Code]) -> Self {
        Self::Fails(codes.to_vec())
    }
}

/// The codes of everything that is invalid in a request.
#[derive(Default)]
struct Violations(Vec<Code>);

impl Violations {
    fn of(codes: &[Code]) -> Self {
        Self(codes.to_vec())
    }

    /// Returns the value of `outcome`, or collects its codes.
    fn collect<T>(&mut self, outcome: Result<T, Self>) -> Option<T> {
        outcome.map_err(|Self(codes)| self.0.extend(codes)).ok()
    }

    fn into_result(self) -> Checked<()> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl From<Violations> for Expected {
    fn from(Violations(codes): Violations) -> Self {
        Self::Fails(codes)
    }
}

type Checked<T> = Result<T, Violations>;

/// Returns the expected answer, also for a request that is invalid.
fn expected_of(answer: Checked<Expected>) -> Expected {
    answer.unwrap_or_else(Expected::from)
}

/// Parses a path that must be absolute and have a drive.
fn strict(text: &str) -> Checked<Names> {
    let invalid = || Violations::of(INVALID);
    let (drive, rest) = text.split_at_checked(2).ok_or_else(invalid)?;
    let rest = rest.strip_prefix('\\').ok_or_else(invalid)?;
    if !drive.eq_ignore_ascii_case("c:")
        || text.encode_utf16().count() > 260
        || rest.contains(['"', '/', ':', '?', '*', '|'])
    {
        return Err(invalid());
    }
    let names: Names = rest.split('\\').map(str::to_lowercase).collect();
    if names.iter().any(|name| name == "..") {
        Err(invalid())
    } else {
        Ok(names)
    }
}

/// Parses a path that may lack the drive and may have forward slashes.
fn loose(text: &str) -> Checked<Names> {
    let text = text.replace('/', "\\");
    let bare = text.starts_with('\\') && !text.starts_with(r"\\");
    strict(&if bare { format!("C:{text}") } else { text })
}

/// Checks that a path is inside the working directory.
fn working(names: Names) -> Checked<Names> {
    let inside =
        names.len() > KUBELET.len() && names.iter().zip(KUBELET).all(|(name, known)| name == known);
    if inside {
        Ok(names)
    } else {
        Err(Violations::of(&[
            Code::PermissionDenied,
            Code::InvalidArgument,
        ]))
    }
}

/// Checks that a path is inside the working directory, and neither is nor contains the one inside
/// of it.
fn changeable(names: Names) -> Checked<Names> {
    let is_boundary = names
        .iter()
        .map(String::as_str)
        .eq(INNER.into_iter().take(names.len()));
    if is_boundary {
        Err(Violations::of(&[Code::PermissionDenied]))
    } else {
        working(names)
    }
}

impl Model {
    /// Returns the volume that a call names, if Windows shows it.
    fn named(&self, id: &VolumeName) -> Checked<DiskKey> {
        match id {
            VolumeName::Known(key) if self.is_present(*key) => Ok(*key),
            VolumeName::Known(_) | VolumeName::Unknown => Err(Violations::of(NOT_FOUND)),
            VolumeName::Malformed(_) => Err(Violations::of(INVALID)),
        }
    }

    /// Whether the contract specifies the effect of a transition.
    pub(crate) fn specifies(&self, transition: &Transition) -> bool {
        match transition {
            // For a mapping from before a restart, an outage cannot be distinguished from a broken
            // mapping.
            Transition::Call(Call::NewSmbGlobalMapping { .. }, _) => {
                self.smb_reachable || self.mappings.values().all(|mapping| mapping.known)
            }
            _ => true,
        }
    }

    /// Applies a transition and computes the expected answer.
    pub(crate) fn apply(mut self, transition: &Transition) -> Self {
        self.expected = match transition {
            Transition::Call(call, _) => self.call(call),
            Transition::Event(event) if self.apply_event(event) => Expected::nothing(),
            Transition::Event(_) => Expected::Unspecified,
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
            Call::IsVolumeFormatted(id) => expected_of(self.is_volume_formatted(id)),
            Call::FormatVolume(id) => expected_of(self.format_volume(id)),
            Call::MountVolume(id, at) => expected_of(self.mount_volume(id, at)),
            Call::UnmountVolume(id, at) => expected_of(self.unmount_volume(id, at)),
            Call::ResizeVolume(id, size) => expected_of(self.resize_volume(id, *size)),
            Call::ResizeDisk(number, size) => expected_of(self.resize_disk(*number, *size)),
            Call::GetVolumeStats(id) => expected_of(self.get_volume_stats(id)),
            Call::GetDiskNumberFromVolumeId(id) => {
                expected_of(self.get_disk_number_from_volume_id(id))
            }
            Call::GetVolumeIdFromTargetPath(at) => {
                expected_of(self.get_volume_id_from_target_path(at))
            }
            Call::GetClosestVolumeIdFromTargetPath(at) => {
                expected_of(self.get_closest_volume_id_from_target_path(at))
            }
            Call::WriteVolumeCache(id) => expected_of(self.write_volume_cache(id)),

            Call::PathExists(path) => expected_of(self.path_exists(path)),
            Call::Mkdir(path) => expected_of(self.mkdir(path)),
            Call::Rmdir(path, force) => expected_of(self.rmdir(path, *force)),
            Call::RmdirContents(path) => expected_of(self.rmdir_contents(path)),
            Call::CreateSymlink { source, link } => expected_of(self.create_symlink(source, link)),
            Call::IsSymlink(path) => expected_of(self.is_symlink(path)),

            Call::NewSmbGlobalMapping {
                remote,
                local,
                user,
                password,
            } => expected_of(self.new_smb_global_mapping(remote, local, user, password)),
            Call::RemoveSmbGlobalMapping(remote) => {
                expected_of(self.remove_smb_global_mapping(remote))
            }
        }
    }
}
