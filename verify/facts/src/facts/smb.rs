//! SMB global mappings: `SMB`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
