//! Numbers that nobody foresees, from a seed.

use std::time::Duration;

pub(crate) struct Random(u64);

impl Random {
    /// Seeds differ by process, too: a client that follows a killed one must not do the same again.
    pub(crate) fn new(number: u32) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ u64::from(number) ^ u64::from(std::process::id()) << 32)
    }

    /// A number below `bound`, after Marsaglia.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Less than that time.
    pub(crate) fn time_below(&mut self, bound: Duration) -> Duration {
        let microseconds = u64::try_from(bound.as_micros()).expect("an hour at most");
        Duration::from_micros(self.below(microseconds))
    }
}
