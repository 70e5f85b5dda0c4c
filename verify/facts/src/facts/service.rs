//! Services: `SVC`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
