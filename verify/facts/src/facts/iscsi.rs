//! The iSCSI initiator: `ISCSI`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
