//! The targets for texts: paths, volume IDs and command lines.

use csi_proxy::command::Command;
use storage_ops::{Config, HostPath, Iqn, ServiceName, UncPath, VolumeId};

/// An accepted text is parsed from its own display to the same value, and contains nothing that
/// Win32 would resolve, cut off or interpret in another way.
pub(crate) fn host_path(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    let home = Config::default().kubelet_dir;
    if let Ok(path) = HostPath::parse(text) {
        is_plain(&path);
        assert_eq!(
            HostPath::parse_loose(text, &home).ok(),
            Some(path),
            "a path that is accepted strictly is refused loosely"
        );
    }
    if let Ok(path) = HostPath::parse_loose(text, &home) {
        is_plain(&path);
    }
    if let Ok(path) = UncPath::parse(text) {
        let written = path.to_string();
        assert_eq!(UncPath::parse(&written).ok().as_ref(), Some(&path));
        assert_eq!(UncPath::parse_loose(text).ok(), Some(path), "{written}");
        let parts: Vec<_> = written[2..].split('\\').collect();
        assert!(written.starts_with(r"\\") && parts.len() >= 2, "{written}");
        assert!(
            parts
                .iter()
                .all(|part| !["", ".", "..", "?"].contains(part)),
            "{written}"
        );
    }
    if let Ok(name) = ServiceName::parse(text) {
        assert_eq!(name.to_string(), text);
    }
    if let Ok(iqn) = Iqn::parse(text) {
        assert_eq!(Iqn::parse(&iqn.to_string()).ok(), Some(iqn));
    }
}

fn is_plain(path: &HostPath) {
    let text = path.to_string();
    assert_eq!(HostPath::parse(&text).ok().as_ref(), Some(path), "{text}");
    assert!(text.encode_utf16().count() <= 260, "{text}");
    let (drive, rest) = text.split_at(3);
    assert!(
        drive.as_bytes()[0].is_ascii_uppercase() && drive.ends_with(r":\"),
        "{text}"
    );
    if rest.is_empty() {
        return;
    }
    for component in rest.split('\\') {
        assert!(
            !component.is_empty() && !component.ends_with(['.', ' ']),
            "{text}"
        );
        let odd = |letter: char| letter < ' ' || r#"<>:"/|?*"#.contains(letter);
        assert!(!component.contains(odd), "{text}");
        let stem = component
            .split('.')
            .next()
            .unwrap_or_default()
            .trim_end()
            .to_uppercase();
        assert!(
            !["CON", "PRN", "AUX", "NUL", "COM1", "LPT9", "CONIN$"].contains(&&*stem),
            "{text}"
        );
    }
}

/// A volume ID is accepted only in the form that Windows uses, in any case.
pub(crate) fn volume_id(bytes: &[u8]) {
    let text = &*String::from_utf8_lossy(bytes);
    let Ok(id) = VolumeId::parse(text) else {
        return;
    };
    let written = id.to_string();
    assert!(written.eq_ignore_ascii_case(text), "{text} is {written}");
    assert_eq!(VolumeId::parse(&written).ok(), Some(id));
}

/// A command line, one argument a line, is accepted or refused with a sentence.
pub(crate) fn flags(bytes: &[u8]) {
    let words: Vec<String> = String::from_utf8_lossy(bytes)
        .split('\n')
        .map(str::to_owned)
        .collect();
    match Command::parse(words.clone()) {
        Err(refused) => assert!(!refused.to_string().is_empty()),
        Ok(Command::Serve(flags)) => {
            // The first argument that is not a flag ends the flags: what follows is kept and not
            // parsed.
            assert!(words.ends_with(&flags.rest), "{:?}", flags.rest);
            let with_more = [&words[..], &["--".to_owned(), "-no-flag".to_owned()]].concat();
            let more = Command::parse(with_more);
            assert!(matches!(more, Ok(Command::Serve(_))), "{more:?}");
        }
        Ok(Command::Doctor(_) | Command::Help | Command::Service(_) | Command::Version) => {}
    }
}
