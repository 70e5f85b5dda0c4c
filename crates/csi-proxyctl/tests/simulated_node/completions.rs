//! The completion scripts are scripts of their shells.

use std::io::ErrorKind;
use std::process::Command;

use super::daemon::Sockets;
use super::program::{file, run};

fn script(shell: &str) -> String {
    let script = run(&Sockets::new(), &["completions", shell]).ok();
    for word in [
        "get-closest-id",
        "--api-version",
        "--password-file",
        "completions",
        "disk/v1/ListDiskIDs",
    ] {
        assert!(script.contains(word), "{shell}: {word}");
    }
    script
}

#[test]
fn bash_reads_its_script_and_completes() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "script", script("bash").as_bytes());
    for (command, begun, completed) in [
        ("volume", "unm", "unmount\n"),
        (
            "call",
            "disk/v1/L",
            "disk/v1/ListDiskLocations disk/v1/ListDiskIDs\n",
        ),
    ] {
        let program = format!(
            "source {path}; COMP_WORDS=(csi-proxyctl {command} {begun}); COMP_CWORD=2; $(complete \
             -p csi-proxyctl | sed 's/.* -F \\([^ ]*\\).*/\\1/') csi-proxyctl {begun} {command}; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &program])
            .output()
            .expect("bash is installed");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            completed,
            "{output:?}"
        );
    }
}

#[test]
fn powershell_gets_a_completer() {
    let script = script("powershell");
    assert!(
        script.contains("Register-ArgumentCompleter -Native -CommandName 'csi-proxyctl'"),
        "{script}"
    );
    assert!(
        script.contains("[CompletionResult]::new('unmount', "),
        "{script}"
    );
    let name = "[CompletionResult]::new('disk/v1/ListDiskIDs', 'disk/v1/ListDiskIDs', \
                [CompletionResultType]::ParameterValue, ";
    let (_, call) = script.split_once("'csi-proxyctl;call' {").unwrap();
    assert!(
        call.split_once("break").unwrap().0.contains(name),
        "{script}"
    );
}

#[test]
fn zsh_gets_a_completion_function() {
    let script = script("zsh");
    assert!(script.starts_with("#compdef csi-proxyctl\n"), "{script}");
    // zsh is not on every machine; where it is, it must accept the script.
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "_csi-proxyctl", script.as_bytes());
    match Command::new("zsh").args(["-n", &path]).output() {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("skipped: zsh_gets_a_completion_function: zsh is not installed");
        }
        Err(error) => panic!("{error}"),
    }
}
