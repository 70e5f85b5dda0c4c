//! The security descriptor of a pipe: the accounts that may connect.

use std::fmt::Write as _;
use std::io;

use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;

use crate::security_descriptor::{SecurityDescriptor, Sid};

/// Nothing is inherited (`P`). LocalSystem and the members of Administrators may read and write.
///
/// `OW` are the rights of the owner: to read the descriptor. Without this entry, Windows would let
/// the owner change the descriptor too, and the owner of what LocalSystem creates is
/// Administrators.
const ADMINISTRATORS: &str = "D:P(A;;GRGW;;;SY)(A;;GRGW;;;BA)(A;;RC;;;OW)";

/// The security descriptor of a pipe.
#[derive(Debug)]
pub struct Security {
    descriptor: SecurityDescriptor,
}

impl Security {
    /// Lets LocalSystem and the members of Administrators read and write, and gives no access to
    /// other accounts. ContainerAdministrator, the account of a driver in a process-isolated
    /// container, is such a member.
    ///
    /// No account may change the descriptor. Less than read and write is not enough: every client
    /// requests `GENERIC_WRITE`. For a pipe, that includes the right to create instances
    /// (`FILE_CREATE_PIPE_INSTANCE` is `FILE_APPEND_DATA`), which the daemon needs too.
    pub fn administrators() -> io::Result<Self> {
        Self::with_accounts::<&str>(&[])
    }

    /// Grants the same access as [`Self::administrators`], and the same to the accounts or groups
    /// with these SIDs (`S-1-5-...`). Each of them can then do everything to the node that
    /// csi-proxy can do.
    pub fn with_accounts<S: AsRef<str>>(sids: &[S]) -> io::Result<Self> {
        let mut sddl = ADMINISTRATORS.to_owned();
        for sid in sids {
            // Also ensures that a text which is not a SID cannot add entries to the descriptor.
            Sid::parse(sid.as_ref())?;
            write!(sddl, "(A;;GRGW;;;{})", sid.as_ref()).map_err(io::Error::other)?;
        }
        Ok(Self {
            descriptor: SecurityDescriptor::from_sddl(&sddl)?,
        })
    }

    /// Returns the attributes for a call that creates an object. They point to this descriptor.
    pub(super) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        self.descriptor.attributes()
    }
}

#[cfg(test)]
mod tests {
    use super::Security;
    use std::io;
    use std::sync::Arc;

    use std::os::windows::io::AsRawHandle as _;
    use tokio::net::windows::named_pipe::ClientOptions;

    use crate::pipe::Listener;
    use crate::security_descriptor::tests::sddl_of;

    /// Returns SDDL in the spelling of this module. For a pipe, Windows replaces `GRGW` by the
    /// rights that it stands for.
    fn as_written(sddl: &str) -> String {
        sddl.replace("GWGR", "GRGW").replace("0x12019f", "GRGW")
    }

    #[test]
    fn an_account_with_a_listed_sid_has_access() {
        let security = Security::with_accounts(&["S-1-5-93-2-1"]).unwrap();
        let expected = "D:P(A;;GRGW;;;SY)(A;;GRGW;;;BA)(A;;RC;;;OW)(A;;GRGW;;;S-1-5-93-2-1)";
        assert_eq!(as_written(&security.descriptor.sddl()), expected);
    }

    #[test]
    fn a_text_that_is_not_a_sid_is_refused() {
        for sid in [
            "",
            "S-",
            "WD",
            "Everyone",
            "S-1-5-93-2-1)(A;;GA;;;WD",
            "S-1-5\0-1",
        ] {
            assert_eq!(
                Security::with_accounts(&[sid]).unwrap_err().kind(),
                io::ErrorKind::InvalidInput,
                "{sid}"
            );
        }
    }

    #[tokio::test]
    async fn contract_04_a_pipe_has_the_requested_security_descriptor() {
        let security = Arc::new(Security::administrators().unwrap());
        let mut listener = Listener::bind(r"\\.\pipe\csi-proxy-test-security", security).unwrap();
        let _client = ClientOptions::new().open(listener.path()).unwrap();
        let server = listener.accept().await.unwrap();
        assert_eq!(
            as_written(&sddl_of(server.as_raw_handle())),
            "D:P(A;;GRGW;;;SY)(A;;GRGW;;;BA)(A;;RC;;;OW)"
        );
    }
}
