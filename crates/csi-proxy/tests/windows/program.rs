//! The file of the program.

use std::fs;

use crate::PROGRAM;

#[test]
fn the_program_has_its_manifest() {
    let program = fs::read(PROGRAM).expect("the program");
    let contains = |text: &str| {
        program
            .windows(text.len())
            .any(|bytes| bytes == text.as_bytes())
    };
    assert!(contains(include_str!("../../csi-proxy.exe.manifest")));
    for setting in [
        r#"<requestedExecutionLevel level="asInvoker" uiAccess="false"/>"#,
        r#"<longPathAware xmlns="http://schemas.microsoft.com/SMI/2016/WindowsSettings">true</longPathAware>"#,
    ] {
        assert!(contains(setting), "{setting}");
    }
}
