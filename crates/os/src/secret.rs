//! Passwords and CHAP secrets.

use std::fmt;
use std::hash::{Hash, Hasher};

use zeroize::Zeroizing;

/// A text that is never printed in a log, trace, error or saved state. Dropping it overwrites it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes ownership of the text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the text. Pass it only to the call that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Hash for Secret {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expose().hash(state);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_does_not_print_itself() {
        assert_eq!(format!("{:?}", Secret::new("hunter2".into())), "[secret]");
    }
}
