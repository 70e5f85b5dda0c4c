//! Each case of `verify/cases`: a public report, the node on which a person met the problem, and the
//! calls with the answers that are right.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Failed, Trial};
use serde::Deserialize;

/// What a case adds to a recorded sequence.
#[derive(Deserialize)]
struct Case {
    /// What the person met, in a sentence.
    about: String,
    #[serde(rename = "case")]
    report: Report,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    /// The public threads: `owner/repository#number`, or an address.
    threads: Vec<String>,
    /// What csi-proxy does, in a sentence.
    answer: String,
    /// The public document that gives the right value.
    document: String,
    /// The flags of csi-proxy.
    #[serde(default)]
    flags: Vec<String>,
    /// Texts in the log of the daemon.
    #[serde(default)]
    log: Vec<String>,
    /// Texts in the report of doctor about the node before the calls.
    #[serde(default)]
    doctor: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if std::env::consts::OS == "windows" {
        // csi-proxy-sim replays on Unix sockets alone.
        return libtest_mimic::run(&arguments, Vec::new()).exit_code();
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verify/cases");
    let entries = fs::read_dir(&folder).expect("the folder");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    files.sort();
    let mut trials = Vec::new();
    let mut rows = String::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let case = read(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        let Report {
            threads,
            answer,
            document,
            ..
        } = &case.report;
        let threads: Vec<String> = threads.iter().map(|thread| link(thread)).collect();
        let (about, threads) = (&case.about, threads.join(" "));
        writeln!(
            rows,
            "| {about} | {answer} ([{name}]({name}.json)) | {threads} | [page]({document}) |"
        )
        .expect("memory");
        let name = name.into_owned();
        trials.push(Trial::test(name, move || replay(&file, &case.report)));
    }
    trials.push(Trial::test("the_page_lists_all_cases", move || {
        let page = fs::read_to_string(folder.join("README.md"))?;
        let (before, _) = page.split_once("|---|---|---|---|\n").ok_or("no table")?;
        let renewed = format!("{before}|---|---|---|---|\n{rows}");
        texts::golden!("../../../../verify/cases/README.md", renewed);
        Ok(())
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn read(file: &Path) -> Result<Case, Box<dyn Error>> {
    let case: Case = serde_json::from_str(&fs::read_to_string(file)?)?;
    let Report {
        threads, document, ..
    } = &case.report;
    if threads.is_empty() || !document.starts_with("https://") {
        return Err("a case has a thread and a document".into());
    }
    Ok(case)
}

/// Returns a link to a thread.
fn link(thread: &str) -> String {
    match thread.split_once('#') {
        Some((repository, number)) => {
            let name = repository.rsplit('/').next().unwrap_or_default();
            format!("[{name}#{number}](https://github.com/{repository}/issues/{number})")
        }
        None => format!("[source]({thread})"),
    }
}

/// Replays the calls on the node, and looks for the texts in the log and in the report of doctor.
fn replay(file: &Path, report: &Report) -> Result<(), Failed> {
    let node = file.with_extension("toml");
    let run = |command: &str, arguments: &[&str]| -> Result<Output, Failed> {
        let mut program = Command::new(env!("CARGO_BIN_EXE_csi-proxy-sim"));
        // The path of a socket has at most 107 bytes; the folder of a test runner may be longer.
        program.env("TMPDIR", "/tmp");
        let program = program.arg(command).arg("-node").arg(&node);
        Ok(program.args(arguments).output()?)
    };
    let file = file.to_string_lossy();
    let mut arguments = vec!["-fast"];
    arguments.extend(report.flags.iter().map(String::as_str));
    arguments.push(&file);
    let output = run("replay", &arguments)?;
    let calls = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{calls}{log}").into());
    }
    contains_all(&log, &report.log)?;
    if !report.doctor.is_empty() {
        let output = run("doctor", &[])?;
        contains_all(&String::from_utf8_lossy(&output.stdout), &report.doctor)?;
    }
    Ok(())
}

/// Fails unless the text, whose lines may be broken anywhere, contains all these texts.
fn contains_all(text: &str, wanted: &[String]) -> Result<(), Failed> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match wanted.iter().find(|wanted| !line.contains(wanted.as_str())) {
        Some(missing) => Err(format!("'{missing}' is not in:\n{text}").into()),
        None => Ok(()),
    }
}
