//! Mounted folders: `MOUNT`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
