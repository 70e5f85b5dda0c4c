//! What went wrong, and what to do next.

use std::fmt::Write as _;
use std::io;

use anstyle::{AnsiColor, Style};
use csi_proxy_client::{Error, ErrorKind};
use terminal_text::{escaped, wrapped};
use tonic::{Code, Status};

use crate::exit;
use crate::session::{Endpoints, Session};
use crate::wrap;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();
/// The column at which the texts begin.
const INDENT: usize = 7;
/// Why nothing can be called without a folder, on a system without named pipes.
pub(crate) const NO_FOLDER: &str =
    "csi-proxyctl does not know where the sockets of csi-proxy are: XDG_RUNTIME_DIR is not set";

#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line or a request is not valid. Nothing has been called.
    Usage(String),
    /// A call failed. The object is what it was for, if the command made calls for several.
    Call { error: Box<Error>, object: Option<String> },
    /// csi-proxy-sim refused a command, or cannot be reached.
    Simulator(Box<Status>),
    /// The status page of csi-proxy cannot be reached.
    StatusPage(String),
    /// The response of csi-proxy says so, or cannot be shown.
    Response(String),
    /// Standard output cannot be written.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Call { error: Box::new(error), object: None }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl Failure {
    pub(crate) fn exit_code(&self) -> exit::Code {
        match self {
            Self::Usage(_) => exit::Code::Usage,
            Self::StatusPage(_) => exit::Code::Unreachable,
            Self::Simulator(status) => match status.code() {
                Code::Unavailable => exit::Code::Unreachable,
                Code::NotFound => exit::Code::NotFound,
                Code::DeadlineExceeded => exit::Code::Timeout,
                Code::Unimplemented => exit::Code::Unimplemented,
                _ => exit::Code::Failed,
            },
            Self::Response(_) | Self::Output(_) => exit::Code::Failed,
            Self::Call { error, .. } => match error.kind() {
                ErrorKind::Unavailable => exit::Code::Unreachable,
                ErrorKind::NotFound => exit::Code::NotFound,
                ErrorKind::DeadlineExceeded => exit::Code::Timeout,
                ErrorKind::Unimplemented => exit::Code::Unimplemented,
                // The daemon was not looked for.
                ErrorKind::FailedPrecondition if error.call_number().is_none() && is_connecting(error) => {
                    exit::Code::Unreachable
                }
                _ => exit::Code::Failed,
            },
        }
    }

    /// Whether the reader of standard output has closed it, as `head` does.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Returns the lines for a person.
    pub(crate) fn report(&self, session: &Session) -> String {
        let text = match self {
            Self::Usage(text) | Self::StatusPage(text) | Self::Response(text) => text.clone(),
            Self::Simulator(status) => status.message().to_owned(),
            Self::Call { error, .. } if is_without_folder(error, &session.endpoints) => NO_FOLDER.to_owned(),
            Self::Call { error, object } => {
                let (rpc, message) = (error.rpc(), error.message());
                // The messages of csi-proxy name the object. That of a call without an answer does not.
                let object = object.as_ref().filter(|object| !message.contains(*object));
                let object = object.map(|object| format!(" for {object}")).unwrap_or_default();
                format!("{rpc}{object} failed: {message}")
            }
            Self::Output(error) => format!("cannot write to standard output: {error}"),
        };
        let width = wrap::stderr_width();
        let mut report = format!("{ERROR}error:{ERROR:#} {}\n", wrapped(&escaped(&text), INDENT, width));
        if let Self::Call { error, .. } = self
            && !is_without_folder(error, &session.endpoints)
            && let Some((name, number)) = status(error.kind())
        {
            let call = error.call_number().map(|call| format!("; call {call} in the log of csi-proxy"));
            let status = format!("gRPC status {name} ({number}){}", call.unwrap_or_default());
            // Writing to a String does not fail.
            let _ = writeln!(report, "{:INDENT$}{}", "", wrapped(&status, INDENT, width));
        }
        for hint in self.hints(&session.endpoints) {
            let _ = writeln!(report, "{HINT}hint:{HINT:#}  {}", wrapped(&hint, INDENT, width));
        }
        report
    }

    /// Returns what to do next.
    fn hints(&self, endpoints: &Endpoints) -> Vec<String> {
        let error = match self {
            Self::Call { error, .. } => error,
            Self::Simulator(status) => return simulator_hint(status.code(), endpoints).into_iter().collect(),
            Self::StatusPage(_) => {
                return vec![
                    "start csi-proxy with -metrics-bind-address, and give the same address here with --address".into(),
                ];
            }
            _ => return Vec::new(),
        };
        let is_answer = error.call_number().is_some();
        match error.kind() {
            ErrorKind::Unavailable if is_answer => {
                vec!["csi-proxy is busy or stopping, or a device does not answer; `csi-proxyctl top` shows what runs".into()]
            }
            ErrorKind::DeadlineExceeded if is_answer => {
                vec!["the node may still be at work: look at the state of the object before you repeat the command".into()]
            }
            ErrorKind::Unavailable if is_broken(error) => {
                vec!["if csi-proxy has restarted, repeat the command: a change that has already been made is not made again".into()]
            }
            ErrorKind::Unavailable => match endpoints {
                Endpoints::Pipes => vec![
                    "is the csi-proxy service running? `sc.exe query csiproxy` shows its state, `sc.exe start csiproxy` \
                     starts it"
                        .into(),
                    r"in a container, \\.\pipe\csi-proxy-* must be mounted".into(),
                ],
                _ => vec![folder_hint(endpoints)],
            },
            ErrorKind::FailedPrecondition if is_connecting(error) => vec![folder_hint(endpoints)],
            ErrorKind::PermissionDenied if is_connecting(error) => vec![match endpoints {
                Endpoints::Pipes => {
                    "run csi-proxyctl as administrator: the pipes are open to administrators and LocalSystem".into()
                }
                _ => "run csi-proxyctl as the user who started csi-proxy-sim".into(),
            }],
            ErrorKind::NotFound => vec!["`csi-proxyctl get` shows disks, volumes, iSCSI portals and services".into()],
            ErrorKind::DeadlineExceeded => {
                vec!["`csi-proxyctl top` shows what the node does; --timeout gives a call more time".into()]
            }
            ErrorKind::Unimplemented => vec!["`csi-proxyctl versions` shows what the node serves; --api-version selects an older version".into()],
            ErrorKind::Aborted | ErrorKind::ResourceExhausted => {
                vec!["csi-proxy is busy with another call for the same object, or with too many calls; repeat the command".into()]
            }
            _ => Vec::new(),
        }
    }
}

/// Returns what to do after csi-proxy-sim has answered with `code`, or has not answered.
fn simulator_hint(code: Code, endpoints: &Endpoints) -> Option<String> {
    match code {
        Code::Unavailable => Some(folder_hint(endpoints)),
        Code::NotFound => Some(
            "`csi-proxyctl sim disks`, `sim faults` and `sim ls` show what exists, and `sim node` shows the servers"
                .into(),
        ),
        Code::DeadlineExceeded => Some("--timeout gives csi-proxy-sim more time".into()),
        Code::Unimplemented => {
            Some("this csi-proxy-sim is older than csi-proxyctl: use both from one source tree".into())
        }
        _ => None,
    }
}

/// Whether the call failed because it is not known where the sockets are.
fn is_without_folder(error: &Error, endpoints: &Endpoints) -> bool {
    *endpoints == Endpoints::Nowhere && is_connecting(error)
}

/// Whether the call failed before it reached a daemon.
fn is_connecting(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<io::Error>)
}

/// Whether the connection broke during the call.
fn is_broken(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<Status>)
}

fn folder_hint(endpoints: &Endpoints) -> String {
    match endpoints {
        Endpoints::Folder(folder) => format!(
            "is csi-proxy-sim running with -socket-folder {0}? --endpoint-dir names another folder",
            folder.display()
        ),
        _ => "--endpoint-dir names the folder of the sockets, which is the -socket-folder of csi-proxy-sim".into(),
    }
}

/// Returns the name and number of the gRPC status.
fn status(kind: ErrorKind) -> Option<(&'static str, u8)> {
    Some(match kind {
        ErrorKind::Cancelled => ("Cancelled", 1),
        ErrorKind::Unknown => ("Unknown", 2),
        ErrorKind::InvalidArgument => ("InvalidArgument", 3),
        ErrorKind::DeadlineExceeded => ("DeadlineExceeded", 4),
        ErrorKind::NotFound => ("NotFound", 5),
        ErrorKind::AlreadyExists => ("AlreadyExists", 6),
        ErrorKind::PermissionDenied => ("PermissionDenied", 7),
        ErrorKind::ResourceExhausted => ("ResourceExhausted", 8),
        ErrorKind::FailedPrecondition => ("FailedPrecondition", 9),
        ErrorKind::Aborted => ("Aborted", 10),
        ErrorKind::Unimplemented => ("Unimplemented", 12),
        ErrorKind::Internal => ("Internal", 13),
        ErrorKind::Unavailable => ("Unavailable", 14),
        _ => return None,
    })
}
