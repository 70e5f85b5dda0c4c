//! Readings of Windows that the traits of `os` do not have.

use os::OsResult;
use os::abi::SecurityDescriptor;

/// Readings that only `doctor` needs. Each makes one query of Windows and changes nothing.
pub trait System: Send + Sync {
    /// Returns the build number of Windows (`RtlGetVersion`), such as 20348.
    fn build(&self) -> OsResult<u32>;

    /// Connects to the pipe `name` (without `\\.\pipe\`) for a moment, and returns who serves it.
    ///
    /// Errors: `FILE_NOT_FOUND` if no process serves it; `ERROR_PIPE_BUSY` (231); `ACCESS_DENIED`.
    fn pipe(&self, name: &str) -> OsResult<Pipe>;

    /// Returns how the service `name` is registered.
    ///
    /// Errors: `SERVICE_DOES_NOT_EXIST`, `ACCESS_DENIED`.
    fn service(&self, name: &str) -> OsResult<ServiceRegistration>;
}

/// Who serves a pipe, and who may open it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipe {
    /// The id of the process that serves it.
    pub process: u32,
    /// The path of the program of that process, if Windows returns it.
    pub program: Option<String>,
    /// The owner and the access control list.
    pub access: OsResult<SecurityDescriptor>,
}

/// How a service is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRegistration {
    /// The command line (`lpBinaryPathName`).
    pub command_line: String,
    /// The account that it runs as; `None` and `LocalSystem` are the same.
    pub account: Option<String>,
    /// Whether the first action after a failure is to restart it.
    pub restarts: OsResult<bool>,
}

/// Returns the path of the program that a service's command line starts.
///
/// If the path is not quoted, Windows tries each prefix that ends at a blank. This function takes
/// the prefix that ends in `.exe`.
pub fn program_of(command_line: &str) -> &str {
    if let Some((program, _)) = command_line
        .strip_prefix('"')
        .and_then(|rest| rest.split_once('"'))
    {
        return program;
    }
    let lower = command_line.to_ascii_lowercase();
    let end = lower.match_indices(".exe").map(|(at, _)| at + 4);
    let ends_word = |end: &usize| lower[*end..].is_empty() || lower[*end..].starts_with(' ');
    let end = end
        .into_iter()
        .find(ends_word)
        .or_else(|| lower.find(' '))
        .unwrap_or(lower.len());
    &command_line[..end]
}

#[cfg(test)]
mod tests {
    use super::program_of;

    #[test]
    fn the_program_of_a_command_line_may_be_quoted_or_not() {
        for (line, program) in [
            (
                r#""C:\Program Files\a.exe" -v=5"#,
                r"C:\Program Files\a.exe",
            ),
            (
                r"C:\etc\csi-proxy.exe -log_file=C:\x.exe",
                r"C:\etc\csi-proxy.exe",
            ),
            (
                r"C:\Program Files\A.EXE -windows-service",
                r"C:\Program Files\A.EXE",
            ),
            (r"C:\a.exe.old\b.exe", r"C:\a.exe.old\b.exe"),
            ("svchost -k netsvcs", "svchost"),
            ("", ""),
        ] {
            assert_eq!(program_of(line), program, "{line}");
        }
    }
}
