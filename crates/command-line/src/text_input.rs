//! Texts that the command line does not contain: from a file, standard input or an environment
//! variable.

use std::env;
use std::fs;
use std::io::{self, IsTerminal as _, Read as _};

use crate::failure::Failure;

/// Reads the file at `path`, or standard input if `path` is `-`. `what` names the text in errors.
pub fn read(path: &str, what: &str) -> Result<String, Failure> {
    let (source, bytes) = if path == "-" {
        let mut bytes = Vec::new();
        (
            "standard input",
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes),
        )
    } else {
        (path, fs::read(path))
    };
    let bytes = bytes
        .map_err(|error| Failure::Usage(format!("cannot read {what} from {source}: {error}")))?;
    decoded(&bytes)
        .ok_or_else(|| Failure::Usage(format!("{what} in {source} is neither UTF-8 nor UTF-16")))
}

/// Reads a secret: the text without its final line break.
pub fn secret_from_file(path: &str, what: &str) -> Result<String, Failure> {
    let text = read(path, what)?;
    let line = text.strip_suffix('\n').map_or(text.as_str(), |line| {
        line.strip_suffix('\r').unwrap_or(line)
    });
    not_empty(line.to_owned(), what)
}

/// Reads a secret from an environment variable.
pub fn secret_from_env(name: &str, what: &str) -> Result<String, Failure> {
    // The error of a variable that is not Unicode contains its value, and a secret may have been
    // given for the name.
    let value = env::var(name).map_err(|error| match error {
        env::VarError::NotPresent => {
            Failure::Usage(format!("the environment variable for {what} is not set"))
        }
        env::VarError::NotUnicode(_) => Failure::Usage(format!(
            "the environment variable for {what} is not Unicode"
        )),
    })?;
    not_empty(value, what)
}

/// Asks for a secret on the terminal, which does not show it. Returns `None` if standard input is
/// no terminal.
pub fn secret_from_terminal(what: &str) -> Result<Option<String>, Failure> {
    if !io::stdin().is_terminal() {
        return Ok(None);
    }
    let secret = rpassword::prompt_password(format!("Enter {what}: "));
    let secret = secret.map_err(|error| {
        Failure::Usage(format!("cannot read {what} from the terminal: {error}"))
    })?;
    not_empty(secret, what).map(Some)
}

fn not_empty(secret: String, what: &str) -> Result<String, Failure> {
    if secret.is_empty() {
        Err(Failure::Usage(format!("{what} is empty")))
    } else {
        Ok(secret)
    }
}

/// Decodes UTF-8, and UTF-16 with a byte order mark, which PowerShell 5 writes.
fn decoded(bytes: &[u8]) -> Option<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().copied().map(unit).collect();
        rest.is_empty().then(|| String::from_utf16(&units).ok())?
    };
    match bytes {
        [0xFF, 0xFE, text @ ..] => utf16(text, u16::from_le_bytes),
        [0xFE, 0xFF, text @ ..] => utf16(text, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, text @ ..] | text => String::from_utf8(text.to_vec()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn the_encodings_of_powershell_are_understood() {
        for bytes in [
            &b"\xC3\xA9x"[..],
            b"\xEF\xBB\xBF\xC3\xA9x",
            b"\xFF\xFE\xE9\x00x\x00",
            b"\xFE\xFF\x00\xE9\x00x",
        ] {
            assert_eq!(decoded(bytes).as_deref(), Some("\u{e9}x"), "{bytes:x?}");
        }
        for bytes in [&b"\xE9"[..], b"\xFF\xFEx", b"\xFF\xFE\x00\xD8"] {
            assert_eq!(decoded(bytes), None, "{bytes:x?}");
        }
    }
}
