//! Domain types. Parsing a request into them validates it.

mod allowed_portal;
mod disk_location;
mod host_path;
mod smb_server;
mod unc_path;
mod volume_id;

pub use allowed_portal::AllowedPortal;
pub use disk_location::DiskLocation;
pub use host_path::HostPath;
pub(crate) use host_path::{components, split_last, upper_case};
pub use smb_server::SmbServer;
pub use unc_path::UncPath;
pub(crate) use unc_path::lower_case;
pub use volume_id::VolumeId;

use std::fmt;
use std::net::Ipv4Addr;

use os::Secret;

use crate::error::{OperationError, OperationResult, quoted};

/// Returns whether a text that an administrator lists has only digits and dots but is not an IPv4
/// address. Taken as a name, it would never match.
fn is_mistyped_address(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == '.') && text.parse::<Ipv4Addr>().is_err()
}

/// The authentication method of an iSCSI session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// No authentication.
    None,
    /// The initiator authenticates with CHAP.
    OneWayChap,
    /// Initiator and target authenticate with CHAP.
    MutualChap,
}

impl Authentication {
    /// Returns the name that `MSFT_iSCSITarget.Connect` expects.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::OneWayChap => "ONEWAYCHAP",
            Self::MutualChap => "MUTUALCHAP",
        }
    }
}

/// The identifiers of a disk that do not depend on where it is attached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DiskIds {
    /// The SCSI page 83 identifier; empty if the disk has none.
    pub page83: String,
    /// The serial number, untrimmed; empty if the disk has none.
    pub serial: String,
}

/// The purpose that a request of an old API version states for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PathContext {
    /// The path is in the directory of a plugin.
    Plugin,
    /// The path is in the directory of a pod.
    Pod,
}

/// The size of a file system in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct VolumeStats {
    /// The size.
    pub total: u64,
    /// The size minus the free space.
    pub used: u64,
}

/// The number of a disk, as in `\\.\PhysicalDrive2`. Windows may assign another number when the
/// disk is attached again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiskNumber(pub u32);

impl DiskNumber {
    /// Parses the decimal form that old API versions use.
    pub fn parse(text: &str) -> OperationResult<Self> {
        let decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        decimal
            .then(|| text.parse().ok())
            .flatten()
            .map(Self)
            .ok_or_else(|| {
                OperationError::invalid(format!("{} is not a disk number", quoted(text)))
            })
    }
}

impl fmt::Display for DiskNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk {}", self.0)
    }
}

/// The registered port of iSCSI.
const ISCSI_PORT: u16 = 3260;

/// The address and port at which iSCSI targets can be reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetPortal {
    /// An IP address or host name.
    pub address: String,
    /// The TCP port; never 0.
    pub port: u16,
}

impl TargetPortal {
    /// Parses an address and a port; port 0 means 3260.
    pub fn parse(address: &str, port: u32) -> OperationResult<Self> {
        if address.is_empty()
            || address.len() > 255
            || !address.chars().all(|c| {
                c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '_' | '%' | '[' | ']')
            })
        {
            return Err(OperationError::invalid(format!(
                "{} is not a valid target portal address",
                quoted(address)
            )));
        }
        let port = u16::try_from(port)
            .map_err(|_| OperationError::invalid(format!("{port} is not a valid TCP port")))?;
        Ok(Self {
            address: address.to_owned(),
            port: if port == 0 { ISCSI_PORT } else { port },
        })
    }
}

impl fmt::Display for TargetPortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.address, self.port)
    }
}

/// The iSCSI qualified name of a target (or its EUI or NAA name).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iqn(String);

impl Iqn {
    /// Parses the name of a target.
    pub fn parse(text: &str) -> OperationResult<Self> {
        // RFC 3720, 3.2.6: at most 223 bytes; names are compared without case.
        let has_type = ["iqn.", "eui.", "naa."]
            .iter()
            .any(|prefix| text.to_ascii_lowercase().starts_with(prefix));
        if !has_type
            || text.len() > 223
            || !text
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | ':' | '_'))
        {
            return Err(OperationError::invalid(format!(
                "{} is not a valid iSCSI target name",
                quoted(text)
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as it was parsed.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Iqn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Checks a text that has no specific form. An error names it as `what`. Windows' own limits of the
/// length are lower.
pub(crate) fn check_text(text: &str, what: &str) -> OperationResult<()> {
    let fault = if text.len() > 1024 {
        "is longer than 1024 bytes"
    } else if text.contains('\0') {
        "has a NUL character"
    } else {
        return Ok(());
    };
    Err(OperationError::invalid(format!("{what} {fault}")))
}

/// A password, a CHAP secret or the name of a CHAP user; empty for none. It is never printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SecretText(Secret);

impl SecretText {
    /// Checks the length and the characters. An error names the text as `what` and does not show
    /// it.
    pub fn parse(text: String, what: &str) -> OperationResult<Self> {
        let secret = Secret::new(text);
        check_text(secret.expose(), what).map(|()| Self(secret))
    }

    /// Returns the text. Expose it only to the call that needs it.
    pub(crate) fn secret(&self) -> &Secret {
        &self.0
    }
}

/// The user of an SMB server, with or without a domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SmbUser(String);

impl SmbUser {
    /// Parses `user`, `user@domain` or `domain\user`. Returns `None` if the text is empty.
    pub fn parse(text: &str) -> OperationResult<Option<Self>> {
        check_text(text, "the user name")?;
        if text.is_empty() {
            return Ok(None);
        }
        let mut parts = text.rsplit('\\').flat_map(|name| name.split('@'));
        // Windows might take a blank name for no user.
        if parts.next().is_some_and(|name| name.trim().is_empty()) {
            return Err(OperationError::invalid(
                "the user name is blank, or a domain without a name",
            ));
        }
        Ok(Some(Self(text.to_owned())))
    }

    /// Returns the name as it was parsed.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the user and the password in the form that `MSFT_SmbGlobalMapping` expects.
    pub(crate) fn credential(&self, password: &SecretText) -> Secret {
        let user = self.0.replace('\\', r"\\").replace(':', r"\:");
        Secret::new(format!("{user}:{}", password.0.expose()))
    }
}

/// The short name of a Windows service, such as `MSiSCSI`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceName(String);

impl ServiceName {
    /// Parses a name by the rules of `CreateServiceW`.
    pub fn parse(text: &str) -> OperationResult<Self> {
        let is_too_long = text.encode_utf16().count() > 256;
        if text.is_empty()
            || is_too_long
            || text.contains(['/', '\\'])
            || text.contains(char::is_control)
        {
            return Err(OperationError::invalid(format!(
                "{} is not a valid service name",
                quoted(text)
            )));
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as it was parsed.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The configuration and state of a service, with the numbers that Windows uses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ServiceInfo {
    /// The display name.
    pub display_name: String,
    /// From `SERVICE_BOOT_START` (0) to `SERVICE_DISABLED` (4).
    pub start_type: u32,
    /// From `SERVICE_STOPPED` (1) to `SERVICE_PAUSED` (7).
    pub state: u32,
}

#[cfg(test)]
mod tests {
    use super::{SecretText, SmbUser};

    #[test]
    fn the_user_of_a_credential_ends_at_the_first_unescaped_colon() {
        let user = SmbUser::parse(r"AZURE\acct:1").unwrap().unwrap();
        let password = SecretText::parse(r"p:w\".into(), "the password").unwrap();
        assert_eq!(user.credential(&password).expose(), r"AZURE\\acct\:1:p:w\");
    }
}
