//! Deleting: `FILE-DEL`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
