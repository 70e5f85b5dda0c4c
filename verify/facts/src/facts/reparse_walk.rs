//! Reparse points, following: `REP-WALK`.

use os::abi::{
    FILE_ATTRIBUTE_REPARSE_POINT, FileIdBothDirInfo, REPARSE_TAG_SYMLINK, SYMLINK_RELATIVE,
};
use os::{Access, Open, Options, OsError, U16String};
use zerocopy::FromBytes;

use super::calls::{basic, delete, id, set_attributes};
use super::reparse::{
    UNHANDLED_TAG, absolute, attributes, final_path, mount_point, relative, set, symlink, tagged,
};
use crate::fact::Fact;
use crate::node::Directory;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("REP-WALK-01", |node| {
        let directory = node.directory();
        directory.mkdir("real");
        directory.mkdir(r"real\target");
        directory.link(r"real\link", &relative("target"));
        directory.junction("junction", &directory.nt_text("real"));
        let itself = directory.itself(r"junction\link", READ);
        assert_eq!(attributes(&*itself).reparse_tag, REPARSE_TAG_SYMLINK);
        assert_eq!(id(&*itself), id(&*directory.itself(r"real\link", READ)));
        directory.assert_leads(r"junction\link", r"real\target");
        let real = directory
            .existing("real", Access::READ_DATA, Options::DIRECTORY)
            .expect("the directory opens");
        for (options, leads) in [
            (Options::REPARSE_POINT, r"real\link"),
            (Options::empty(), r"real\target"),
        ] {
            let opened =
                real.open_child(&U16String::from_str("link"), &Open::existing(READ, options));
            assert_eq!(
                id(&*opened.expect("the link opens")),
                id(&*directory.itself(leads, READ))
            );
        }
    }),
    Fact::new("REP-WALK-02", |node| {
        let directory = node.directory();
        directory.junction("loop", &directory.nt_text("loop"));
        directory.assert_fails("loop", OsError::CANT_RESOLVE_FILENAME);
    }),
    Fact::new("REP-WALK-03", |node| {
        let directory = node.directory();
        for name in ["r0", "a0"] {
            directory.mkdir(name);
        }
        for number in 1..=64 {
            directory.link(
                &format!("r{number}"),
                &relative(&format!("r{}", number - 1)),
            );
            directory.junction(
                &format!("a{number}"),
                &directory.nt_text(&format!("a{}", number - 1)),
            );
        }
        directory.assert_leads("r63", "r0");
        directory.assert_leads("a31", "a0");
        directory.assert_fails("r64", OsError::CANT_RESOLVE_FILENAME);
        directory.assert_fails("a64", OsError::CANT_RESOLVE_FILENAME);
    }),
    Fact::new("REP-WALK-04", |node| {
        let directory = node.directory();
        directory.junction("junction", &directory.nt_text("missing"));
        directory.link("link", &relative("missing"));
        directory.file_link("file-link", &absolute(&directory.nt_text("missing")));
        for name in ["junction", "link", "file-link"] {
            directory.assert_fails(name, OsError::FILE_NOT_FOUND);
        }
    }),
    Fact::new("REP-WALK-06", |node| {
        let directory = node.directory();
        directory.mkdir("target");
        directory.link("link", &relative("target"));
        directory.link("dangling", &relative("missing"));
        directory.junction("dangling-junction", &directory.nt_text("missing"));
        for kind in [Options::DIRECTORY, Options::NON_DIRECTORY] {
            let how = Open::new(READ, kind | Options::REPARSE_POINT);
            for name in ["link", "dangling", "dangling-junction"] {
                for created in directory.open_both_ways(name, &how) {
                    assert_eq!(created.err(), Some(OsError::ALREADY_EXISTS), "{name}");
                }
            }
        }
        directory.assert_fails("missing", OsError::FILE_NOT_FOUND);
    }),
    Fact::new("REP-WALK-07", |node| {
        let directory = node.directory_with_file();
        directory.junction("junction", &directory.nt_text("file"));
        directory.link("relative", &relative("file"));
        directory.link("absolute", &absolute(&directory.nt_text("file")));
        for name in ["junction", "relative", "absolute"] {
            directory.assert_fails(name, OsError::DIRECTORY);
        }
    }),
    Fact::new("REP-WALK-08", |node| {
        let directory = node.directory();
        directory.mkdir("target");
        directory.file_link("relative", &relative("target"));
        directory.file_link("absolute", &absolute(&directory.nt_text("target")));
        directory.assert_fails("relative", OsError::ACCESS_DENIED);
        directory.assert_fails("absolute", OsError::ACCESS_DENIED);
    }),
    Fact::new("REP-WALK-09", |node| {
        let directory = node.directory();
        let depth = directory.win32("link").matches('\\').count();
        directory.link(
            "link",
            &relative(&format!("{}Windows", r"..\".repeat(depth))),
        );
        directory.assert_fails("link", OsError::INVALID_REPARSE_DATA);
    }),
    Fact::new("REP-WALK-10", |node| {
        let directory = node.directory();
        for name in ["sub", r"sub\inner"] {
            directory.mkdir(name);
        }
        for (name, target, leads) in [
            ("dot", r".\sub", "sub"),
            ("dots", r"sub\..\sub\.\inner", r"sub\inner"),
            ("final", r"sub\", "sub"),
            (r"sub\up", "..", ""),
            (r"sub\across", r"..\sub\inner", r"sub\inner"),
        ] {
            directory.link(name, &relative(target));
            directory.assert_leads(name, leads);
        }
    }),
    Fact::new("REP-WALK-11", |node| {
        let directory = node.directory_with_file();
        directory.file_link("link", &relative(r"file\"));
        directory.assert_fails("link", OsError::INVALID_NAME);
    }),
    Fact::new("REP-WALK-12", |node| {
        let directory = node.directory();
        for name in ["sub", r"sub\inner"] {
            directory.mkdir(name);
        }
        directory.link("slash", &relative("sub/inner"));
        directory.link("double", &relative(r"sub\\inner"));
        directory.assert_fails("slash", OsError::INVALID_NAME);
        directory.assert_fails("double", OsError::INVALID_NAME);
    }),
    Fact::new("REP-WALK-13", |node| {
        let directory = node.directory();
        directory.mkdir("sub");
        directory.link("link", &relative("sub."));
        directory.assert_fails("link", OsError::FILE_NOT_FOUND);
    }),
    Fact::new("REP-WALK-14", |node| {
        let directory = node.directory();
        directory.mkdir("target");
        directory.link(
            "link",
            &symlink(&directory.nt_text("target"), "target", SYMLINK_RELATIVE),
        );
        directory.assert_fails("link", OsError::INVALID_NAME);
    }),
    Fact::new("REP-WALK-15", |node| {
        let directory = node.directory();
        directory.mkdir("target");
        let win32 = directory.win32("target");
        for (name, target) in [
            ("prefix", format!(r"\\?\{win32}")),
            ("drive", win32),
            ("dot", r".\target".to_owned()),
        ] {
            directory.link(name, &absolute(&target));
            directory.assert_fails(name, OsError::INVALID_NAME);
        }
    }),
    Fact::new("REP-WALK-16", |node| {
        let directory = node.directory();
        directory.mkdir("target");
        directory.link("dot", &absolute(&directory.nt_text(r".\target")));
        directory.link("dots", &absolute(&directory.nt_text(r"target\..\target")));
        directory.assert_fails("dot", OsError::PATH_NOT_FOUND);
        directory.assert_fails("dots", OsError::INVALID_NAME);
    }),
    Fact::new("REP-WALK-17", |node| {
        let directory = node.directory();
        directory.file_link("file", &tagged(UNHANDLED_TAG, b"data"));
        directory.link("directory", &tagged(UNHANDLED_TAG, b"data"));
        directory.assert_fails("file", OsError::CANT_ACCESS_FILE);
        directory.assert_fails("directory", OsError::CANT_ACCESS_FILE);
        let through = directory.existing(r"directory\entry", READ, Options::REPARSE_POINT);
        assert_eq!(through.err(), Some(OsError::CANT_ACCESS_FILE));
    }),
    Fact::new("REP-WALK-18", |node| {
        let directory = node.directory();
        let codes = [
            OsError::CANT_RESOLVE_FILENAME,
            OsError::INVALID_NAME,
            OsError::FILE_NOT_FOUND,
        ];
        for link in two_links(&directory) {
            let itself = directory.itself(link, Access::READ_DATA | READ);
            for name in ["entry", "missing"] {
                for options in [Options::empty(), Options::REPARSE_POINT] {
                    let opened = itself
                        .open_child(&U16String::from_str(name), &Open::existing(READ, options));
                    let code = opened.err().expect("the entry does not open");
                    assert!(codes.contains(&code), "{link}, {name}: {code}");
                }
            }
        }
    }),
    Fact::new("REP-WALK-19", |node| {
        let directory = node.directory();
        for link in two_links(&directory) {
            let itself = directory.itself(link, READ);
            let open =
                |options| itself.open_child(&U16String::new(), &Open::existing(READ, options));
            assert_eq!(
                open(Options::empty()).err(),
                Some(OsError::INVALID_REPARSE_DATA),
                "{link}"
            );
            assert_eq!(
                id(&*open(Options::REPARSE_POINT).expect("the link opens")),
                id(&*itself)
            );
        }
    }),
    Fact::new("REP-WALK-20", |node| {
        let directory = node.directory();
        for link in two_links(&directory) {
            let itself = directory.itself(link, Access::READ_DATA | READ);
            let mut buffer = [0; 1024];
            itself.list(true, &mut buffer).expect("the link is listed");
            let (first, _) = FileIdBothDirInfo::read_from_prefix(&buffer).expect("an entry");
            let offset = first.next_entry_offset as usize;
            let (second, _) =
                FileIdBothDirInfo::read_from_prefix(&buffer[offset..]).expect("an entry");
            let name = |offset: usize, length: u32| {
                &buffer[offset + FileIdBothDirInfo::NAME_OFFSET..][..length as usize]
            };
            assert_eq!(name(0, first.file_name_length), b".\0");
            assert_eq!(name(offset, second.file_name_length), b".\0.\0");
            assert_eq!(second.next_entry_offset, 0);
            assert_eq!(itself.list(false, &mut buffer), Err(OsError::NO_MORE_FILES));
        }
    }),
    Fact::new("REP-WALK-21", |node| {
        let directory = node.directory();
        two_links(&directory);
        directory.link(r"target\inner", &relative("entry"));
        for (path, own) in [
            ("link", "link"),
            (r"link\inner", r"target\inner"),
            (r"junction\inner", r"target\inner"),
        ] {
            let found = final_path(&*directory.itself(path, READ));
            assert_eq!(found, format!(r"\\?\{}", directory.win32(own)));
        }
    }),
    Fact::new("REP-WALK-22", |node| {
        let directory = node.directory();
        directory.mkdir("target");
        directory.link("first", &relative("target"));
        directory.junction("second", &directory.nt_text("target"));
        let delete = |name: &str, options| {
            let handle = directory
                .existing(name, Access::DELETE, options)
                .expect("it opens");
            delete(&*handle).expect("it is deleted");
        };
        let exist = || ["first", "second", "target"].map(|name| directory.has(name));
        delete("first", Options::REPARSE_POINT);
        assert_eq!(exist(), [false, true, true]);
        delete("second", Options::empty());
        assert_eq!(exist(), [false, true, false]);
    }),
    Fact::new("REP-WALK-23", |node| {
        let (directory, share) = (node.directory(), node.share());
        let target = os::NtPath::from_win32(&U16String::from_str(&share));
        directory.link("link", &symlink(&target.to_string(), &share, 0));
        let found = final_path(&*directory.followed("link").expect("the directory opens"));
        assert_eq!(
            found.to_lowercase(),
            format!(r"\\?\UNC{}", &share[1..]).to_lowercase()
        );
    }),
    Fact::new("REP-WALK-24", |node| {
        const HIDDEN: u32 = 0x2;
        let directory = node.directory();
        directory.write("target", b"content");
        directory.file_link("link", &relative("target"));
        let link = directory.itself("link", READ | Access::WRITE_ATTRIBUTES);
        set_attributes(&*link, HIDDEN).expect("the attributes are set");
        assert_eq!(
            basic(&*link).attributes,
            HIDDEN | FILE_ATTRIBUTE_REPARSE_POINT
        );
        let target = directory.followed("link").expect("the target opens");
        assert_eq!(
            basic(&*target).attributes & (HIDDEN | FILE_ATTRIBUTE_REPARSE_POINT),
            0
        );
    }),
    Fact::new("REP-WALK-25", |node| {
        let directory = node.directory();
        directory.link(
            "junction",
            &mount_point(r"\??\UNC\localhost\share", r"\\localhost\share"),
        );
        directory.assert_fails("junction", OsError::INVALID_REPARSE_DATA);
    }),
    Fact::new("REP-WALK-27", |node| {
        let directory = node.directory();
        directory.mkdir("target");
        let target = directory.win32("target");
        directory.link("link", &relative(&target[2..]));
        directory.assert_leads("link", "target");
    }),
    Fact::new("REP-WALK-28", |node| {
        const SYMLINK_CLASS_DISABLED: OsError = OsError(1463);
        let (directory, share) = (node.directory(), node.share());
        directory.mkdir("target");
        let path = os::NtPath::from_win32(&U16String::from_str(&format!(r"{share}\link")));
        let created = node
            .os()
            .open(&path, &Open::new_directory(READ | Access::WRITE_ATTRIBUTES))
            .expect("the name is free");
        set(&*created, &absolute(&directory.nt_text("target"))).expect("the link is set");
        drop(created);
        let open = |options| node.os().open(&path, &Open::existing(READ, options));
        assert_eq!(
            attributes(&*open(Options::REPARSE_POINT).expect("the link opens")).reparse_tag,
            REPARSE_TAG_SYMLINK
        );
        assert_eq!(open(Options::empty()).err(), Some(SYMLINK_CLASS_DISABLED));
    }),
];

const READ: Access = Access::READ_ATTRIBUTES;

/// Creates the directory `target` with the entry `entry` and two links to it.
fn two_links(directory: &Directory<'_>) -> [&'static str; 2] {
    directory.mkdir("target");
    directory.mkdir(r"target\entry");
    directory.link("link", &relative("target"));
    directory.junction("junction", &directory.nt_text("target"));
    ["link", "junction"]
}
