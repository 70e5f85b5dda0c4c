//! Pipes, accounts and containers: `PIPE` and `HPC`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
