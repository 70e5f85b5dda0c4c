//! Security descriptors: the owner of an object, and who may access it.

use std::fmt;
use std::str::FromStr;

/// The right to write data to a file, or to create a file in a directory (`FILE_WRITE_DATA`,
/// `FILE_ADD_FILE`).
pub const FILE_WRITE_DATA: u32 = 0x2;
/// The right to append to a file, or to create a directory in a directory (`FILE_APPEND_DATA`,
/// `FILE_ADD_SUBDIRECTORY`).
pub const FILE_APPEND_DATA: u32 = 0x4;
/// The right to delete any entry of a directory.
pub const FILE_DELETE_CHILD: u32 = 0x40;
/// The right to change the attributes of a file or directory, and to make an empty directory a
/// junction.
pub const FILE_WRITE_ATTRIBUTES: u32 = 0x100;
/// The right to delete or rename the object.
pub const DELETE: u32 = 0x1_0000;
/// The right to change the access control list of the object.
pub const WRITE_DAC: u32 = 0x4_0000;
/// The right to change the owner of the object.
pub const WRITE_OWNER: u32 = 0x8_0000;
/// All rights.
pub const GENERIC_ALL: u32 = 0x1000_0000;
/// The rights to write; for a file, among others [`FILE_WRITE_DATA`] and [`FILE_APPEND_DATA`].
pub const GENERIC_WRITE: u32 = 0x4000_0000;

/// The entry is for the objects in a directory, and has no meaning for the directory
/// (`INHERIT_ONLY_ACE`).
pub const ENTRY_INHERIT_ONLY: u8 = 0x8;

/// `SE_DACL_PRESENT`.
const DACL_PRESENT: u16 = 0x4;

/// A security identifier (`SID`): an account or a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sid {
    authority: u64,
    sub_authorities: Vec<u32>,
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S-1-{}", self.authority)?;
        self.sub_authorities
            .iter()
            .try_for_each(|number| write!(f, "-{number}"))
    }
}

/// The error of a text that is not a SID in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASid;

impl FromStr for Sid {
    type Err = NotASid;

    /// Parses the numeric form, `S-1-5-32-544`.
    fn from_str(text: &str) -> Result<Self, NotASid> {
        let mut numbers = text.strip_prefix("S-1-").ok_or(NotASid)?.split('-');
        let authority = numbers
            .next()
            .and_then(|number| number.parse().ok())
            .ok_or(NotASid)?;
        let sub_authorities: Vec<u32> = numbers
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|_| NotASid)?;
        let is_valid = authority < 1 << 48 && (1..=15).contains(&sub_authorities.len());
        is_valid
            .then_some(Self {
                authority,
                sub_authorities,
            })
            .ok_or(NotASid)
    }
}

impl Sid {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<8>()?;
        let [revision, count, authority @ ..] = head;
        let numbers = rest.get(..usize::from(*count) * 4)?.chunks_exact(4);
        let sub_authorities =
            numbers.filter_map(|bytes| bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)));
        let authority = authority
            .iter()
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        (*revision == 1).then(|| Self {
            authority,
            sub_authorities: sub_authorities.collect(),
        })
    }
}

/// What an entry of an access control list does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// It grants rights.
    Allow,
    /// It denies rights.
    Deny,
    /// It grants rights under a condition.
    AllowIf,
    /// It denies rights under a condition.
    DenyIf,
}

/// An entry of an access control list (`ACE`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessEntry {
    /// What it does.
    pub kind: EntryKind,
    /// Flags, such as [`ENTRY_INHERIT_ONLY`].
    pub flags: u8,
    /// The rights.
    pub rights: u32,
    /// The account or group.
    pub sid: Sid,
}

impl AccessEntry {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let kind = match bytes.first()? {
            0 => EntryKind::Allow,
            1 => EntryKind::Deny,
            9 => EntryKind::AllowIf,
            10 => EntryKind::DenyIf,
            // Entries for the properties of directory objects, and what no document describes.
            _ => return None,
        };
        Some(Self {
            kind,
            flags: *bytes.get(1)?,
            rights: number(bytes, 4)?,
            sid: Sid::parse(bytes.get(8..)?)?,
        })
    }
}

/// A security descriptor with the parts that decide who may access an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityDescriptor {
    /// The owner.
    pub owner: Option<Sid>,
    /// The access control list. Without one, everyone has all rights; an empty one grants none.
    pub entries: Option<Vec<AccessEntry>>,
}

impl SecurityDescriptor {
    /// Decodes a self-relative descriptor (`SECURITY_DESCRIPTOR_RELATIVE`). Returns `None` for
    /// bytes that are not one, and for a list with an entry of an unknown kind.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let at = |offset: u32| {
            usize::try_from(offset)
                .ok()
                .and_then(|offset| bytes.get(offset..))
        };
        let control = u16::from_le_bytes(*bytes.get(2..)?.first_chunk()?);
        let owner = match number(bytes, 4)? {
            0 => None,
            offset => Some(Sid::parse(at(offset)?)?),
        };
        let entries = match number(bytes, 16)? {
            offset if offset != 0 && control & DACL_PRESENT != 0 => Some(parse_list(at(offset)?)?),
            _ => None,
        };
        Some(Self { owner, entries })
    }
}

/// Decodes an access control list (`ACL`).
fn parse_list(bytes: &[u8]) -> Option<Vec<AccessEntry>> {
    let size = |bytes: &[u8], offset: usize| {
        bytes
            .get(offset..)?
            .first_chunk()
            .map(|bytes| usize::from(u16::from_le_bytes(*bytes)))
    };
    let list = bytes.get(..size(bytes, 2)?)?;
    let mut rest = list.get(8..)?;
    let mut entries = Vec::new();
    for _ in 0..size(list, 4)? {
        let (entry, following) = rest.split_at_checked(size(rest, 2)?)?;
        entries.push(AccessEntry::parse(entry)?);
        rest = following;
    }
    Some(entries)
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::{AccessEntry, ENTRY_INHERIT_ONLY, EntryKind, NotASid, SecurityDescriptor, Sid};

    /// The descriptor of `O:BAD:P(A;;0x1301bf;;;AU)(D;OICIIO;GA;;;BU)` as Windows lays it out:
    /// head, owner, list.
    fn example() -> Vec<u8> {
        let owner = [1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0];
        let allow = [
            0, 0, 20, 0, 0xbf, 1, 0x13, 0, 1, 1, 0, 0, 0, 0, 0, 5, 11, 0, 0, 0,
        ];
        let deny = [
            1, 0xb, 24, 0, 0, 0, 0, 0x10, 1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x21, 2, 0, 0,
        ];
        let head = [
            1, 0, 4, 0x90, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 36, 0, 0, 0,
        ];
        let list = [2, 0, 8 + 20 + 24, 0, 2, 0, 0, 0];
        [&head[..], &owner, &list, &allow, &deny].concat()
    }

    #[test]
    fn owner_and_entries_are_decoded() {
        let descriptor = SecurityDescriptor::parse(&example()).unwrap();
        assert_eq!(descriptor.owner.unwrap().to_string(), "S-1-5-32-544");
        let [allow, deny] = <[AccessEntry; 2]>::try_from(descriptor.entries.unwrap()).unwrap();
        assert_eq!(
            (allow.kind, allow.flags, allow.rights),
            (EntryKind::Allow, 0, 0x0013_01bf)
        );
        assert_eq!(allow.sid.to_string(), "S-1-5-11");
        assert_eq!(
            (deny.kind, deny.flags & ENTRY_INHERIT_ONLY, deny.rights),
            (EntryKind::Deny, 8, 0x1000_0000)
        );
        assert_eq!(deny.sid.to_string(), "S-1-5-32-545");
    }

    #[test]
    fn a_sid_is_parsed_from_its_text() {
        for text in ["S-1-5-32-544", "S-1-1-0", "S-1-5-18"] {
            assert_eq!(text.parse::<Sid>().unwrap().to_string(), text);
        }
        let long = "S-1-5".to_owned() + &"-1".repeat(16);
        for text in [
            "",
            "S-1-",
            "BA",
            "S-1-5",
            "S-1-5-x",
            "S-1-5-4294967296",
            "S-1-281474976710656-1",
            &long,
        ] {
            assert_eq!(text.parse::<Sid>(), Err(NotASid), "{text}");
        }
    }

    #[test]
    fn a_descriptor_without_a_list_differs_from_one_with_an_empty_list() {
        for (control, list) in [(0x8000_u16, 0_u8), (0x8004, 0), (0x8000, 36)] {
            let mut bytes = example();
            bytes[2..4].copy_from_slice(&control.to_le_bytes());
            bytes[16] = list;
            assert_eq!(
                SecurityDescriptor::parse(&bytes).unwrap().entries,
                None,
                "{control:x} {list}"
            );
        }
        let mut bytes = example();
        bytes[40] = 0; // the count of entries
        assert_eq!(
            SecurityDescriptor::parse(&bytes).unwrap().entries,
            Some(Vec::new())
        );
    }

    #[test]
    fn truncated_and_garbled_descriptors_are_refused() {
        let bytes = example();
        for length in 0..bytes.len() {
            assert_eq!(
                SecurityDescriptor::parse(&bytes[..length]),
                None,
                "{length}"
            );
        }
        for (at, value) in [
            (20, 2),
            (21, 200),
            (38, 7),
            (40, 200),
            (44, 5),
            (46, 3),
            (46, 200),
            (53, 200),
        ] {
            let mut bytes = example();
            bytes[at] = value;
            assert_eq!(
                SecurityDescriptor::parse(&bytes),
                None,
                "byte {at} is {value}"
            );
        }
    }
}
