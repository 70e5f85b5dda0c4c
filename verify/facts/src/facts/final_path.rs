//! The final path of a handle: `FINAL`.

use os::{Access, NtPath, Open, Options, OsError, PathForm, U16String};

use super::calls::id;
use crate::fact::Fact;
use crate::node::{VolumeKind, missing};

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("FINAL-01", |node| {
        let volume = node.volume(VolumeKind::Ntfs);
        let remote = node.share();
        if !node.os().volume_paths(&volume.guid_path()).expect("the paths of the volume").is_empty() {
            missing("an NTFS volume without a drive letter");
        }
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::empty());
        let root = node.os().open(&NtPath::volume_root(volume.id), &how).expect("the root directory opens");
        assert_eq!(root.final_path(PathForm::Dos), Err(OsError::PATH_NOT_FOUND));
        assert_eq!(root.final_path(PathForm::VolumeGuid), Ok(volume.guid_path()));

        let remote = NtPath::from_win32(&U16String::from_str(&remote));
        let remote = node.os().open(&remote, &how).expect("the share opens");
        assert_eq!(remote.final_path(PathForm::VolumeGuid), Err(OsError::PATH_NOT_FOUND));
        let path = remote.final_path(PathForm::Dos).expect("the path").to_string_lossy();
        assert!(path.to_uppercase().starts_with(r"\\?\UNC\"), "{path}");
    }),
    Fact::new("FINAL-02", |node| {
        let share = node.share();
        let path = |name: &str| NtPath::from_win32(&U16String::from_str(&format!(r"{share}\{name}")));
        for directory in ["closed", r"closed\inner"] {
            let how = Open::new_directory(Access::READ_ATTRIBUTES);
            node.os().open(&path(directory), &how).expect("the directory is created");
        }
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::empty());
        let inner = node.os().open(&path(r"closed\inner"), &how).expect("the directory opens");
        let before = inner.final_path(PathForm::Dos).expect("the path").to_string_lossy();
        assert!(before.ends_with(r"\closed\inner"), "{before}");
        drop(inner);
        node.revoke_all_rights(&format!(r"{share}\closed"));
        let inner = node.os().open(&path(r"closed\inner"), &how).expect("the directory opens");
        assert_eq!(inner.final_path(PathForm::Dos), Err(OsError::ACCESS_DENIED));
    }),
    Fact::new("FINAL-04", |node| {
        let directory = node.directory();
        directory.mkdir("Real Name");
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY);
        let opened = directory.open("REAL name", &how).expect("the directory opens");
        let path = |form| opened.final_path(form).expect("the path");
        let dos = path(PathForm::Dos).to_string_lossy();
        assert_eq!(dos, format!(r"\\?\{}", directory.win32("Real Name")));
        let guid = path(PathForm::VolumeGuid);
        let text = guid.to_string_lossy();
        assert!(text.starts_with(r"\\?\Volume{") && text.ends_with(r"\Real Name"), "{text}");
        let again = node.os().open(&NtPath::from_win32(&guid), &how).expect("the path opens");
        assert_eq!(id(&*again), id(&*opened));
    }),
    Fact::new("FINAL-05", |node| {
        let directory = node.directory();
        directory.mkdir("Real Name");
        let how = Open::existing(Access::READ_ATTRIBUTES, Options::DIRECTORY);
        let opened = directory.open("Real Name", &how).expect("the directory opens");
        let path = opened.final_path(PathForm::Device).expect("the path");
        let text = path.to_string_lossy();
        assert!(text.starts_with(r"\Device\HarddiskVolume") && text.ends_with(r"\Real Name"), "{text}");
        let again = node.os().open(&NtPath::from_nt(path), &how).expect("the path opens");
        assert_eq!(id(&*again), id(&*opened));
    }),
];
