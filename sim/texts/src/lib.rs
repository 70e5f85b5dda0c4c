//! The texts that users meet, collected from the tests of a crate into its `tests/texts.txt`, so
//! that a review shows each change of words.
//!
//! A test passes a text to [`seen`]. The test fails if the file does not contain the text. With
//! `BLESS=1`, the text is added to the file instead. [`golden`] compares a long text, such as a
//! help, with a file of its own. `cargo xtask lint` compares the files with the
//! texts in the sources.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use terminal_text::escaped;

/// Fails the test unless `tests/texts.txt` of its crate contains the text.
#[macro_export]
macro_rules! seen {
    ($text:expr) => {
        $crate::check(::std::env!("CARGO_MANIFEST_DIR"), &$text)
    };
}

/// Fails the test unless the file `name` in `tests/golden` of its crate is `text`; with `BLESS=1`,
/// writes the file.
#[macro_export]
macro_rules! golden {
    ($name:expr, $text:expr) => {
        $crate::compare(::std::env!("CARGO_MANIFEST_DIR"), $name, &$text)
    };
}

/// Panics unless the file `name` in `tests/golden` of the folder `package` is `text`; with
/// `BLESS=1`, writes the file.
pub fn compare(package: &str, name: &str, text: &str) {
    let file = Path::new(package).join("tests/golden").join(name);
    if env::var_os("BLESS").is_some() {
        fs::write(&file, text).expect("the folder is writable");
    }
    let expected =
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(
        text == expected,
        "{name} is now:\n{text}\nBLESS=1 writes it"
    );
}

/// Panics unless `tests/texts.txt` in the folder `package` contains `text`; with `BLESS=1`, adds
/// it.
///
/// The texts are those of Linux: on other systems, those of the operating system differ.
pub fn check(package: &str, text: &str) {
    if env::consts::OS != "linux" {
        return;
    }
    let file = Path::new(package).join("tests/texts.txt");
    let line = line(text, &env::temp_dir().to_string_lossy());
    if env::var_os("BLESS").is_some() {
        add(&file, &line);
        return;
    }
    let known = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        known.lines().any(|known| known == line),
        "BLESS=1 adds this text to {}:\n{line}",
        file.display()
    );
}

/// Adds a line to the sorted lines of `file`. Other tests may do so at the same time.
fn add(file: &Path, line: &str) {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).expect("the folder of the crate is writable");
    }
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(file)
        .expect("the file can be created");
    file.lock().expect("a lock");
    let mut known = String::new();
    file.read_to_string(&mut known).expect("UTF-8");
    let mut lines: Vec<&str> = known.lines().collect();
    let Err(place) = lines.binary_search(&line) else {
        return;
    };
    lines.insert(place, line);
    file.rewind().expect("a regular file");
    file.write_all((lines.join("\n") + "\n").as_bytes())
        .expect("the file is writable");
}

/// Returns the text in one line, without misleading characters, and with placeholders for what
/// differs from one run to the next: names in the folder `temp`, GUIDs, and ports of the loopback
/// address.
fn line(text: &str, temp: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().map(escaped).collect();
    let text = lines.join("\\n");
    let mut line = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(first) = rest.chars().next() {
        let (placeholder, length) = if let Some(name) = rest.strip_prefix(temp) {
            let name = name.trim_start_matches('/');
            let end = name.find(|c: char| !c.is_alphanumeric() && !"._-".contains(c));
            let length = rest.len() - name.len() + end.unwrap_or(name.len());
            ("<temp>", length)
        } else if is_guid(rest) {
            ("<guid>", 36)
        } else if let Some(port) = rest.strip_prefix("127.0.0.1:") {
            let digits = port.len() - port.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            ("127.0.0.1:<port>", rest.len() - port.len() + digits)
        } else {
            line.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        line += placeholder;
        rest = &rest[length..];
    }
    line
}

/// Returns whether `text` begins with a GUID.
fn is_guid(text: &str) -> bool {
    text.len() >= 36
        && text.bytes().take(36).enumerate().all(|(at, byte)| {
            if [8, 13, 18, 23].contains(&at) {
                byte == b'-'
            } else {
                byte.is_ascii_hexdigit()
            }
        })
}

#[cfg(test)]
mod tests {
    use super::{add, line};

    #[test]
    fn what_differs_between_runs_is_replaced() {
        let line = |text| line(text, "/tmp/a");
        assert_eq!(
            line("cannot open /tmp/a/.tmpX1/sock: é\nno\n"),
            r"cannot open <temp>/sock: é\nno"
        );
        assert_eq!(
            line(r"volume \\?\Volume{01234567-89ab-CDEF-0123-456789abcdef}\ of disk 4"),
            r"volume \\?\Volume{<guid>}\ of disk 4"
        );
        assert_eq!(line("127.0.0.1:8080, disk 1"), "127.0.0.1:<port>, disk 1");
    }

    #[test]
    fn lines_are_sorted_and_unique() {
        let file = std::env::temp_dir().join(format!("texts-{}", std::process::id()));
        for line in ["b", "a", "b", "c"] {
            add(&file, line);
        }
        let lines = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(lines, "a\nb\nc\n");
    }
}
