//! How an iSCSI initiator and a target authenticate.

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
