//! Between messages and the domain: a conversion for each shape, whatever versions share it.

use std::num::TryFromIntError;

use storage_ops::{Config, HostPath, Operation, OperationError, OperationResult, Secret};

/// The longest text without a form of its own, such as a user's name, in bytes. What Windows takes is shorter.
const LONGEST: usize = 1024;

/// A request message.
pub(crate) trait IntoOperation: Send + 'static {
    /// What it asks for; an older name asks for the same as the newer one.
    type Operation: Operation;

    /// Reads the message; what does not parse is refused here.
    fn operation(self, config: &Config) -> OperationResult<Self::Operation>;
}

/// What an operation answers, on its way into the response `M`.
pub(crate) trait IntoResponse<M> {
    /// The response. Windows has unsigned sizes where the wire has signed ones; what does not fit is an error.
    fn into_response(self) -> Result<M, TryFromIntError>;
}

/// Success alone is an empty message. An old one has an `error` field, which stays empty too.
impl<M: Default> IntoResponse<M> for () {
    fn into_response(self) -> Result<M, TryFromIntError> {
        Ok(M::default())
    }
}

/// A path as old and lax drivers write it: without a drive, with forward slashes.
pub(crate) fn loose(path: &str, config: &Config) -> OperationResult<HostPath> {
    HostPath::parse_loose(path, &config.kubelet_dir)
}

/// A text that is handed on to Windows as it is; `what` it is goes into the refusal.
pub(crate) fn text(text: String, what: &str) -> OperationResult<String> {
    check(&text, what).map(|()| text)
}

/// Like [`text`], for what must not be repeated.
pub(crate) fn secret(text: String, what: &str) -> OperationResult<Secret> {
    let secret = Secret::new(text);
    check(secret.expose(), what).map(|()| secret)
}

fn check(text: &str, what: &str) -> OperationResult<()> {
    if text.len() > LONGEST {
        return Err(OperationError::invalid(format!("{what} is longer than {LONGEST} bytes")));
    }
    if text.contains('\0') {
        return Err(OperationError::invalid(format!("{what} has a zero character")));
    }
    Ok(())
}
