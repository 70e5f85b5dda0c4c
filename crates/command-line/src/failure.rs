//! What went wrong, and what to do next.

use std::env;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use api::{GROUP_VERSIONS, Group};
use csi_proxy_client::{Error, ErrorKind};
use terminal_text::{escaped, wrapped};
use tonic::{Code, Status};

use crate::endpoints::{Endpoints, NO_FOLDER};
use crate::exit;
use crate::wrap;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default();
/// The column at which the texts begin.
const INDENT: usize = 7;
/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The command line or a request is not valid. Nothing has been called.
    Usage(String),
    /// A call of csi-proxy failed.
    Call {
        /// The error of the client.
        error: Box<Error>,
        /// What the call was for, if the command calls csi-proxy for several objects.
        object: Option<String>,
    },
    /// Something else failed.
    Other {
        /// The exit code of the program.
        code: exit::Code,
        /// What failed.
        text: String,
        /// What to do next.
        hint: Option<String>,
    },
    /// Standard output cannot be written.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Call {
            error: Box::new(error),
            object: None,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Prints the failure of a command, if it has failed, and returns the exit code of the program.
pub fn exit_code(result: Result<(), Failure>, endpoints: &Endpoints) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            // Nothing else can be done if standard error is closed.
            let _ = write!(anstream::stderr(), "{}", failure.report(endpoints));
            failure.code().into()
        }
    }
}

impl Failure {
    /// Returns the failure of a response that reports an error, or that cannot be shown.
    pub fn response(text: String) -> Self {
        Self::Other {
            code: exit::Code::Failed,
            text,
            hint: None,
        }
    }

    fn code(&self) -> exit::Code {
        match self {
            Self::Usage(_) => exit::Code::Usage,
            Self::Other { code, .. } => *code,
            Self::Output(_) => exit::Code::Failed,
            Self::Call { error, .. } => match error.kind() {
                ErrorKind::Unavailable => exit::Code::Unreachable,
                ErrorKind::InvalidArgument => exit::Code::Usage,
                ErrorKind::NotFound => exit::Code::NotFound,
                ErrorKind::DeadlineExceeded => exit::Code::Timeout,
                ErrorKind::Unimplemented => exit::Code::Unimplemented,
                // The location of the sockets is not known.
                ErrorKind::FailedPrecondition
                    if error.call_number().is_none() && is_connecting(error) =>
                {
                    exit::Code::Unreachable
                }
                _ => exit::Code::Failed,
            },
        }
    }

    /// Whether the reader of standard output has closed it, as `head` does.
    fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Returns the lines for a person.
    pub fn report(&self, endpoints: &Endpoints) -> String {
        let width = wrap::stderr_width();
        let text = wrapped(&escaped(&self.text(endpoints)), INDENT, width);
        let mut report = format!("{ERROR}error:{ERROR:#} {text}\n");
        if let Self::Call { error, .. } = self
            && !is_without_folder(error, endpoints)
        {
            let number = error.grpc_code();
            let call = error
                .call_number()
                .map(|call| format!("; call {call} in the log of csi-proxy"));
            let status = format!(
                "gRPC status {:?} ({number}){}",
                Code::from(number),
                call.unwrap_or_default()
            );
            // Writing to a String does not fail.
            let _ = writeln!(report, "{:INDENT$}{}", "", wrapped(&status, INDENT, width));
        }
        for hint in self.hints(endpoints) {
            let _ = writeln!(
                report,
                "{HINT}hint:{HINT:#}  {}",
                wrapped(&hint, INDENT, width)
            );
        }
        report
    }

    fn text(&self, endpoints: &Endpoints) -> String {
        match self {
            Self::Usage(text) | Self::Other { text, .. } => text.clone(),
            Self::Call { error, .. } if is_without_folder(error, endpoints) => NO_FOLDER.to_owned(),
            Self::Call { error, object } => {
                let (rpc, message) = (error.rpc(), error.message());
                let message = message
                    .strip_prefix(&format!("bad {rpc} request: "))
                    .unwrap_or(message);
                // No RPC was called.
                if message.starts_with("nothing serves ") {
                    return message.to_owned();
                }
                // The messages of csi-proxy name the object. The message of a call without an
                // answer does not.
                let object = object.as_ref().filter(|object| !message.contains(*object));
                let object = object
                    .map(|object| format!(" for {object}"))
                    .unwrap_or_default();
                format!("{rpc}{object} failed: {message}")
            }
            Self::Output(error) => format!("cannot write to standard output: {error}"),
        }
    }

    /// Returns what to do next.
    fn hints(&self, endpoints: &Endpoints) -> Vec<String> {
        let error = match self {
            Self::Call { error, .. } => error,
            Self::Other { hint, .. } => return hint.iter().cloned().collect(),
            _ => return Vec::new(),
        };
        let is_answer = error.call_number().is_some();
        let hint = match error.kind() {
            ErrorKind::Unavailable if is_answer => {
                "csi-proxy is busy or stopping, or a device does not answer; `csi-proxyctl top` \
                 shows what runs"
                    .into()
            }
            ErrorKind::DeadlineExceeded if is_answer => {
                "the node may still be at work: look at the state of the object before you repeat \
                 the command"
                    .into()
            }
            ErrorKind::Unavailable if is_broken(error) => {
                "if csi-proxy has restarted, repeat the command: a change that has already been \
                 made is not made again"
                    .into()
            }
            ErrorKind::Unavailable if *endpoints == Endpoints::Pipes => {
                return unserved_pipes(is_in_host_process_container())
                    .map(Into::into)
                    .into();
            }
            ErrorKind::Unavailable => endpoints.hint(),
            ErrorKind::FailedPrecondition if is_connecting(error) => endpoints.hint(),
            ErrorKind::PermissionDenied if is_connecting(error) => match endpoints {
                Endpoints::Pipes => {
                    "run csi-proxyctl as administrator: the pipes are open to administrators and \
                     LocalSystem"
                        .into()
                }
                _ => "run csi-proxyctl as the user who started csi-proxy-sim".into(),
            },
            ErrorKind::NotFound => {
                let group = GROUP_VERSIONS
                    .iter()
                    .find(|row| row.rpc(error.rpc()).is_some())
                    .map(|row| row.group);
                let what = match group {
                    Some(Group::Disk) => "disks` shows the disks",
                    Some(Group::Volume) if !error.rpc().ends_with("TargetPath") => {
                        "volumes` shows the volumes"
                    }
                    Some(Group::Iscsi) => "iscsi --targets` shows the portals and targets",
                    _ => return Vec::new(),
                };
                format!("`csi-proxyctl get {what}")
            }
            ErrorKind::DeadlineExceeded => {
                "`csi-proxyctl top` shows what the node does; --timeout gives a call more time"
                    .into()
            }
            ErrorKind::Unimplemented => {
                "`csi-proxyctl versions` shows what the node serves; --api-version selects an \
                 older version"
                    .into()
            }
            ErrorKind::Aborted | ErrorKind::ResourceExhausted => {
                "csi-proxy is busy with another call for the same object, or with too many calls; \
                 repeat the command"
                    .into()
            }
            _ => return Vec::new(),
        };
        vec![hint]
    }
}

fn is_in_host_process_container() -> bool {
    env::var_os("CONTAINER_SANDBOX_MOUNT_POINT").is_some()
}

/// Returns how to restart csi-proxy.
pub fn restart(endpoints: &Endpoints) -> &'static str {
    match endpoints {
        Endpoints::Pipes if is_in_host_process_container() => {
            "`kubectl delete pod` with the pod on this node"
        }
        Endpoints::Pipes => "`Restart-Service csiproxy` in PowerShell",
        _ => "start csi-proxy-sim again",
    }
}

/// Returns what to do if no pipe answers. A HostProcess container sees the pipes of its node, and
/// csi-proxy probably runs in one.
fn unserved_pipes(is_in_host_process_container: bool) -> [&'static str; 2] {
    if is_in_host_process_container {
        return [
            "`kubectl logs` of csi-proxy's pod on this node has the reason; `kubectl delete pod` \
             restarts csi-proxy",
            "a node with csi-proxy as a service: `sc.exe query csiproxy` shows its state, `sc.exe \
             start csiproxy` starts it",
        ];
    }
    [
        "is the csi-proxy service running? `sc.exe query csiproxy` shows its state, `sc.exe start \
         csiproxy` starts it",
        r"in a container, \\.\pipe\csi-proxy-* must be mounted",
    ]
}

/// Whether the call failed because it is not known where the sockets are.
fn is_without_folder(error: &Error, endpoints: &Endpoints) -> bool {
    *endpoints == Endpoints::Nowhere && is_connecting(error)
}

/// Whether the call failed before it reached a daemon.
fn is_connecting(error: &Error) -> bool {
    error.io_error().is_some()
}

/// Whether the connection broke during the call.
fn is_broken(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<Status>)
}

#[cfg(test)]
mod tests {
    use super::unserved_pipes;

    #[test]
    fn the_hint_for_pipes_that_nobody_serves_knows_whether_it_is_read_in_a_container() {
        let [in_container, on_the_node] = [true, false].map(|is_in_container| {
            let hints = unserved_pipes(is_in_container);
            for hint in hints {
                texts::seen!(hint);
            }
            hints[0]
        });
        assert!(
            in_container.contains("kubectl logs") && !in_container.contains("sc.exe"),
            "{in_container}"
        );
        assert!(
            on_the_node.contains("sc.exe") && !on_the_node.contains("kubectl"),
            "{on_the_node}"
        );
    }
}
