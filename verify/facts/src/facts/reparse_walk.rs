//! Reparse points, following: `REP-WALK`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
