//! Which accounts other than administrators may replace a file or folder, or open a pipe, by its
//! security descriptor.

use os::abi::{
    AccessEntry, DELETE, ENTRY_INHERIT_ONLY, EntryKind, FILE_APPEND_DATA, FILE_DELETE_CHILD,
    FILE_WRITE_ATTRIBUTES, FILE_WRITE_DATA, GENERIC_ALL, GENERIC_WRITE, SecurityDescriptor, Sid,
    WRITE_DAC, WRITE_OWNER,
};

/// LocalSystem, Administrators, and the service that installs Windows' own files.
const TRUSTED: [&str; 3] = [
    "S-1-5-18",
    "S-1-5-32-544",
    "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464",
];
/// The administrator account, the domain's administrators and the forest's: the last number of
/// their SIDs, which begin with the domain's.
const TRUSTED_IN_DOMAIN: [&str; 3] = ["-500", "-512", "-519"];
const DOMAIN: &str = "S-1-5-21-";

const EVERYONE: &str = "S-1-1-0";
/// In the list of a folder, this stands for the owner of each new entry. No account has this SID.
const CREATOR_OWNER: &str = "S-1-3-0";
/// An entry for this SID replaces the implicit rights of the owner.
const OWNER_RIGHTS: &str = "S-1-3-4";

/// The role of an object on the path of a file that must not be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The file itself.
    File,
    /// The folder of the file. An account that may add files there can add a DLL, or a link to
    /// which the daemon then writes.
    Folder,
    /// A folder above that folder. Adding entries does no harm there, but replacing entries does.
    Above,
    /// An empty folder. As [`Self::Above`]; in addition, an account that may write its attributes
    /// can make it a junction.
    Empty,
}

/// The rights that allow `FSCTL_SET_REPARSE_POINT`; each is enough. It turns an empty folder into a
/// junction, and a file into a symbolic link, which cannot be opened if the account may not create
/// symbolic links. A folder with entries cannot become a link.
///
/// [MS-FSA] 2.1.5.10.37:
/// <https://learn.microsoft.com/openspecs/windows_protocols/ms-fsa/4aeefef8-92c3-4abc-af7a-a610caf8a165>
const SET_REPARSE_POINT: u32 = FILE_WRITE_DATA | FILE_WRITE_ATTRIBUTES;

impl Role {
    /// Returns the rights that let an account replace an object of this role.
    fn harmful_rights(self) -> u32 {
        let replace = DELETE | WRITE_DAC | WRITE_OWNER;
        match self {
            Self::File => replace | FILE_APPEND_DATA | SET_REPARSE_POINT,
            Self::Folder => replace | FILE_APPEND_DATA | SET_REPARSE_POINT | FILE_DELETE_CHILD,
            Self::Above => replace | FILE_DELETE_CHILD,
            Self::Empty => replace | FILE_DELETE_CHILD | SET_REPARSE_POINT,
        }
    }
}

/// Returns the SIDs of the accounts and groups, other than administrators, that may replace an
/// object of this role.
///
/// The members of groups are not known. An entry that denies rights therefore counts only for the
/// same account or group, or if it is for everyone.
pub fn who_may_replace(role: Role, descriptor: &SecurityDescriptor) -> Vec<String> {
    let Some(entries) = &descriptor.entries else {
        return vec![EVERYONE.to_owned()];
    };
    let effective = || {
        entries
            .iter()
            .filter(|entry| entry.flags & ENTRY_INHERIT_ONLY == 0)
    };
    let owner = descriptor.owner.as_ref().map(Sid::to_string);
    let mut found = Vec::new();
    let mut add = |sid: &str| {
        if sid != CREATOR_OWNER && !is_trusted(sid) && !found.iter().any(|other| other == sid) {
            found.push(sid.to_owned());
        }
    };
    // The owner may change the list, unless an entry states the owner's rights.
    if let Some(owner) = &owner
        && !effective().any(|entry| entry.sid.to_string() == OWNER_RIGHTS)
    {
        add(owner);
    }
    for (at, entry) in effective().enumerate() {
        if !matches!(entry.kind, EntryKind::Allow | EntryKind::AllowIf) {
            continue;
        }
        let granted = expanded(entry.rights) & !denied(effective().take(at), &entry.sid);
        if granted & role.harmful_rights() != 0 {
            let sid = entry.sid.to_string();
            add(owner
                .as_ref()
                .filter(|_| sid == OWNER_RIGHTS)
                .unwrap_or(&sid));
        }
    }
    found
}

/// Returns the rights that these entries deny to the account.
fn denied<'e>(entries: impl Iterator<Item = &'e AccessEntry>, sid: &Sid) -> u32 {
    let denies = entries.filter(|entry| entry.kind == EntryKind::Deny);
    let concerns = denies.filter(|entry| entry.sid == *sid || entry.sid.to_string() == EVERYONE);
    concerns.fold(0, |rights, entry| rights | expanded(entry.rights))
}

/// Expands the generic rights that include writing.
fn expanded(rights: u32) -> u32 {
    if rights & GENERIC_ALL != 0 {
        u32::MAX
    } else if rights & GENERIC_WRITE != 0 {
        rights | FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_WRITE_ATTRIBUTES
    } else {
        rights
    }
}

/// The right to read data (`FILE_READ_DATA`).
const FILE_READ_DATA: u32 = 0x1;
/// `GENERIC_READ`.
const GENERIC_READ: u32 = 0x8000_0000;
/// The rights with which a client uses a pipe.
const USE_OF_PIPE: u32 = FILE_READ_DATA | FILE_WRITE_DATA | FILE_APPEND_DATA | GENERIC_READ;

/// Returns the SIDs of the accounts and groups, other than administrators, that may open a pipe.
pub fn who_may_open(descriptor: &SecurityDescriptor) -> Vec<String> {
    let Some(entries) = &descriptor.entries else {
        return vec![EVERYONE.to_owned()];
    };
    let mut found = Vec::new();
    for entry in entries
        .iter()
        .filter(|entry| matches!(entry.kind, EntryKind::Allow | EntryKind::AllowIf))
    {
        let sid = entry.sid.to_string();
        let may_use = expanded(entry.rights) & USE_OF_PIPE != 0;
        if may_use && sid != OWNER_RIGHTS && !is_trusted(&sid) && !found.contains(&sid) {
            found.push(sid);
        }
    }
    found
}

/// Accounts and groups by their SIDs, and whether ordinary users or containers belong to them.
/// <https://learn.microsoft.com/windows/win32/secauthz/well-known-sids>
const WELL_KNOWN: [(&str, &str, bool); 14] = [
    (EVERYONE, "Everyone", true),
    ("S-1-5-11", "Authenticated Users", true),
    ("S-1-5-32-545", "Users", true),
    ("S-1-5-32-546", "Guests", true),
    ("S-1-5-32-547", "Power Users", true),
    ("S-1-5-4", "INTERACTIVE", true),
    ("S-1-5-2", "NETWORK", true),
    ("S-1-5-6", "SERVICE", true),
    ("S-1-5-7", "ANONYMOUS LOGON", true),
    ("S-1-15-2-1", "all application packages", true),
    ("S-1-5-93-2-2", "ContainerUser", true),
    ("S-1-5-93-2-1", "ContainerAdministrator", false),
    ("S-1-5-19", "LocalService", false),
    ("S-1-5-20", "NetworkService", false),
];
/// The last numbers of the SIDs of a domain's users, guests and computers.
const ORDINARY_IN_DOMAIN: [&str; 3] = ["-513", "-514", "-515"];

/// Returns the English name of a well-known account or group.
pub fn name_of(sid: &str) -> Option<&'static str> {
    WELL_KNOWN
        .iter()
        .find(|(known, ..)| *known == sid)
        .map(|(_, name, _)| *name)
}

/// Returns whether ordinary users or containers belong to this group.
pub fn is_ordinary(sid: &str) -> bool {
    let is_well_known = WELL_KNOWN
        .iter()
        .any(|(known, _, is_ordinary)| *known == sid && *is_ordinary);
    is_well_known
        || sid.starts_with(DOMAIN) && ORDINARY_IN_DOMAIN.iter().any(|end| sid.ends_with(end))
}

/// Returns whether the account is LocalSystem, Windows' own installer or an administrator, as far
/// as its SID shows.
pub fn is_trusted(sid: &str) -> bool {
    TRUSTED.contains(&sid)
        || sid.starts_with(DOMAIN) && TRUSTED_IN_DOMAIN.iter().any(|end| sid.ends_with(end))
}

#[cfg(test)]
mod tests {
    use os::abi::{AccessEntry, EntryKind, SecurityDescriptor, Sid};

    use super::Role::{Above, Empty, File, Folder};
    use super::{Role, is_ordinary, name_of, who_may_open, who_may_replace};

    const SYSTEM: &str = "S-1-5-18";
    const ADMINISTRATORS: &str = "S-1-5-32-544";
    const USERS: &str = "S-1-5-32-545";
    const AUTHENTICATED: &str = "S-1-5-11";
    const SOMEBODY: &str = "S-1-5-21-1-2-3-1001";
    const OWNER_RIGHTS: &str = "S-1-3-4";

    const ALL: [Role; 4] = [File, Folder, Above, Empty];

    const FULL: u32 = 0x1f_01ff;
    const MODIFY: u32 = 0x13_01bf;
    const READ: u32 = 0x12_00a9;

    /// Kind (`AceType`), flags, rights and SID of an entry.
    type Entry = (u8, u8, u32, &'static str);

    fn descriptor(owner: &str, entries: &[Entry]) -> SecurityDescriptor {
        let sid = |text: &str| text.parse::<Sid>().unwrap();
        let entry = |(kind, flags, rights, account): &Entry| {
            let kinds = [
                (0, EntryKind::Allow),
                (1, EntryKind::Deny),
                (9, EntryKind::AllowIf),
                (10, EntryKind::DenyIf),
            ];
            let (_, kind) = kinds
                .into_iter()
                .find(|(number, _)| number == kind)
                .unwrap();
            AccessEntry {
                kind,
                flags: *flags,
                rights: *rights,
                sid: sid(account),
            }
        };
        SecurityDescriptor {
            owner: Some(sid(owner)),
            entries: Some(entries.iter().map(entry).collect()),
        }
    }

    fn found(role: Role, owner: &str, entries: &[Entry]) -> Vec<String> {
        who_may_replace(role, &descriptor(owner, entries))
    }

    /// Entries as drive C: of Windows 10 has them: authenticated users may create folders in it,
    /// and modify what is in them.
    const DRIVE: [Entry; 5] = [
        (0, 3, FULL, ADMINISTRATORS),
        (0, 3, FULL, SYSTEM),
        (0, 3, READ, USERS),
        (0, 0xb, 0xe001_0000, AUTHENTICATED),
        (0, 0, 0x4, AUTHENTICATED),
    ];

    #[test]
    fn only_administrators_may_replace_what_service_install_creates() {
        for role in ALL {
            let entries = [(0, 3, FULL, SYSTEM), (0, 3, FULL, ADMINISTRATORS)];
            assert!(found(role, ADMINISTRATORS, &entries).is_empty(), "{role:?}");
        }
    }

    #[test]
    fn the_default_access_below_a_drive_lets_authenticated_users_replace_the_program() {
        let inherited = [
            (0, 0x13, FULL, ADMINISTRATORS),
            (0, 0x13, READ, USERS),
            (0, 0x13, MODIFY, AUTHENTICATED),
        ];
        for role in ALL {
            assert_eq!(
                found(role, ADMINISTRATORS, &inherited),
                [AUTHENTICATED],
                "{role:?}"
            );
        }
    }

    #[test]
    fn who_may_add_a_folder_to_a_drive_cannot_replace_one_there() {
        assert!(found(Above, SYSTEM, &DRIVE).is_empty());
        assert_eq!(
            found(Folder, SYSTEM, &DRIVE),
            [AUTHENTICATED],
            "a program in the root of a drive"
        );
    }

    /// As below drive C: of Windows Server, where users may create files in folders that others
    /// have created.
    #[test]
    fn who_may_add_a_file_may_add_a_dll() {
        let entries = [
            (0, 0x12, 0x4, USERS),
            (0, 0x12, 0x2, USERS),
            (0, 0x1b, 0x1000_0000, "S-1-3-0"),
        ];
        assert_eq!(found(Folder, ADMINISTRATORS, &entries), [USERS]);
        assert!(found(Above, ADMINISTRATORS, &entries).is_empty());
    }

    #[test]
    fn the_owner_may_change_the_list_unless_an_entry_states_the_rights_of_the_owner() {
        let full = (0, 0, FULL, ADMINISTRATORS);
        assert_eq!(found(Folder, SOMEBODY, &[full]), [SOMEBODY]);
        assert!(found(Folder, SOMEBODY, &[full, (0, 0, READ, OWNER_RIGHTS)]).is_empty());
        assert_eq!(
            found(Folder, SOMEBODY, &[full, (0, 8, READ, OWNER_RIGHTS)]),
            [SOMEBODY],
            "for what is in the folder"
        );
        assert_eq!(
            found(Folder, SOMEBODY, &[full, (0, 0, MODIFY, OWNER_RIGHTS)]),
            [SOMEBODY]
        );
        assert!(
            found(
                Folder,
                ADMINISTRATORS,
                &[full, (0, 0, MODIFY, OWNER_RIGHTS)]
            )
            .is_empty()
        );
    }

    #[test]
    fn a_right_that_an_earlier_entry_denies_is_not_granted() {
        let (deny, allow) = ((1, 0, FULL, USERS), (0, 0, MODIFY, USERS));
        assert!(found(Folder, SYSTEM, &[deny, allow]).is_empty());
        assert_eq!(found(Folder, SYSTEM, &[allow, deny]), [USERS]);
        assert!(
            found(Folder, SYSTEM, &[(1, 0, 0x1000_0000, "S-1-1-0"), allow]).is_empty(),
            "everyone is denied"
        );
        assert_eq!(
            found(Folder, SYSTEM, &[(1, 0, FULL, SOMEBODY), allow]),
            [USERS],
            "only one of them is denied"
        );
        assert_eq!(
            found(Folder, SYSTEM, &[(10, 0, FULL, USERS), allow]),
            [USERS],
            "the condition may not hold"
        );
    }

    #[test]
    fn every_right_that_lets_an_account_replace_an_object_counts() {
        for (rights, roles) in [
            (0x2, &[File, Folder, Empty][..]),
            (0x4, &[File, Folder]),
            (0x40, &[Folder, Above, Empty]),
            (0x100, &[File, Folder, Empty]),
            (0x1_0000, &ALL),
            (0x4_0000, &ALL),
            (0x8_0000, &ALL),
            (0x1000_0000, &ALL),
            (0x4000_0000, &[File, Folder, Empty]),
            (READ, &[]),
            (0x90, &[]), // extended attributes, and reading attributes
        ] {
            for role in ALL {
                for kind in [0, 9] {
                    let is_found = !found(role, SYSTEM, &[(kind, 0, rights, USERS)]).is_empty();
                    assert_eq!(is_found, roles.contains(&role), "{rights:x} {role:?}");
                }
            }
        }
    }

    #[test]
    fn administrators_of_a_domain_are_trusted_and_other_accounts_are_not() {
        let trusted = [
            "S-1-5-21-1-2-3-500",
            "S-1-5-21-1-2-3-512",
            "S-1-5-21-1-2-3-519",
            SYSTEM,
            ADMINISTRATORS,
        ];
        for account in trusted {
            assert!(
                found(Folder, SYSTEM, &[(0, 0, FULL, account)]).is_empty(),
                "{account}"
            );
        }
        for account in [
            "S-1-5-21-1-2-3-501",
            "S-1-5-21-1-2-3-513",
            "S-1-5-32-551",
            "S-1-5-80-1-2-3-4-500",
            "S-1-1-0",
        ] {
            assert_eq!(
                found(
                    Folder,
                    SYSTEM,
                    &[(0, 0, FULL, account), (0, 0, FULL, account)]
                ),
                [account]
            );
        }
    }

    #[test]
    fn without_a_list_everyone_has_all_access() {
        let descriptor = SecurityDescriptor {
            owner: None,
            entries: None,
        };
        assert_eq!(who_may_replace(Above, &descriptor), ["S-1-1-0"]);
    }

    #[test]
    fn who_may_open_a_pipe_is_told_from_who_may_only_read_its_descriptor() {
        let own = [
            (0, 0, 0xc000_0000, SYSTEM),
            (0, 0, 0x12_019f, ADMINISTRATORS),
            (0, 0, 0x2_0000, OWNER_RIGHTS),
        ];
        assert!(who_may_open(&descriptor(ADMINISTRATORS, &own)).is_empty());
        for rights in [1, 2, 4, 0x1000_0000, 0x4000_0000, 0x8000_0000] {
            assert_eq!(
                who_may_open(&descriptor(SYSTEM, &[(0, 0, rights, USERS)])),
                [USERS],
                "{rights:x}"
            );
        }
        assert!(
            who_may_open(&descriptor(
                SYSTEM,
                &[(1, 0, FULL, USERS), (0, 0, 0x2_0000, USERS)]
            ))
            .is_empty()
        );
        assert_eq!(
            who_may_open(&SecurityDescriptor {
                owner: None,
                entries: None
            }),
            ["S-1-1-0"]
        );
    }

    #[test]
    fn groups_of_ordinary_users_are_told_from_single_accounts() {
        for sid in [
            "S-1-1-0",
            USERS,
            AUTHENTICATED,
            "S-1-5-93-2-2",
            "S-1-5-21-1-2-3-513",
        ] {
            assert!(is_ordinary(sid), "{sid}");
        }
        for sid in [SOMEBODY, "S-1-5-93-2-1", "S-1-5-20", "S-1-5-80-513"] {
            assert!(!is_ordinary(sid), "{sid}");
        }
        assert_eq!((name_of(USERS), name_of(SOMEBODY)), (Some("Users"), None));
    }
}
