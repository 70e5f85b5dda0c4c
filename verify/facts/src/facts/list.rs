//! Listing a directory: `LIST`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
