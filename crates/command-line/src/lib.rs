//! What the command lines of `csi-proxyctl` and of `csi-proxy-sim ctl` share: arguments, tables and
//! other forms of output, failures with hints, and exit codes.

// The modules, from the lowest: `exit`, `quantity`, `output`, `progress`, `wrap`, `args`, `table`,
// `endpoints`, `failure`, `text_input`.

pub mod args;
pub mod endpoints;
pub mod exit;
pub mod failure;
pub mod output;
pub mod progress;
pub mod quantity;
pub mod table;
pub mod text_input;
mod wrap;
