//! The tests of the folder `deploy`: Prometheus' own tests of the alert rules, which promtool runs,
//! and tests in Go, because Kubernetes, Helm and kustomize are Go libraries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::go::programs;
use crate::summary::Summary;
use crate::{Error, process, setup, test, workspace};

/// Downloads and compiles what the tests run, if Go is installed.
pub(crate) fn set_up() {
    if process::find("go").is_some() {
        println!("set-up: Go tests of deploy; the first time, the downloads take minutes");
        programs::build_all(true);
    }
}

/// Runs all of these tests.
pub(crate) fn test() -> Result<Summary, Error> {
    let mut sum = alerts()?;
    sum += in_go()?;
    Ok(sum)
}

fn in_go() -> Result<Summary, Error> {
    if process::find("go").is_none() {
        return Ok(Summary::skipped(
            "tests of deploy",
            "go is not installed (https://go.dev/dl)",
        ));
    }
    let (simulator, admin_tool) = (
        test::simulator()?,
        test::debug_program("csi-proxyctl", "simulated_node")?,
    );
    Ok(Summary::of_tests(
        programs::tests("deploy.test")?
            .env("CSI_PROXY_SIM", simulator)
            .env("CSI_PROXYCTL", admin_tool),
    ))
}

/// Tests the alert rules in their scenarios, and parses the expressions of the dashboard.
fn alerts() -> Result<Summary, Error> {
    let folder = workspace::root().join("deploy/monitoring");
    let dashboard = dashboard_rules(&folder.join("dashboard.json"))?;
    let alerts = [
        ("check", folder.join("alerts.yaml")),
        ("test", folder.join("alerts_test.yaml")),
    ];
    let mut sum = Summary::default();
    for (command, file) in alerts.into_iter().chain([("check", dashboard)]) {
        let name = format!("promtool {command} rules {}", file.display());
        sum += match setup::promtool() {
            Some(promtool) => Summary::of_check(
                &name,
                Command::new(promtool).args([command, "rules"]).arg(file),
            ),
            None => Summary::skipped(&name, "promtool is not installed"),
        };
    }
    Ok(sum)
}

/// Writes the expressions of a dashboard as rules, with a value for Grafana's interval. Returns the
/// file.
fn dashboard_rules(dashboard: &Path) -> Result<PathBuf, Error> {
    let rules = recording_rules(&fs::read_to_string(dashboard)?);
    if rules.is_empty() {
        return Err(format!("no expression found in {}", dashboard.display()).into());
    }
    let file = workspace::target().join("dashboard-rules.yaml");
    fs::write(
        &file,
        format!(
            "groups:\n  - name: dashboard\n    rules:\n{}\n",
            rules.join("\n")
        ),
    )?;
    Ok(file)
}

/// Returns a rule for each expression of a dashboard. JSON strings are YAML strings too.
fn recording_rules(dashboard: &str) -> Vec<String> {
    let expressions = dashboard
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"expr\": "));
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
        let dashboard = include_str!("../../deploy/monitoring/dashboard.json");
        assert_eq!(
            recording_rules(dashboard).len(),
            dashboard.matches("\"expr\"").count()
        );
    }
}
