//! Reparse points, setting and reading: `REP-SET`, `REP-GET` and `REP-DEL`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
