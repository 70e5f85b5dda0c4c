//! A pseudo-random number generator.

use std::time::Duration;

/// Xorshift64 (Marsaglia, 2003).
pub(crate) struct Rng(u64);

impl Rng {
    /// Seeds a generator.
    pub(crate) fn new(seed: u64) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ seed)
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Returns a duration below `bound`.
    pub(crate) fn duration_below(&mut self, bound: Duration) -> Duration {
        let microseconds = u64::try_from(bound.as_micros()).expect("an hour at most");
        Duration::from_micros(self.below(microseconds))
    }
}
