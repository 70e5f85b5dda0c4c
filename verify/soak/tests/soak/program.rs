//! The program under test.

use std::env;
use std::path::PathBuf;

/// The name of the program, which serves a simulated node, and of its package.
const NAME: &str = "csi-proxy-sim";

/// The variable that names another build of the program.
const PATH: &str = "CSI_PROXY_SIM";

/// Finds the program: the one that `CSI_PROXY_SIM` names, else the one in this test's folder
/// `target/<profile>`. If it has not been built, prints that the test is skipped.
///
/// Cargo builds a program, and sets the variable `CARGO_BIN_EXE_...`, only for tests of the
/// program's own package.
pub(crate) fn find() -> Option<PathBuf> {
    if let Some(path) = env::var_os(PATH) {
        return Some(path.into());
    }
    let test = env::current_exe().expect("the path of this test");
    let profile = test
        .ancestors()
        .nth(2)
        .expect("a test in target/<profile>/deps");
    let program = profile.join(format!("{NAME}{}", env::consts::EXE_SUFFIX));
    if program.is_file() {
        return Some(program);
    }
    println!(
        "skipped: {}: build {NAME} first (cargo build -p {NAME})",
        crate::TEST
    );
    None
}
