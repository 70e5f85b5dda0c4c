//! A user name and a password.

use std::fmt;

/// The credentials for an SMB share, or for the CHAP authentication of an iSCSI session. `Debug`
/// redacts the password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Credentials<'a> {
    /// `domain\user` for SMB, where the name of the server will do for a server without a domain;
    /// the CHAP user name for iSCSI.
    pub username: &'a str,
    /// The password for SMB, the CHAP secret for iSCSI.
    pub password: &'a str,
}

impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            username,
            password: _,
        } = self;
        f.debug_struct("Credentials")
            .field("username", username)
            .field("password", &"[redacted]")
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Credentials;

    #[test]
    fn debug_shows_no_password() {
        let shown = format!(
            "{:?}",
            Credentials {
                username: "anna",
                password: "hunter2"
            }
        );
        assert!(
            shown.contains("anna") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}
