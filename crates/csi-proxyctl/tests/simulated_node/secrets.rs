//! Secrets are in no argument and in no output.

use tempfile::tempdir;

use super::daemon::{Daemon, Sockets};
use super::node::node;
use super::program::{command, file, on_terminal, run, run_with_input};

const PASSWORD: &str = "hunter2";
const MAPPING: [&str; 6] = [
    "smb",
    "new-global-mapping",
    "--remote-path",
    r"\\fileserver\share",
    "--username",
    r"fileserver\anna",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_read_from_a_file_standard_input_or_the_environment() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let folder = tempdir().unwrap();
    let utf16: Vec<u8> = "\u{feff}hunter2\r\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (name, contents) in [
        ("lf", &b"hunter2\n"[..]),
        ("plain", b"hunter2"),
        ("powershell", &utf16),
    ] {
        let path = file(folder.path(), name, contents);
        assert_eq!(
            run(
                &sockets,
                &[&MAPPING[..], &["--password-file", &path]].concat()
            )
            .ok(),
            ""
        );
        run(
            &sockets,
            &[
                "smb",
                "remove-global-mapping",
                "--remote-path",
                r"\\fileserver\share",
            ],
        )
        .ok();
    }
    run_with_input(
        &sockets,
        &[&MAPPING[..], &["--password-file", "-"]].concat(),
        "hunter2\r\n",
    )
    .ok();
    run(
        &sockets,
        &[
            "smb",
            "remove-global-mapping",
            "--remote-path",
            r"\\fileserver\share",
        ],
    )
    .ok();
    let mut from_env = command(&sockets);
    let output = from_env
        .args(MAPPING)
        .args(["--password-env", "SMB_PASSWORD"])
        .env("SMB_PASSWORD", PASSWORD)
        .output();
    assert!(output.expect("a process").status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_output_contains_a_secret() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let number =
        r#"{ "remote_path": "\\\\fileserver\\share", "username": "x", "password": 424242 }"#;
    let wrong = r#"{ "remote_path": "\\\\fileserver\\share", "username": "anna", "password": "wrong-424242" }"#;
    for (request, code) in [(number, 2), (wrong, 1), (&wrong[..wrong.len() - 3], 2)] {
        let run = run_with_input(
            &sockets,
            &["call", "smb/v1/NewSmbGlobalMapping", "-"],
            request,
        );
        assert_eq!(run.code, Some(code), "{run:?}");
        assert!(
            !run.stderr.contains("424242") && !run.stdout.contains("424242"),
            "{run:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_is_not_given_is_asked_for_on_the_terminal_which_does_not_show_it() {
    let (sim, sockets) = (node(), Sockets::new());
    let _daemon = Daemon::on(&sim, &sockets);
    let arguments = [&MAPPING[..], &["-o", "json"]].concat();
    let shown = on_terminal(
        &sockets,
        &arguments,
        "Enter the password: ",
        &format!("{PASSWORD}\n"),
    );
    assert!(
        shown.ends_with("{}\r\n") && !shown.contains(PASSWORD),
        "{shown}"
    );
    let wrong = on_terminal(&sockets, &arguments, "Enter the password: ", "\n");
    assert!(wrong.contains("the password is empty"), "{wrong}");
    let required = on_terminal(
        &sockets,
        &["iscsi", "set-mutual-chap-secret"],
        "Enter the mutual CHAP secret: ",
        "\n",
    );
    assert!(
        required.contains("the mutual CHAP secret is empty"),
        "{required}"
    );
}

#[test]
fn a_secret_on_the_command_line_is_refused() {
    let sockets = Sockets::new();
    for request in [
        r#"{ "password": "x" }"#,
        r#"{ "chapSecret": "x" }"#,
        r#"{ "MutualChapSecret": 1 }"#,
    ] {
        let run = run(&sockets, &["call", "smb/v1/NewSmbGlobalMapping", request]);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(
            run.stderr
                .contains("other processes can read the command line"),
            "{run:?}"
        );
    }
    let secret = ["iscsi", "set-mutual-chap-secret"];
    for (arguments, flag) in [
        (
            [&MAPPING[..], &["--password", PASSWORD]].concat(),
            "--password",
        ),
        (
            [
                &["smb", "new-global-mapping", "--password=-hunter2"],
                &MAPPING[2..],
            ]
            .concat(),
            "--password",
        ),
        ([&MAPPING[..], &["--password"]].concat(), "--password"),
        (
            [&secret[..], &["--mutual-chap-secret", PASSWORD]].concat(),
            "--mutual-chap-secret",
        ),
    ] {
        let run = run(&sockets, &arguments);
        assert_eq!(run.code, Some(2), "{run:?}");
        let text = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        let sources = format!(
            "with {flag}-file FILE (- for standard input) or {flag}-env VARIABLE, or with neither"
        );
        assert!(
            text.contains("other processes can read the command line") && text.contains(&sources),
            "{text}"
        );
        assert!(!text.contains(PASSWORD), "{text}");
    }
    let without = run_with_input(&sockets, &secret, "");
    assert_eq!(without.code, Some(2), "{without:?}");
    assert!(
        without
            .stderr
            .contains("the mutual CHAP secret is missing: give it with --mutual-chap-secret-file"),
        "{without:?}"
    );
    for arguments in [
        ["--password-env", "CSI_PROXYCTL_UNSET"],
        ["--password-file", "/dev/null"],
    ] {
        let run = run(&sockets, &[&MAPPING[..], &arguments].concat());
        assert_eq!(run.code, Some(2), "{run:?}");
    }
}
