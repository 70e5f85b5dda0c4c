//! One run of a job: a source tree in a temporary folder, in which steps of bash run with stand-ins
//! for the programs that this machine lacks. What actions and PowerShell do is imitated, as far as
//! later steps use the result.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::expression::{self, Context, Value};
use crate::job::{Job, Kind, Step};

const STAND_INS: [(&str, &str); 7] = [
    ("cargo", include_str!("stand-ins/cargo")),
    ("git", include_str!("stand-ins/git")),
    ("go", include_str!("stand-ins/go")),
    ("program", include_str!("stand-ins/program")),
    ("rustc", include_str!("stand-ins/rustc")),
    ("rustup", include_str!("stand-ins/rustup")),
    ("selftest", include_str!("stand-ins/selftest")),
];
/// Ends a stand-in that is broken in this run.
const HEAD: &str = r#"#!/usr/bin/env bash
case " $BROKEN " in *" ${0##*/} "* | *" all "*) exit 1 ;; esac
"#;
/// The file that stands for the installed service.
const SERVICE: &str = "service";
/// The log of the service, which is on drive C: on Windows.
const LOG: &str = "csi-proxy.log";

/// What goes wrong in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub(crate) released: bool,
    /// The steps that fail.
    pub(crate) failing: Vec<usize>,
    /// The step during which somebody cancels the run, or the job reaches its limit.
    pub(crate) cancelled: Option<usize>,
    /// How the self-test ends: `fails`, `is-killed` or `writes-nothing`; or the path of the built one.
    pub(crate) self_test: String,
    /// Programs that fail in each step.
    pub(crate) broken: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Outcome {
    Success,
    Failure,
    Cancelled,
    Skipped,
}

impl Outcome {
    fn text(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// What a run has shown.
pub(crate) struct Run {
    pub(crate) outcomes: Vec<Outcome>,
    /// The names of the kept files of the self-test.
    pub(crate) kept: BTreeSet<String>,
    pub(crate) summary: String,
    /// The steps that ran without what they use.
    pub(crate) without_product: Vec<String>,
    /// The steps that were skipped, though all was there that they use.
    pub(crate) needlessly_skipped: Vec<String>,
}

struct Machine<'a> {
    job: &'a Job,
    case: &'a Case,
    folder: &'a Path,
    outcomes: Vec<Outcome>,
    cancelled: bool,
    kept: BTreeSet<String>,
}

/// Runs a job.
pub(crate) fn run(job: &Job, case: &Case) -> Run {
    let folder = tempfile::tempdir().expect("a folder");
    let mut machine = Machine {
        job,
        case,
        folder: folder.path(),
        outcomes: Vec::new(),
        cancelled: false,
        kept: BTreeSet::new(),
    };
    fs::create_dir(machine.folder.join("tree")).expect("a folder");
    fs::create_dir(machine.folder.join("bin")).expect("a folder");
    for (name, script) in STAND_INS {
        write_program(&machine.folder.join("bin").join(name), script);
    }
    let (mut without_product, mut needlessly_skipped) = (Vec::new(), Vec::new());
    for (index, step) in job.steps.iter().enumerate() {
        let fails = case.failing.contains(&index);
        let mut runs = machine.holds(step);
        if case.cancelled == Some(index) {
            machine.cancelled = true;
            if runs && !machine.holds(step) {
                // The runner ends a step whose condition no longer holds.
                machine.perform(step, "is-killed", case.broken);
                machine.outcomes.push(Outcome::Cancelled);
                continue;
            }
            runs = machine.holds(step);
        }
        let outcome = if !runs {
            if !machine.cancelled && !fails && machine.could_run(step) {
                needlessly_skipped.push(step.name.clone());
            }
            Outcome::Skipped
        } else if fails {
            machine.perform(step, &case.self_test, "all");
            machine.remove_products(step);
            Outcome::Failure
        } else if machine.perform(step, &case.self_test, case.broken) {
            Outcome::Success
        } else {
            // A report that does not exist cannot be kept.
            let is_own_fault = !case.broken.is_empty()
                || step.is_evidence()
                || step.is_self_test()
                    && !(case.self_test.is_empty() || case.self_test.starts_with('/'));
            if !is_own_fault {
                without_product.push(step.name.clone());
            }
            Outcome::Failure
        };
        machine.outcomes.push(outcome);
    }
    Run {
        summary: fs::read_to_string(machine.folder.join("summary")).unwrap_or_default(),
        outcomes: machine.outcomes,
        kept: machine.kept,
        without_product,
        needlessly_skipped,
    }
}

fn write_program(file: &Path, script: &str) {
    fs::write(file, format!("{HEAD}{script}")).expect("a program");
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("the permission");
}

impl Machine<'_> {
    fn holds(&self, step: &Step) -> bool {
        expression::holds(step.condition.as_deref(), self)
    }

    fn tree(&self, file: &str) -> std::path::PathBuf {
        self.folder.join("tree").join(file)
    }

    /// Removes the programs that a failed step has copied or found.
    fn remove_products(&self, step: &Step) {
        let products: &[&str] = if step.says("csi-proxyctl") {
            &["csi-proxy.exe", "csi-proxyctl.exe"]
        } else if step.id.as_deref() == Some("selftest-program") {
            &["selftest/csi-proxy-selftest.exe"]
        } else {
            &[]
        };
        for name in products {
            // The file may be missing already.
            let _missing = fs::remove_file(self.tree("dist").join(name));
        }
    }

    /// Does what a step does. Returns whether the step succeeds.
    fn perform(&mut self, step: &Step, self_test: &str, broken: &str) -> bool {
        match &step.kind {
            Kind::Bash(script) => self.bash(step, script, self_test, broken),
            Kind::PowerShell(script) => broken != "all" && self.power_shell(script),
            Kind::Action { .. } if broken == "all" => false,
            Kind::Action {
                name,
                path,
                no_files,
            } => match name.as_str() {
                "checkout" => self.check_out(),
                "setup-go" => true,
                "download-artifact" => self.download(),
                "upload-artifact" => self.upload(step, path, no_files),
                other => panic!("the action {other}"),
            },
        }
    }

    fn bash(&self, step: &Step, script: &str, self_test: &str, broken: &str) -> bool {
        let bin = self.folder.join("bin");
        let file = self.folder.join("step");
        fs::write(&file, script).expect("a script");
        let status = Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail"])
            .arg(file)
            .current_dir(self.folder.join("tree"))
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("GITHUB_SHA", "0123abc")
            .env("GITHUB_OUTPUT", self.folder.join("output"))
            .env("GITHUB_STEP_SUMMARY", self.folder.join("summary"))
            .env("STAND_INS", bin)
            .env("BROKEN", broken)
            .env("SELF_TEST", self_test)
            .envs(step.environment.iter().cloned())
            .output()
            .expect("bash runs");
        status.status.success()
    }

    /// A script of PowerShell works if the files are there that it names.
    fn power_shell(&self, script: &str) -> bool {
        let mut text = script.to_owned();
        for word in script.split_whitespace() {
            if let Some((_, name)) = word.split_once(r"verify\windows\") {
                if !self.tree("verify/windows").exists() {
                    return false;
                }
                let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../verify/windows");
                text += &fs::read_to_string(file.join(name)).expect("the script exists");
            }
        }
        let needs_service =
            text.contains("Needs the service csiproxy") || text.contains("service uninstall");
        let works = programs_in(&text).all(|program| self.tree(&program).exists())
            && (!needs_service || self.tree(SERVICE).exists());
        if works && script.contains("service install") {
            fs::write(self.tree(SERVICE), "").expect("a file");
            fs::write(self.tree(LOG), "").expect("a file");
        }
        works
    }

    fn check_out(&self) -> bool {
        for folder in [
            "docs",
            "verify/windows",
            "verify/go-client",
            "verify/go-program",
        ] {
            fs::create_dir_all(self.tree(folder)).expect("a folder");
        }
        for file in ["Cargo.toml", "docs/facts.md"] {
            fs::write(self.tree(file), "").expect("a file");
        }
        true
    }

    fn download(&self) -> bool {
        if self.case.released {
            fs::create_dir_all(self.tree("dist")).expect("a folder");
            for name in ["csi-proxy", "csi-proxyctl", "csi-proxy-selftest"] {
                let script = if name == "csi-proxy-selftest" {
                    include_str!("stand-ins/selftest").replace("built here", "released")
                } else {
                    include_str!("stand-ins/program").to_owned()
                };
                for architecture in ["amd64", "arm64"] {
                    let file = format!("dist/{name}-windows-{architecture}.exe");
                    write_program(&self.tree(&file), &script);
                }
            }
        }
        self.case.released
    }

    /// Returns the files that an upload finds.
    fn files(&self, path: &str) -> BTreeSet<String> {
        let path = path.trim_start_matches(r"C:\");
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let entries = fs::read_dir(self.tree(folder)).into_iter().flatten();
        entries
            .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
            .filter(|found| match name.strip_suffix('*') {
                Some(beginning) => found.starts_with(beginning),
                None => found == name,
            })
            .collect()
    }

    fn upload(&mut self, step: &Step, path: &str, no_files: &str) -> bool {
        let found = self.files(path);
        let is_done = !found.is_empty() || no_files != "error";
        if step.is_evidence() {
            self.kept = found;
        }
        is_done
    }

    /// Returns whether a skipped step would have succeeded. An upload would have if it had found a
    /// file.
    fn could_run(&mut self, step: &Step) -> bool {
        match &step.kind {
            Kind::Action { name, path, .. } if name == "upload-artifact" => {
                !self.files(path).is_empty()
            }
            _ => self.perform(step, &self.case.self_test, self.case.broken),
        }
    }
}

impl Context for Machine<'_> {
    fn value(&self, name: &str) -> Value {
        if name == "inputs.released" {
            return Value::Bool(self.case.released);
        }
        let id = name
            .strip_prefix("steps.")
            .and_then(|rest| rest.strip_suffix(".outcome"))
            .unwrap_or_else(|| panic!("the name {name}"));
        let mut steps = self.job.steps.iter();
        let index = steps
            .position(|step| step.id.as_deref() == Some(id))
            .unwrap_or_else(|| panic!("no step has the id {id}"));
        let outcome = self.outcomes.get(index);
        Value::Text(outcome.map_or_else(String::new, |outcome| outcome.text()))
    }

    fn status(&self, function: &str) -> bool {
        let failed = self.outcomes.contains(&Outcome::Failure);
        match function {
            "always" => true,
            "cancelled" => self.cancelled,
            "failure" => failed && !self.cancelled,
            "success" => !failed && !self.cancelled,
            other => panic!("the function {other}"),
        }
    }
}

/// Returns the programs in `dist` and `target\go` that a script of PowerShell names.
fn programs_in(text: &str) -> impl Iterator<Item = String> {
    let text = text.replace('\\', "/");
    let mut found = Vec::new();
    for folder in ["dist/", "target/go/"] {
        for (position, _) in text.match_indices(folder) {
            let rest = &text[position + folder.len()..];
            let end = rest.find(|char: char| !char.is_ascii_alphanumeric() && !"-.".contains(char));
            let name = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
            // In a loop, the name is a variable.
            if !name.is_empty() {
                found.push(format!("{folder}{name}"));
            }
        }
    }
    found.into_iter()
}
