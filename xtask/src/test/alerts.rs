//! Prometheus' own tests of the folder `deploy/monitoring`, which promtool runs: the alert rules, the situations in which
//! each of them fires, and the expressions of the dashboard.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use crate::summary::{Failure, Summary};
use crate::{Error, process, tools, workspace};

/// Runs all of these tests, or counts them as skipped without promtool.
pub(super) fn test() -> Result<Summary, Error> {
    let folder = workspace::root().join("deploy/monitoring");
    let dashboard = dashboard_rules(&folder.join("dashboard.json"))?;
    let tests = [
        ("check", folder.join("alerts.yaml")),
        ("test", folder.join("alerts_test.yaml")),
        // The rules only have the expressions parsed.
        ("check", dashboard),
    ];
    let mut sum = Summary::default();
    match tools::promtool() {
        Ok(promtool) => {
            println!("{}", process::output(Command::new(&promtool).arg("--version")).unwrap_or_default());
            for (command, file) in tests {
                sum += run(Command::new(&promtool).args([command, "rules"]).arg(file))?;
            }
        }
        Err(reason) => {
            for (command, file) in tests {
                sum += Summary::skipped(&format!("promtool {command} rules {}", file.display()), &reason.to_string());
            }
        }
    }
    Ok(sum)
}

/// Runs promtool, as one test.
fn run(promtool: &mut Command) -> io::Result<Summary> {
    let mut failure = Failure::new(&process::typed(promtool));
    let status = process::stream(promtool, |line| failure.output.push(line.to_owned()))?;
    Ok(if status.success() { Summary::passed() } else { Summary { failed: vec![failure], ..Summary::default() } })
}

/// Writes the expressions of a dashboard as rules, with a value for Grafana's interval. Returns the file.
fn dashboard_rules(dashboard: &Path) -> Result<PathBuf, Error> {
    let rules = recording_rules(&fs::read_to_string(dashboard)?);
    if rules.is_empty() {
        return Err(format!("no expression found in {}", dashboard.display()).into());
    }
    let file = workspace::target().join("dashboard-rules.yaml");
    let rules = rules.join("\n");
    fs::write(&file, format!("groups:\n  - name: dashboard\n    rules:\n{rules}\n"))?;
    Ok(file)
}

/// Returns a rule for each expression of a dashboard. Its JSON strings are YAML strings too.
fn recording_rules(dashboard: &str) -> Vec<String> {
    let expressions = dashboard.lines().filter_map(|line| line.trim().strip_prefix("\"expr\": "));
    expressions
        .enumerate()
        .map(|(number, text)| {
            let expression = text.trim_end_matches(',').replace("$__rate_interval", "5m");
            format!("      - {{record: expression_{number}, expr: {expression}}}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::recording_rules;

    #[test]
    fn each_expression_of_the_dashboard_becomes_a_rule() {
        let dashboard = include_str!("../../../deploy/monitoring/dashboard.json");
        assert_eq!(recording_rules(dashboard).len(), dashboard.matches("\"expr\"").count());
        assert_eq!(
            recording_rules("\"expr\": \"rate(a{b=\\\"c\\\"}[$__rate_interval])\",\n\"title\": \"x\""),
            [r#"      - {record: expression_0, expr: "rate(a{b=\"c\"}[5m])"}"#]
        );
    }
}
