//! How an iSCSI initiator and a target authenticate.

/// The authentication method of an iSCSI session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// No authentication.
    None,
    /// The initiator authenticates by CHAP.
    OneWayChap,
    /// Initiator and target authenticate by CHAP.
    MutualChap,
}

impl Authentication {
    /// The name that `MSFT_iSCSITarget.Connect` takes.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::OneWayChap => "ONEWAYCHAP",
            Self::MutualChap => "MUTUALCHAP",
        }
    }
}
