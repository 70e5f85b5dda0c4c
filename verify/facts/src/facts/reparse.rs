//! Reparse points: their data, and the calls on them that checks make.

use os::abi::{
    ControlCode, FileAttributeTagInfo, MountPointReparse, REPARSE_TAG_MOUNT_POINT,
    REPARSE_TAG_SYMLINK, ReparseHead, SYMLINK_RELATIVE, SymlinkReparse,
};
use os::{Access, FileInfo, Handle, Open, Options, OsError, OsResult, PathForm};
use zerocopy::IntoBytes;

use super::calls::{id, query};
use crate::node::Directory;

/// `MAXIMUM_REPARSE_DATA_BUFFER_SIZE`.
pub(super) const MAX_SIZE: usize = 16 * 1024;
/// A tag with Microsoft's bit that nothing handles.
pub(super) const UNHANDLED_TAG: u32 = 0x8000_dead;

/// Returns the UTF-16 bytes of a text.
pub(super) fn bytes(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn length(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).expect("the text is short")
}

/// Returns a reparse point with this tag and data.
pub(super) fn tagged(tag: u32, data: &[u8]) -> Vec<u8> {
    [
        ReparseHead {
            tag,
            data_length: length(data),
            reserved: 0,
        }
        .as_bytes(),
        data,
    ]
    .concat()
}

/// Returns a symbolic link with these names in this order.
pub(super) fn symlink(substitute: &str, print: &str, flags: u32) -> Vec<u8> {
    let (substitute, print) = (bytes(substitute), bytes(print));
    let link = SymlinkReparse {
        substitute_offset: 0,
        substitute_length: length(&substitute),
        print_offset: length(&substitute),
        print_length: length(&print),
        flags,
    };
    tagged(
        REPARSE_TAG_SYMLINK,
        &[link.as_bytes(), &substitute, &print].concat(),
    )
}

/// Returns a symbolic link to a path relative to its directory.
pub(super) fn relative(target: &str) -> Vec<u8> {
    symlink(target, target, SYMLINK_RELATIVE)
}

/// Returns a symbolic link to an NT path.
pub(super) fn absolute(target: &str) -> Vec<u8> {
    symlink(target, target, 0)
}

/// Returns a mount point with these names.
pub(super) fn mount_point(substitute: &str, print: &str) -> Vec<u8> {
    let (substitute, print) = (bytes(substitute), bytes(print));
    let mount = MountPointReparse {
        substitute_offset: 0,
        substitute_length: length(&substitute),
        print_offset: length(&substitute) + 2,
        print_length: length(&print),
    };
    tagged(
        REPARSE_TAG_MOUNT_POINT,
        &[mount.as_bytes(), &substitute, &[0; 2], &print, &[0; 2]].concat(),
    )
}

/// Sets a reparse point.
pub(super) fn set(handle: &dyn Handle, data: &[u8]) -> OsResult<()> {
    handle
        .control(ControlCode::FSCTL_SET_REPARSE_POINT, data, &mut [])
        .map(drop)
}

/// Reads the reparse point of a file.
pub(super) fn get(handle: &dyn Handle) -> OsResult<Vec<u8>> {
    let mut output = vec![0; MAX_SIZE];
    let filled = handle.control(ControlCode::FSCTL_GET_REPARSE_POINT, &[], &mut output)?;
    output.truncate(filled);
    Ok(output)
}

/// Returns the attributes and the tag of a file.
pub(super) fn attributes(handle: &dyn Handle) -> FileAttributeTagInfo {
    query(handle, FileInfo::AttributeTag).expect("the attributes")
}

/// Returns the Win32 path of an open file.
pub(super) fn final_path(handle: &dyn Handle) -> String {
    handle
        .final_path(PathForm::Dos)
        .expect("the path")
        .to_string_lossy()
}

impl Directory<'_> {
    /// Returns the NT path of the entry `name` as text.
    pub(super) fn nt_text(&self, name: &str) -> String {
        self.nt(name).to_string()
    }

    /// Opens the entry `name` itself, without following it.
    pub(super) fn itself(&self, name: &str, access: Access) -> Box<dyn Handle> {
        self.existing(name, access, Options::REPARSE_POINT)
            .expect("the entry opens")
    }

    /// Opens what `name` leads to.
    pub(super) fn followed(&self, name: &str) -> OsResult<Box<dyn Handle>> {
        self.existing(name, Access::READ_ATTRIBUTES, Options::empty())
    }

    /// Creates an empty file (`NON_DIRECTORY`) or directory (`DIRECTORY`) and sets its reparse
    /// point.
    pub(super) fn link_as(&self, name: &str, kind: Options, data: &[u8]) {
        let how = Open::new(Access::READ_ATTRIBUTES | Access::WRITE_ATTRIBUTES, kind);
        let handle = self.open(name, &how).expect("the entry is created");
        set(&*handle, data).expect("the reparse point is set");
    }

    /// Creates a link that has the directory attribute.
    pub(super) fn link(&self, name: &str, data: &[u8]) {
        self.link_as(name, Options::DIRECTORY, data);
    }

    /// Creates a link that has not the directory attribute.
    pub(super) fn file_link(&self, name: &str, data: &[u8]) {
        self.link_as(name, Options::NON_DIRECTORY, data);
    }

    /// Creates a junction to the NT path `target`.
    pub(super) fn junction(&self, name: &str, target: &str) {
        self.link(name, &mount_point(target, target));
    }

    /// Creates `real\inner\file`, `junction` to `real`, and `link` to `real\inner`.
    pub(super) fn tree(&self) {
        self.mkdir("real");
        self.mkdir(r"real\inner");
        self.write(r"real\inner\file", b"content");
        self.junction("junction", &self.nt_text("real"));
        self.link("link", &absolute(&self.nt_text(r"real\inner")));
    }

    /// Checks that the entry `name` leads to the same object as the entry `target` itself.
    #[track_caller]
    pub(super) fn assert_leads(&self, name: &str, target: &str) {
        let found = self
            .followed(name)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            id(&*found),
            id(&*self.itself(target, Access::READ_ATTRIBUTES)),
            "{name}"
        );
    }

    /// Checks that opening the entry `name` fails with `code`.
    #[track_caller]
    pub(super) fn assert_fails(&self, name: &str, code: OsError) {
        assert_eq!(self.followed(name).err(), Some(code), "{name}");
    }
}
