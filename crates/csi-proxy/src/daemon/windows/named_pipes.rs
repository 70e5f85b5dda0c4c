//! Named pipes, which only administrators, LocalSystem and chosen accounts can open.

use std::fmt;
use std::io;
use std::sync::Arc;

use doctor::access::is_trusted;
use os::OsResult;
use os::abi::SecurityDescriptor;
use os_win32::pipe::{Owner, Security, owner_and_access};
use tokio::net::windows::named_pipe::NamedPipeServer;
use transport::address::{Address, Location};

use crate::flags::Flags;
use crate::serve::Endpoints;

/// A named pipe that accepts connections.
#[derive(Debug)]
pub struct Listener {
    pipe: os_win32::pipe::Listener,
    address: Address,
}

impl transport::listener::Listener for Listener {
    type Stream = NamedPipeServer;

    async fn accept(&mut self) -> io::Result<Self::Stream> {
        self.pipe.accept().await
    }

    fn client_process(stream: &NamedPipeServer) -> Option<u32> {
        os_win32::pipe::client_process(stream).ok()
    }

    fn address(&self) -> &Address {
        &self.address
    }
}

/// Returns the named pipes that drivers know, open to administrators, LocalSystem and the accounts
/// that the flags name.
pub fn named_pipes(
    flags: &Flags,
) -> io::Result<Endpoints<impl FnMut(&Address) -> io::Result<Listener>>> {
    let security = Security::with_accounts(&flags.pipe_sids).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot open the pipes to an account: {error}"),
        )
    })?;
    let security = Arc::new(security);
    let bind = move |address: &Address| bind(address, &security);
    Ok(Endpoints {
        location: Location::NamedPipes,
        bind,
        services: |_| Vec::new(),
    })
}

fn bind(address: &Address, security: &Arc<Security>) -> io::Result<Listener> {
    let path = &address.to_string();
    match os_win32::pipe::Listener::bind(path, Arc::clone(security)) {
        Ok(pipe) => Ok(Listener {
            pipe,
            address: address.clone(),
        }),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(refused(address, error, owner_and_access(path)))
        }
        Err(error) => Err(error),
    }
}

/// Returns the error for a pipe that could not be created: that another process serves it, or
/// `error` if no process does.
fn refused(
    address: &Address,
    error: io::Error,
    served: io::Result<(Owner, OsResult<SecurityDescriptor>)>,
) -> io::Error {
    let (process, access) = match served {
        Err(absent) if absent.kind() == io::ErrorKind::NotFound => return error,
        served => served.ok().unzip(),
    };
    let account = access.and_then(|access| Some(access.ok()?.owner?.to_string()));
    let stranger = account.filter(|account| !is_trusted(account));
    io::Error::new(
        io::ErrorKind::AddrInUse,
        Taken {
            address: address.clone(),
            process,
            stranger,
        },
    )
}

/// A pipe that another process already serves.
#[derive(Debug)]
struct Taken {
    address: Address,
    process: Option<Owner>,
    /// The SID of the pipe's owner, if that is no administrator.
    stranger: Option<String>,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            address,
            process,
            stranger,
        } = self;
        match process {
            Some(Owner {
                process,
                program: Some(program),
            }) => {
                write!(
                    f,
                    "{address} is already served by process {process}, {}",
                    program.display()
                )
            }
            Some(Owner {
                process,
                program: None,
            }) => write!(f, "{address} is already served by process {process}"),
            None => write!(f, "{address} is already served by another process"),
        }?;
        match stranger {
            Some(account) => write!(
                f,
                "; the pipe belongs to {account}, which is no administrator: drivers that \
                 connected to it may have given it their secrets"
            ),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Taken {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::{env, io, process};

    use os::abi::SecurityDescriptor;
    use os_win32::pipe::{Owner, Security, owner_and_access};
    use transport::address::{Address, Location};

    use super::{Listener, OsResult, refused};

    fn bind(address: &Address) -> io::Result<Listener> {
        super::bind(address, &Arc::new(Security::administrators()?))
    }

    fn denied() -> io::Error {
        io::ErrorKind::PermissionDenied.into()
    }

    #[expect(clippy::unnecessary_wraps, reason = "as Windows returns it")]
    fn access(owner: &str) -> OsResult<SecurityDescriptor> {
        Ok(SecurityDescriptor {
            owner: Some(owner.parse().unwrap()),
            entries: None,
        })
    }

    fn address(test: &str) -> Address {
        Location::NamedPipes.address(&format!("csi-proxy-test-{test}-{}", process::id()))
    }

    #[tokio::test]
    async fn a_refusal_names_the_process_that_serves_the_pipe() {
        let address = address("owner");
        let _listener = bind(&address).unwrap();
        let (process, _) = owner_and_access(address.path().to_str().unwrap()).unwrap();
        let sentence =
            refused(&address, denied(), Ok((process, access("S-1-5-32-544")))).to_string();
        let program = env::current_exe().unwrap();
        let name = program.file_name().unwrap().to_str().unwrap();
        assert!(
            sentence.starts_with(&format!(
                "{address} is already served by process {}",
                process::id()
            )),
            "{sentence}"
        );
        assert!(sentence.ends_with(name), "{sentence}");
    }

    #[test]
    fn a_refusal_says_whether_the_pipe_belongs_to_an_administrator() {
        let process = Owner {
            process: 7,
            program: None,
        };
        for (account, expected) in [
            ("S-1-5-18", "is already served by process 7"),
            ("S-1-5-32-544", "is already served by process 7"),
            (
                "S-1-5-21-1-2-3-1001",
                "is already served by process 7; the pipe belongs to S-1-5-21-1-2-3-1001, which is \
                 no administrator: drivers that connected to it may have given it their secrets",
            ),
        ] {
            let sentence = refused(
                &address("stranger"),
                denied(),
                Ok((process.clone(), access(account))),
            )
            .to_string();
            assert!(sentence.ends_with(expected), "{sentence}");
        }
    }

    #[test]
    fn a_pipe_that_no_process_serves_is_refused_for_another_reason() {
        let address = address("free");
        let error = refused(
            &address,
            denied(),
            owner_and_access(address.path().to_str().unwrap()),
        );
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_refusal_without_a_known_owner_still_states_that_the_pipe_is_served() {
        let sentence = refused(&address("unknown"), denied(), Err(denied())).to_string();
        assert!(
            sentence.ends_with("is already served by another process"),
            "{sentence}"
        );
    }
}
