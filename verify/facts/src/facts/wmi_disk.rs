//! The storage provider, disks: `WMI-DISK`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
