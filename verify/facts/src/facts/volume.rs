//! Volumes as devices: `VOL`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
