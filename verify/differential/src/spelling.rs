//! Other spellings of a path, and paths that no driver should send.

use super::call::KUBELET;
use super::random::Random;

/// Characters that a name may not have in Windows, or not in csi-proxy.
const CHARACTERS: [&str; 13] = [
    "\"", "/", ":", "?", "*", "|", "<", ">", "\u{1}", "\u{1f}", "\n", "\0", "::$DATA",
];
/// Names that Windows gives another meaning.
const NAMES: [&str; 14] = [
    "nul", "CON", "aux.txt", "COM1", "lpt9.log", "com¹", "CONIN$", "a..b", "..", "...", "dot.",
    "space ", " ", ".",
];

/// Returns `path` with one change.
pub(super) fn change(random: &mut Random, path: &str) -> String {
    match random.below(20) {
        0 => swap_case(random, path),
        1 => insert_separator(random, path, r"\"),
        2 => insert_separator(random, path, r"\."),
        3 => insert_separator(random, path, r"\.."),
        4 | 5 => format!(r"{path}\"),
        6 => format!(r"{path}\\"),
        7 => format!(
            "{path}{}",
            random.pick(&[".", " ", "...", r"\.", r"\..", ". .", " \\"])
        ),
        8 | 9 => insert(random, path),
        10 => format!(r"{path}\{}", random.pick(&NAMES)),
        11 => replace_component(random, path),
        12 => path.replacen(
            KUBELET,
            &format!("{KUBELET}{}", random.pick(&["-evil", "2", ".", " ", "x"])),
            1,
        ),
        13 => without_drive(random, path),
        14 => format!(
            "{}{path}",
            random.pick(&[
                r"\\?\",
                r"\\.\",
                r"\??\",
                r"\",
                r"\\localhost\c$\",
                r"\\?\UNC\"
            ])
        ),
        15 => lengthen(random, path),
        16 => random
            .pick(&[
                "",
                r"C:\",
                "C:",
                r"\",
                r"\\",
                ".",
                "..",
                r"\\host\share",
                r"Q:\x",
                r"C:\var\lib",
                "1:\\x",
            ])
            .to_string(),
        17 => path.replace('\\', "/"),
        18 => path.replace("kubelet", "\u{212a}ubelet"),
        _ => {
            random
                .pick(&[r"C:\\", r"C:\.\", r"c:\", r"C:\var\..\", "C:/"])
                .to_string()
                + path.get(3..).unwrap_or_default()
        }
    }
}

fn swap_case(random: &mut Random, path: &str) -> String {
    let swapped = |letter: char| {
        if random.chance(50) {
            letter.to_ascii_uppercase()
        } else {
            letter.to_ascii_lowercase()
        }
    };
    path.chars().map(swapped).collect()
}

/// Inserts a text before one of the separators.
fn insert_separator(random: &mut Random, path: &str, text: &str) -> String {
    let separators: Vec<usize> = path.match_indices('\\').map(|(at, _)| at).collect();
    if separators.is_empty() {
        return path.to_owned();
    }
    let (before, after) = path.split_at(*random.pick(&separators));
    format!("{before}{text}{after}")
}

/// Inserts a special character anywhere after the drive.
fn insert(random: &mut Random, path: &str) -> String {
    let places: Vec<usize> = path
        .char_indices()
        .map(|(at, _)| at)
        .filter(|at| *at >= 3)
        .collect();
    // Most places would be in the path to the working directory.
    let at = if random.chance(60) || places.is_empty() {
        path.len()
    } else {
        *random.pick(&places)
    };
    let (before, after) = path.split_at(at);
    format!("{before}{}{after}", random.pick(&CHARACTERS))
}

/// Replaces the last component, or gives another one a name with a special meaning.
fn replace_component(random: &mut Random, path: &str) -> String {
    match path.rsplit_once('\\') {
        Some((parent, name)) if random.chance(50) => {
            format!(r"{parent}\{}\{name}", random.pick(&NAMES))
        }
        Some((parent, _)) => format!(r"{parent}\{}", random.pick(&NAMES)),
        None => path.to_owned(),
    }
}

fn without_drive(random: &mut Random, path: &str) -> String {
    let rest = path.get(2..).unwrap_or_default();
    match random.below(3) {
        0 => rest.to_owned(),
        1 => rest.trim_start_matches('\\').to_owned(),
        _ => format!("C:{}", rest.trim_start_matches('\\')),
    }
}

/// Makes a path of about the greatest length, in UTF-16 units or in bytes.
fn lengthen(random: &mut Random, path: &str) -> String {
    let letter = if random.chance(50) { "x" } else { "é" };
    let wanted = 244 + random.below(20);
    let mut long = format!(r"{path}\");
    while long.encode_utf16().count() < wanted {
        // A name may have 255 units, and some file systems take 255 bytes.
        let separator = if long
            .rsplit('\\')
            .next()
            .is_some_and(|name| name.chars().count() >= 100)
        {
            r"\"
        } else {
            ""
        };
        long = format!("{long}{separator}{letter}");
    }
    long
}

/// A path as text, and what is special about it.
pub(super) struct Spelling(String);

impl Spelling {
    pub(super) fn new(path: &str) -> Self {
        Self(path.to_owned())
    }

    /// Returns whether the path begins with a drive and a backslash.
    fn is_absolute(&self) -> bool {
        self.0
            .as_bytes()
            .first()
            .is_some_and(u8::is_ascii_alphabetic)
            && self.0.get(1..3) == Some(r":\")
    }

    /// Returns the part after the drive. Some RPCs take paths without a drive, and with other
    /// separators.
    fn rest(&self) -> &str {
        if self.is_absolute() {
            &self.0[3..]
        } else {
            &self.0
        }
    }

    fn components(&self) -> impl Iterator<Item = &str> {
        self.rest().split(['\\', '/'])
    }

    /// Returns whether the text begins with the text of the working directory. The Go program
    /// checks nothing else.
    pub(super) fn has_prefix(&self) -> bool {
        self.0.to_lowercase().starts_with(&KUBELET.to_lowercase())
    }

    /// Returns the components as Windows understands them.
    fn meant(&self) -> Vec<String> {
        let meant = self
            .components()
            .filter(|component| !["", "."].contains(component));
        meant.map(str::to_ascii_lowercase).collect()
    }

    /// Returns whether the path is in the working directory, by its components.
    pub(super) fn is_inside(&self) -> bool {
        self.is_absolute()
            && self.0.starts_with(['C', 'c'])
            && self.meant().starts_with(&Spelling::new(KUBELET).meant())
    }

    /// Returns whether the path is the working directory.
    pub(super) fn is_working_directory(&self) -> bool {
        self.is_inside() && self.meant() == Spelling::new(KUBELET).meant()
    }

    /// Returns whether the path ends with a separator.
    pub(super) fn asks_for_directory(&self) -> bool {
        self.0.ends_with('\\')
    }

    /// Returns whether the last component is `.`, with or without separators after it.
    pub(super) fn ends_with_dot(&self) -> bool {
        self.0.trim_end_matches('\\').ends_with(r"\.")
    }

    /// Returns whether a name ends with characters that Win32 removes.
    pub(super) fn has_stripped_end(&self) -> bool {
        self.components()
            .any(|name| name != "." && name != ".." && name.ends_with(['.', ' ']))
    }

    /// Returns whether a name means a device.
    pub(super) fn has_device_name(&self) -> bool {
        self.components().any(|name| {
            let stem = name
                .split('.')
                .next()
                .unwrap_or_default()
                .trim_end()
                .to_ascii_lowercase();
            let numbered = stem
                .strip_prefix("com")
                .or_else(|| stem.strip_prefix("lpt"));
            ["con", "prn", "aux", "nul", "conin$", "conout$"].contains(&stem.as_str())
                || numbered.is_some_and(|number| {
                    ["\u{b9}", "\u{b2}", "\u{b3}"].contains(&number)
                        || number.parse().is_ok_and(|number: u8| number <= 9)
                })
        })
    }

    /// Returns whether a name has a character that only this program refuses.
    pub(super) fn has_forbidden_character(&self) -> bool {
        self.rest()
            .contains(|letter| matches!(letter, '<' | '>' | '\0'..='\x1f'))
    }

    /// Returns whether a name contains two dots in a row and is not `..`. The Go program refuses
    /// such a name.
    pub(super) fn has_dots_in_name(&self) -> bool {
        self.0.contains("..") && self.components().all(|name| name != "..")
    }

    /// Returns whether the path has at most 260 UTF-16 units and more bytes.
    pub(super) fn is_long_in_bytes_only(&self) -> bool {
        self.0.len() > 260 && self.0.encode_utf16().count() <= 260
    }

    /// Returns whether this program accepts the path: it is on a drive, and its names have nothing
    /// special.
    pub(super) fn is_acceptable(&self) -> bool {
        let text = self.0.replace('/', r"\");
        let path = if text.starts_with('\\') && !text.starts_with(r"\\") {
            format!("C:{text}")
        } else {
            text
        };
        let path = Self(path);
        path.is_absolute()
            && path.0.encode_utf16().count() <= 260
            && path
                .components()
                .all(|name| name != ".." && !name.contains(['"', ':', '?', '*', '|']))
            && !(path.has_stripped_end()
                || path.has_device_name()
                || path.has_forbidden_character())
    }
}
