//! CHAP, the authentication of iSCSI.

/// How initiator and target prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Authentication {
    /// Not at all.
    None,
    /// The initiator by CHAP.
    OneWayChap,
    /// Both by CHAP.
    MutualChap,
}

impl Authentication {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::OneWayChap => "ONEWAYCHAP",
            Self::MutualChap => "MUTUALCHAP",
        }
    }
}
