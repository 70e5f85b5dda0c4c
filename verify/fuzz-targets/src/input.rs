//! Takes values from the fuzzer's bytes. After their end, all values are zero.

/// The bytes that have not been taken yet.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or_default()
    }

    /// Takes at most `length` bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes a byte, and as many bytes as it states.
    pub(crate) fn string(&mut self) -> &'a [u8] {
        let length = self.byte();
        self.bytes(length.into())
    }

    /// Takes a byte, and returns the element of `all` that it selects. `all` must not be empty.
    pub(crate) fn one_of<'b, T>(&mut self, all: &'b [T]) -> &'b T {
        &all[usize::from(self.byte()) % all.len()]
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        self.bytes(usize::MAX)
    }
}
