//! The jobs and steps of a workflow, as far as running them here needs.

use yaml_rust2::{Yaml, YamlLoader};

#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) condition: Option<String>,
    pub(crate) minutes: i64,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) condition: Option<String>,
    pub(crate) minutes: Option<i64>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) kind: Kind,
}

#[derive(Clone)]
pub(crate) enum Kind {
    Bash(String),
    PowerShell(String),
    /// An action, such as `checkout`, with its inputs `path` and `if-no-files-found`.
    Action {
        name: String,
        path: String,
        no_files: String,
    },
}

impl Step {
    /// Returns whether the step is this action.
    pub(crate) fn is_action(&self, action: &str) -> bool {
        matches!(&self.kind, Kind::Action { name, .. } if name == action)
    }

    /// Returns whether the step is a script that contains this text.
    pub(crate) fn says(&self, text: &str) -> bool {
        matches!(&self.kind, Kind::Bash(script) | Kind::PowerShell(script) if script.contains(text))
    }

    /// Returns whether the step runs the self-test, and not only builds or copies it.
    pub(crate) fn is_self_test(&self) -> bool {
        self.says("csi-proxy-selftest") && self.says("--create-disks")
    }

    /// Returns whether the step keeps the report of the self-test.
    pub(crate) fn is_evidence(&self) -> bool {
        matches!(&self.kind, Kind::Action { name, path, .. }
            if name == "upload-artifact" && path.contains("selftest."))
    }
}

/// Returns the jobs of a workflow that have steps.
pub(crate) fn jobs(workflow: &str) -> Vec<Job> {
    let documents = YamlLoader::load_from_str(workflow).expect("the workflow is YAML");
    let jobs = documents[0]["jobs"].as_hash().expect("a map of jobs");
    jobs.iter()
        .filter(|(_, job)| job["steps"].as_vec().is_some())
        .map(|(name, job)| Job {
            name: text(name).expect("a name"),
            condition: text(&job["if"]),
            minutes: job["timeout-minutes"].as_i64().expect("a limit"),
            steps: steps(job),
        })
        .collect()
}

fn steps(job: &Yaml) -> Vec<Step> {
    let default = text(&job["defaults"]["run"]["shell"]);
    let steps = job["steps"].as_vec().expect("steps").iter();
    steps
        .map(|step| {
            // What this test does not imitate must not be in a step.
            for (key, _) in step.as_hash().expect("a map") {
                let known = [
                    "id",
                    "name",
                    "if",
                    "timeout-minutes",
                    "env",
                    "shell",
                    "run",
                    "uses",
                    "with",
                ];
                let key = key.as_str().unwrap_or_default();
                assert!(known.contains(&key), "{key} is unknown");
            }
            let kind = kind(step, default.as_deref());
            Step {
                id: text(&step["id"]),
                name: text(&step["name"]).unwrap_or_else(|| match &kind {
                    Kind::Action { name, .. } => name.clone(),
                    Kind::Bash(script) | Kind::PowerShell(script) => script.clone(),
                }),
                condition: text(&step["if"]),
                minutes: step["timeout-minutes"].as_i64(),
                environment: step["env"]
                    .as_hash()
                    .into_iter()
                    .flatten()
                    .map(|(name, value)| {
                        (text(name).expect("a name"), text(value).expect("a text"))
                    })
                    .collect(),
                kind,
            }
        })
        .collect()
}

fn kind(step: &Yaml, default: Option<&str>) -> Kind {
    if let Some(uses) = step["uses"].as_str() {
        let name = uses.split('@').next().unwrap_or_default();
        return Kind::Action {
            name: name.rsplit('/').next().unwrap_or_default().to_owned(),
            path: text(&step["with"]["path"]).unwrap_or_default(),
            no_files: text(&step["with"]["if-no-files-found"]).unwrap_or_else(|| "warn".into()),
        };
    }
    let script = text(&step["run"]).expect("a script");
    match step["shell"].as_str().or(default) {
        Some("bash") => {
            assert!(!script.contains("${{"), "an expression in {script}");
            Kind::Bash(script)
        }
        Some("pwsh" | "powershell") => Kind::PowerShell(script),
        shell => panic!("the shell {shell:?} of {script}"),
    }
}

fn text(yaml: &Yaml) -> Option<String> {
    match yaml {
        Yaml::Boolean(value) => Some(value.to_string()),
        _ => yaml.as_str().map(str::to_owned),
    }
}
