//! Reparse points: symbolic links, junctions and volume mount points.

use os::abi::{
    ControlCode, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, FileAttributeTagInfo,
    MountPointReparse, REPARSE_TAG_MOUNT_POINT, REPARSE_TAG_SYMLINK, ReparseHead, SYMLINK_RELATIVE,
    SymlinkReparse,
};
use os::{Handle, NtPath, OsError, OsResult, U16Str, U16String};
use zerocopy::IntoBytes;

use crate::devices::buffer;
use crate::types::{HostPath, VolumeId};

/// `MAXIMUM_REPARSE_DATA_BUFFER_SIZE`.
const MAX_SIZE: usize = 16 * 1024;

/// The bit of tags whose files stand for another file or directory: links and mount points.
const NAME_SURROGATE: u32 = 0x2000_0000;

/// The bit of tags whose directories have entries of their own. It is never set together with
/// [`NAME_SURROGATE`].
/// <https://learn.microsoft.com/openspecs/windows_protocols/ms-fscc/c8e77b37-3909-4fe6-a4ea-2b9d423b1ee4>
const DIRECTORY: u32 = 0x1000_0000;

/// A reparse point and its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// A symbolic link to an NT path.
    Symlink(U16String),
    /// A symbolic link to a path relative to the directory of the link.
    Relative(U16String),
    /// A junction or volume mount point to an NT path.
    MountPoint(U16String),
    /// A reparse point that is not a link, such as a placeholder for a file in cloud storage.
    Other,
}

impl Link {
    /// Reads the reparse point behind `handle`, which was opened without following it. Returns
    /// `None` for an ordinary file or directory.
    pub(crate) fn of(handle: &dyn Handle) -> OsResult<Option<Self>> {
        Self::with(buffer::attributes(handle)?, handle)
    }

    /// Like [`Self::of`], for an object that must be a directory or a link.
    ///
    /// Errors: `DIRECTORY` for a file.
    pub(crate) fn of_directory(handle: &dyn Handle) -> OsResult<Option<Self>> {
        let info = buffer::attributes(handle)?;
        if info.attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT) == 0 {
            return Err(OsError::DIRECTORY);
        }
        Self::with(info, handle)
    }

    fn with(info: FileAttributeTagInfo, handle: &dyn Handle) -> OsResult<Option<Self>> {
        if info.attributes & FILE_ATTRIBUTE_REPARSE_POINT == 0 {
            return Ok(None);
        }
        if info.reparse_tag != REPARSE_TAG_SYMLINK && info.reparse_tag != REPARSE_TAG_MOUNT_POINT {
            return Ok(Some(Self::Other));
        }
        let mut data = [0; MAX_SIZE];
        let filled = handle.control(ControlCode::FSCTL_GET_REPARSE_POINT, &[], &mut data)?;
        Self::parse(&data[..filled.min(MAX_SIZE)])
            .map(Some)
            .ok_or(OsError::FILE_CORRUPT)
    }

    /// Decodes a reparse data buffer.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let head: ReparseHead = buffer::at(data, 0)?;
        let data = data.get(size_of::<ReparseHead>()..)?;
        let data = data.get(..usize::from(head.data_length))?;
        match head.tag {
            REPARSE_TAG_SYMLINK => {
                let link: SymlinkReparse = buffer::at(data, 0)?;
                let start = size_of::<SymlinkReparse>() + usize::from(link.substitute_offset);
                let name = buffer::units_at(data, start, link.substitute_length.into())?;
                Some(if link.flags & SYMLINK_RELATIVE == 0 {
                    Self::Symlink(name)
                } else {
                    Self::Relative(name)
                })
            }
            REPARSE_TAG_MOUNT_POINT => {
                let link: MountPointReparse = buffer::at(data, 0)?;
                let start = size_of::<MountPointReparse>() + usize::from(link.substitute_offset);
                Some(Self::MountPoint(buffer::units_at(
                    data,
                    start,
                    link.substitute_length.into(),
                )?))
            }
            _ => Some(Self::Other),
        }
    }

    /// Returns the mounted volume, if this is a volume mount point.
    pub(crate) fn volume(&self) -> Option<VolumeId> {
        match self {
            Self::MountPoint(target) => VolumeId::from_substitute(target),
            _ => None,
        }
    }

    /// Returns the target, if it is on a volume that is named by its GUID: the volume, and the path
    /// below its root directory.
    pub(crate) fn path_on_volume(&self) -> Option<(VolumeId, U16String)> {
        let (Self::Symlink(target) | Self::MountPoint(target)) = self else {
            return None;
        };
        let text = target.to_string().ok()?;
        let (name, below) = text.split_at(text.find('}')? + 1);
        let volume = VolumeId::from_substitute(&U16String::from_str(&format!(r"{name}\")))?;
        // Without a backslash, the target is the device.
        let below = HostPath::parse(&format!("C:{below}")).ok()?;
        Some((volume, below.names().to_owned()))
    }

    /// Returns the server that the target is on, in lower case.
    pub(crate) fn server(&self) -> Option<String> {
        let (Self::Symlink(target) | Self::MountPoint(target)) = self else {
            return None;
        };
        let rest = starts_with(target, UNC).then(|| target.as_slice().get(UNC.len()..))??;
        let server = rest.split(|unit| *unit == u16::from(b'\\')).next()?;
        Some(String::from_utf16_lossy(server).to_lowercase())
    }

    /// Returns the target, if it is on a drive, a volume or a server. Only Windows can resolve
    /// others.
    ///
    /// Any process that can write to a directory chooses the target. The name of a device or a pipe
    /// must not be opened: Windows refuses some of them if it follows a link, but not if they are
    /// opened by name.
    pub(crate) fn nt_target(&self) -> Option<NtPath> {
        let (Self::Symlink(target) | Self::MountPoint(target)) = self else {
            return None;
        };
        (is_local(target) || starts_with(target, UNC)).then(|| NtPath::from_win32(target))
    }

    /// Returns whether the target is a pipe or mailslot of a server, which may be this node:
    /// `\\host\pipe\x`.
    ///
    /// Unlike a pipe that is opened by its local name, it may not be opened even by Windows
    /// following the link: csi-proxy would log on to the server as `LocalSystem`.
    pub(crate) fn leads_to_pipe(&self) -> bool {
        const SHARES: [&str; 3] = ["pipe", "ipc$", "mailslot"];
        let (Self::Symlink(target) | Self::MountPoint(target)) = self else {
            return false;
        };
        let text = target.to_string_lossy().to_lowercase();
        match text
            .strip_prefix(r"\??\unc\")
            .map(|remote| remote.split('\\').filter(|name| !name.is_empty()))
        {
            // A redirector may be named before the server.
            Some(mut names) => names
                .find(|name| !name.starts_with(';'))
                .and(names.next())
                .is_some_and(|name| SHARES.contains(&name)),
            None => {
                text.contains(r"\device\mup\")
                    && text.split('\\').any(|name| SHARES.contains(&name))
            }
        }
    }

    /// Returns the target, if it is a path on a drive.
    pub(crate) fn host_path(&self) -> Option<HostPath> {
        let (Self::Symlink(target) | Self::MountPoint(target)) = self else {
            return None;
        };
        HostPath::parse(target.to_string().ok()?.strip_prefix(r"\??\")?).ok()
    }

    /// Returns the target, if it is a path on a drive that means the same to Windows and as a
    /// [`HostPath`]: each of its components is one of a file, and it does not end with a backslash.
    pub(crate) fn plain_host_path(&self) -> Option<HostPath> {
        self.host_path()
            .filter(|path| self.nt_target() == Some(path.to_nt()))
    }

    /// Returns whether the target is, or may be, on a server: whether it is not on a drive or a
    /// volume. A relative target may lead through other links.
    pub(crate) fn is_remote(&self) -> bool {
        if matches!(self, Self::Relative(_)) {
            return true;
        }
        let (Self::Symlink(target) | Self::MountPoint(target)) = self else {
            return false;
        };
        !is_local(target)
    }
}

/// Returns whether the target of a link is on a drive or a volume.
///
/// A drive is not examined further. LocalSystem sees only global drive letters, and only
/// LocalSystem can map one of them to a share; what other accounts map belongs to their logon
/// sessions.
/// <https://learn.microsoft.com/windows-hardware/drivers/kernel/local-and-global-ms-dos-device-names>
/// <https://learn.microsoft.com/windows/win32/fileio/defining-an-ms-dos-device-name>
fn is_local(target: &U16Str) -> bool {
    let is_drive =
        starts_with(target, r"\??\") && target.as_slice().get(5) == Some(&u16::from(b':'));
    is_drive || starts_with(target, r"\??\Volume{")
}

/// The beginning of the name of a directory on a server, in the namespace of the NT object manager.
const UNC: &str = r"\??\UNC\";

/// Returns the target of a link as Win32 programs show it: `C:\...` and `\\host\share\...` for
/// names below `\??\`.
pub(crate) fn win32_name(target: &U16Str) -> String {
    let name = target.to_string_lossy();
    match (
        name.strip_prefix(r"\??\UNC\"),
        name.strip_prefix(r"\??\Volume{"),
        name.strip_prefix(r"\??\"),
    ) {
        (Some(remote), ..) => format!(r"\\{remote}"),
        (None, Some(volume), _) => format!(r"\\?\Volume{{{volume}"),
        (None, None, Some(local)) => local.to_owned(),
        (None, None, None) => name,
    }
}

/// Returns whether a reparse point with these attributes and this tag stands for another file or
/// directory. Others, such as the placeholders of cloud storage, have entries of their own if they
/// are directories.
pub(crate) fn is_surrogate(info: FileAttributeTagInfo) -> bool {
    info.attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 && info.reparse_tag & NAME_SURROGATE != 0
}

/// Returns whether a directory with these attributes and this tag has entries of its own, as
/// Windows decides if a path leads through it: it has no reparse point, or one whose tag says so.
pub(crate) fn has_own_entries(info: FileAttributeTagInfo) -> bool {
    let is_plain = info.attributes & FILE_ATTRIBUTE_REPARSE_POINT == 0;
    is_plain || info.reparse_tag & (DIRECTORY | NAME_SURROGATE) == DIRECTORY
}

/// Returns whether `text` starts with `prefix`, in any case.
fn starts_with(text: &U16Str, prefix: &str) -> bool {
    let start = text
        .as_slice()
        .iter()
        .take(prefix.len())
        .map(|unit| upper(*unit));
    start.eq(prefix.encode_utf16().map(upper))
}

fn upper(unit: u16) -> u16 {
    u8::try_from(unit).map_or(unit, |byte| byte.to_ascii_uppercase().into())
}

/// Makes the empty file or directory behind `handle` a symbolic link to the NT path `substitute`
/// with the print name `print`.
///
/// Errors: `FILENAME_EXCED_RANGE` if the names do not fit into a reparse point.
pub(crate) fn set_symlink(
    handle: &dyn Handle,
    substitute: &U16Str,
    print: &U16Str,
) -> OsResult<()> {
    let data = symlink_data(substitute, print).ok_or(OsError::FILENAME_EXCED_RANGE)?;
    buffer::send(handle, ControlCode::FSCTL_SET_REPARSE_POINT, &data)
}

/// Encodes the reparse data buffer of a symbolic link. Returns `None` if the names do not fit.
fn symlink_data(substitute: &U16Str, print: &U16Str) -> Option<Vec<u8>> {
    let (substitute, print) = (
        substitute.as_slice().as_bytes(),
        print.as_slice().as_bytes(),
    );
    let length = size_of::<SymlinkReparse>() + substitute.len() + print.len();
    if length + size_of::<ReparseHead>() > MAX_SIZE {
        return None;
    }
    let head = ReparseHead {
        tag: REPARSE_TAG_SYMLINK,
        data_length: u16::try_from(length).ok()?,
        reserved: 0,
    };
    let link = SymlinkReparse {
        substitute_offset: 0,
        substitute_length: u16::try_from(substitute.len()).ok()?,
        print_offset: u16::try_from(substitute.len()).ok()?,
        print_length: u16::try_from(print.len()).ok()?,
        flags: 0,
    };
    Some([head.as_bytes(), link.as_bytes(), substitute, print].concat())
}

#[cfg(test)]
mod tests {
    use super::{Link, symlink_data, win32_name};
    use os::U16String;

    #[test]
    fn a_target_is_shown_as_win32_programs_show_it() {
        for (target, shown) in [
            (r"\??\C:\var\lib", r"C:\var\lib"),
            (r"\??\UNC\host\share\", r"\\host\share\"),
            (
                r"\??\Volume{7d2b3c4e-0000-0000-0000-100000000000}\",
                r"\\?\Volume{7d2b3c4e-0000-0000-0000-100000000000}\",
            ),
            (r"..\x", r"..\x"),
        ] {
            assert_eq!(win32_name(&U16String::from_str(target)), shown);
        }
    }

    #[test]
    fn a_link_to_a_server_or_a_volume_tells_which() {
        let volume = r"\??\Volume{7d2b3c4e-0000-0000-0000-100000000000}\";
        for (target, server) in [
            (r"\??\UNC\Files\one\", Some("files")),
            (r"\??\unc\files", Some("files")),
            (r"\??\C:\UNC\files", None),
            (r"\??\U", None),
            (volume, None),
        ] {
            let link = Link::MountPoint(U16String::from_str(target));
            assert_eq!(
                (link.server().as_deref(), link.volume().is_some()),
                (server, target == volume),
                "{target}"
            );
        }
    }

    #[test]
    fn a_target_that_is_not_on_a_drive_or_a_volume_may_be_on_a_server() {
        for (target, is_remote, is_nt) in [
            (r"\??\C:\var", false, true),
            (r"\??\c:", false, true),
            (
                r"\??\volume{7d2b3c4e-0000-0000-0000-100000000000}\x",
                false,
                true,
            ),
            (r"\??\unc\host\share", true, true),
            (r"\??\GLOBALROOT\Device\Mup\host\share", true, false),
            (r"\??\pipe\x", true, false),
            (r"\??\PhysicalDrive0", true, false),
            (r"\??\GLOBALROOT\Device\NamedPipe\x", true, false),
            (r"\Device\Mup\host\share", true, false),
            (r"\\?\C:\var", true, false),
        ] {
            let target_units = U16String::from_str(target);
            for link in [
                Link::Symlink(target_units.clone()),
                Link::MountPoint(target_units),
            ] {
                assert_eq!(
                    (link.is_remote(), link.nt_target().is_some()),
                    (is_remote, is_nt),
                    "{target}"
                );
            }
        }
        assert!(Link::Relative(U16String::from_str("x")).is_remote());
    }

    fn name(length: usize) -> U16String {
        U16String::from_vec(vec![u16::from(b'x'); length])
    }

    #[test]
    fn names_that_exceed_16_kib_with_their_headers_are_refused() {
        // The header of a reparse point has 8 bytes, that of a symbolic link 12.
        let units = (16 * 1024 - 8 - 12) / 2;
        for substitute in [1, 4000, units] {
            let (nt, print) = (name(substitute), name(units - substitute));
            let data = symlink_data(&nt, &print).unwrap();
            assert_eq!(data.len(), 16 * 1024);
            assert_eq!(Link::parse(&data), Some(Link::Symlink(nt.clone())));
            assert_eq!(symlink_data(&nt, &name(units - substitute + 1)), None);
        }
        let name = U16String::from_vec(vec![u16::from(b'x'); 64 * 1024]);
        assert_eq!(symlink_data(&name, &name), None);
    }

    #[test]
    fn the_target_is_found_at_any_offset_among_the_names() {
        let (print, nt) = (r"C:\d", r"\??\C:\d");
        let bytes = |text: &str| {
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<_>>()
        };
        let offsets = [bytes(print).len(), bytes(nt).len(), 0, bytes(print).len()];
        let offsets: Vec<_> = offsets
            .iter()
            .flat_map(|n| u16::try_from(*n).unwrap().to_le_bytes())
            .collect();
        let target = U16String::from_str(nt);
        for (tag, flags, link) in [
            (0xa000_000c_u32, &[0; 4][..], Link::Symlink(target.clone())),
            (0xa000_000c, &[1, 0, 0, 0], Link::Relative(target.clone())),
            (0xa000_0003, &[], Link::MountPoint(target)),
        ] {
            let body = [&offsets, flags, &bytes(print), &bytes(nt)].concat();
            let length = u32::try_from(body.len()).unwrap();
            let data = [&tag.to_le_bytes()[..], &length.to_le_bytes(), &body].concat();
            assert_eq!(Link::parse(&data), Some(link));
        }
    }
}
