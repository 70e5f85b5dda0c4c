//! The Windows node that this program runs on.

use std::sync::Arc;

use super::Backend;
use crate::unsupported::WindowsOnly;

/// Returns the Windows node that this program runs on.
pub fn windows() -> Result<Backend, WindowsOnly> {
    Ok(Backend { os: Arc::new(os_win32::Windows::new()), name: "this Windows node".to_owned(), is_this_node: true })
}
