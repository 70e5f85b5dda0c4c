//! Reparse points, setting and reading: `REP-SET`, `REP-GET` and `REP-DEL`.

use os::abi::{
    FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, REPARSE_TAG_MOUNT_POINT,
    REPARSE_TAG_SYMLINK, SYMLINK_RELATIVE, SymlinkReparse,
};
use os::{Access, FileInfo, Open, Options, OsError};
use zerocopy::IntoBytes;

use super::calls::{assert_fails, basic, set_attributes};
use super::reparse::{
    MAX_SIZE, UNHANDLED_TAG, absolute, attributes, bytes, get, mount_point, relative, set, tagged,
};
use crate::fact::Fact;

const ATTRIBUTES: Access = Access::READ_ATTRIBUTES.union(Access::WRITE_ATTRIBUTES);

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("REP-SET-01", |node| {
        let directory = node.directory();
        let set_with = |name: &str, access| {
            directory.mkdir(name);
            set(
                &*directory.itself(name, access),
                &mount_point(r"\??\C:\x", r"C:\x"),
            )
        };
        assert_eq!(set_with("attributes", Access::WRITE_ATTRIBUTES), Ok(()));
        assert_eq!(set_with("data", Access::WRITE_DATA), Ok(()));
        assert_eq!(
            set_with("read", Access::READ_ATTRIBUTES),
            Err(OsError::ACCESS_DENIED)
        );
        for (name, tag) in [
            ("attributes", REPARSE_TAG_MOUNT_POINT),
            ("data", REPARSE_TAG_MOUNT_POINT),
            ("read", 0),
        ] {
            assert_eq!(
                attributes(&*directory.itself(name, Access::READ_ATTRIBUTES)).reparse_tag,
                tag,
                "{name}"
            );
        }
    }),
    Fact::new("REP-SET-02", |node| {
        let directory = node.directory();
        directory.mkdir("full");
        directory.mkdir(r"full\entry");
        let full = directory.itself("full", ATTRIBUTES);
        for data in [
            mount_point(r"\??\C:\x", ""),
            relative("x"),
            tagged(UNHANDLED_TAG, b"data"),
        ] {
            assert_eq!(set(&*full, &data), Err(OsError::DIR_NOT_EMPTY));
        }
        assert_eq!(attributes(&*full).reparse_tag, 0);
    }),
    Fact::new("REP-SET-03", |node| {
        const TAG: u32 = UNHANDLED_TAG | 0x1000_0000;
        let directory = node.directory();
        directory.mkdir("full");
        directory.write(r"full\file", b"content");
        set(
            &*directory.itself("full", ATTRIBUTES),
            &tagged(TAG, b"data"),
        )
        .expect("the tag is set");
        assert_eq!(
            attributes(&*directory.followed("full").expect("the directory opens")).reparse_tag,
            TAG
        );
        let file = directory.followed(r"full\file").expect("the file opens");
        assert_eq!(attributes(&*file).attributes & FILE_ATTRIBUTE_DIRECTORY, 0);
    }),
    Fact::new("REP-SET-08", |node| {
        let directory = node.directory();
        directory.mkdir("target");
        let (substitute, print, zero) = (bytes("target"), bytes("the print name"), &[0_u8; 2][..]);
        let data = |offsets: [usize; 2], print_length: usize, names: &[&[u8]]| {
            let field = |length: usize| u16::try_from(length).expect("the names are short");
            let head = SymlinkReparse {
                substitute_offset: field(offsets[0]),
                substitute_length: field(substitute.len()),
                print_offset: field(offsets[1]),
                print_length: field(print_length),
                flags: SYMLINK_RELATIVE,
            };
            tagged(
                REPARSE_TAG_SYMLINK,
                &[head.as_bytes(), &names.concat()].concat(),
            )
        };
        for (name, data) in [
            (
                "in-order",
                data([0, substitute.len()], print.len(), &[&substitute, &print]),
            ),
            (
                "print-first",
                data([print.len(), 0], print.len(), &[&print, &substitute]),
            ),
            (
                "with-zeros",
                data(
                    [0, substitute.len() + 2],
                    print.len(),
                    &[&substitute, zero, &print, zero],
                ),
            ),
            ("same", data([0, 0], substitute.len(), &[&substitute])),
        ] {
            directory.link(name, &data);
            directory.assert_leads(name, "target");
        }
    }),
    Fact::new("REP-SET-11", |node| {
        let directory = node.directory();
        directory.link("mount-point", &mount_point("foobar", "foobar"));
        directory.mkdir("name");
        directory.link("link", &absolute("name"));
        directory.assert_fails("mount-point", OsError::INVALID_NAME);
        directory.assert_fails("link", OsError::INVALID_NAME);
    }),
    Fact::new("REP-SET-12", |node| {
        let unprivileged = node.os_without_symlink_privilege();
        let directory = node.directory();
        let set_on = |name: &str, data: &[u8]| {
            directory.mkdir(name);
            let how = Open::existing(ATTRIBUTES, Options::REPARSE_POINT);
            set(
                &*unprivileged
                    .open(&directory.nt(name), &how)
                    .expect("the directory opens"),
                data,
            )
        };
        assert_eq!(
            set_on("link", &relative("x")),
            Err(OsError::PRIVILEGE_NOT_HELD)
        );
        assert_eq!(set_on("mount-point", &mount_point(r"\??\C:\x", "")), Ok(()));
        assert_eq!(set_on("other", &tagged(UNHANDLED_TAG, b"data")), Ok(()));
        let tag =
            |name: &str| attributes(&*directory.itself(name, Access::READ_ATTRIBUTES)).reparse_tag;
        assert_eq!(
            ["link", "mount-point", "other"].map(tag),
            [0, REPARSE_TAG_MOUNT_POINT, UNHANDLED_TAG]
        );
    }),
    Fact::new("REP-SET-16", |node| {
        let directory = node.directory();
        directory.write("file", b"");
        let handle = directory.itself("file", ATTRIBUTES);
        let larger = set(&*handle, &tagged(UNHANDLED_TAG, &vec![7; MAX_SIZE - 8 + 1]));
        // The code is not documented.
        let codes = [
            OsError::INVALID_REPARSE_DATA,
            OsError::INVALID_USER_BUFFER,
            OsError::INVALID_PARAMETER,
        ];
        assert_fails(larger, &codes);
        let largest = tagged(UNHANDLED_TAG, &vec![7; MAX_SIZE - 8]);
        set(&*handle, &largest).expect("16 KiB are accepted");
        assert_eq!(get(&*handle), Ok(largest));
    }),
    Fact::new("REP-SET-17", |node| {
        const HIDDEN: u32 = 0x2;
        let directory = node.directory();
        for (name, kind, directory_attribute) in [
            ("file", Options::NON_DIRECTORY, 0),
            ("directory", Options::DIRECTORY, FILE_ATTRIBUTE_DIRECTORY),
        ] {
            let handle = directory
                .open(name, &Open::new(ATTRIBUTES, kind))
                .expect("the entry is created");
            set_attributes(&*handle, HIDDEN).expect("the attributes are set");
            set(&*handle, &relative("x")).expect("the link is set");
            assert_eq!(
                basic(&*handle).attributes,
                HIDDEN | directory_attribute | FILE_ATTRIBUTE_REPARSE_POINT
            );
        }
    }),
    Fact::new("REP-SET-18", |node| {
        let directory = node.directory();
        directory.mkdir("link");
        let earlier = directory.followed("link").expect("the directory opens");
        assert_eq!(attributes(&*earlier).reparse_tag, 0);
        set(
            &*directory.itself("link", ATTRIBUTES),
            &mount_point(r"\??\C:\x", ""),
        )
        .expect("the mount point is set");
        assert_eq!(attributes(&*earlier).reparse_tag, REPARSE_TAG_MOUNT_POINT);
    }),
    Fact::new("REP-SET-20", |node| {
        let directory = node.directory();
        directory.mkdir("target");
        for (name, kind) in [
            ("directory", Options::DIRECTORY),
            ("file", Options::NON_DIRECTORY),
        ] {
            let options = kind | Options::DELETE_ON_CLOSE | Options::REPARSE_POINT;
            let how = Open::new(ATTRIBUTES | Access::DELETE, options);
            let created = directory.open(name, &how).expect("the entry is created");
            set(&*created, &relative("target")).expect("the link is set");
            let keep = os::abi::FileDispositionInfoEx {
                flags: os::abi::FILE_DISPOSITION_ON_CLOSE,
            };
            created
                .set(FileInfo::DispositionEx, keep.as_bytes())
                .expect("the state is cleared");
            drop(created);
            let kept = directory.itself(name, Access::READ_ATTRIBUTES);
            assert_eq!(
                attributes(&*kept).reparse_tag,
                REPARSE_TAG_SYMLINK,
                "{name}"
            );
        }
    }),
    Fact::new("REP-GET-01", |node| {
        let read_control = Access::from_bits_retain(0x0002_0000);
        let directory = node.directory();
        let plain = directory.itself("", read_control);
        assert_eq!(get(&*plain), Err(OsError::NOT_A_REPARSE_POINT));
        let letter = directory.win32("").chars().next().expect("a drive letter");
        let how = Open::existing(read_control, Options::REPARSE_POINT);
        let root = node
            .os()
            .open(&os::NtPath::drive_root(letter), &how)
            .expect("the root opens");
        assert_eq!(get(&*root), Err(OsError::NOT_A_REPARSE_POINT));
        directory.link("link", &mount_point(r"\??\C:\x", ""));
        assert_eq!(
            get(&*directory.itself("link", read_control)),
            Ok(mount_point(r"\??\C:\x", ""))
        );
    }),
    Fact::new("REP-GET-06", |node| {
        let directory = node.directory();
        for (name, data) in [
            ("junction", mount_point(r"\??\C:\x", r"C:\x")),
            ("link", absolute(r"\??\C:\x")),
            ("other", tagged(UNHANDLED_TAG, b"any data")),
        ] {
            directory.link(name, &data);
            assert_eq!(
                get(&*directory.itself(name, Access::READ_ATTRIBUTES)),
                Ok(data),
                "{name}"
            );
        }
    }),
    Fact::new("REP-GET-07", |node| {
        let directory = node.directory();
        directory.mkdir("plain");
        directory.link("junction", &mount_point(r"\??\C:\x", ""));
        directory.file_link("link", &relative("x"));
        for (name, reparse, tag) in [
            ("plain", 0, 0),
            (
                "junction",
                FILE_ATTRIBUTE_REPARSE_POINT,
                REPARSE_TAG_MOUNT_POINT,
            ),
            ("link", FILE_ATTRIBUTE_REPARSE_POINT, REPARSE_TAG_SYMLINK),
        ] {
            let found = attributes(&*directory.itself(name, Access::READ_ATTRIBUTES));
            assert_eq!(
                (
                    found.attributes & FILE_ATTRIBUTE_REPARSE_POINT,
                    found.reparse_tag
                ),
                (reparse, tag),
                "{name}"
            );
        }
    }),
];
