//! Where the program under test is.

use std::env;
use std::path::PathBuf;

/// The program that serves a simulated node; its package has the same name.
pub(crate) const NAME: &str = "csi-proxy";

/// The variable with the path of another build of it.
const PATH: &str = "CSI_PROXY_SIM";

/// Returns the program that `CSI_PROXY_SIM` names, else the one beside this test in `target/<profile>`, else nothing.
///
/// Cargo gives a test the path of a program only if both are in one package.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(path) = env::var_os(PATH) {
        return Some(path.into());
    }
    let test = env::current_exe().expect("the path of this test");
    let profile = test.ancestors().nth(2).expect("a test in target/<profile>/deps");
    let program = profile.join(format!("{NAME}{}", env::consts::EXE_SUFFIX));
    program.is_file().then_some(program)
}
