//! The storage provider, volumes: `WMI-VOL`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
