//! The storage provider, partitions: `WMI-PART`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
