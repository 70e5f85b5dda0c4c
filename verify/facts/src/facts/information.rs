//! Information about files: `FILE-INFO`, `FINAL` and `FLUSH`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
