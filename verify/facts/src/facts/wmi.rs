//! WMI and the storage provider as a whole: `WMI-JOB`, `WMI-CACHE` and `WMI-CODE`.

use crate::fact::Fact;

pub(crate) const FACTS: &[Fact] = &[];
