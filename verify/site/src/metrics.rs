//! The page of the metrics, from what a server shows.

use std::fmt::Write as _;
use std::sync::Arc;

use server::{Limits, Server};
use storage_ops::{Config, Executor, Node};

/// Returns the page.
pub(crate) fn page() -> String {
    let node = Node::new(os_sim::node().build().process(), Config::default());
    let text = Server::new(Arc::new(Executor::new(Arc::new(node))), Limits::default()).metrics().render();
    let mut page = "# Metrics\n\n\
        With `-metrics-bind-address`, csi-proxy answers `GET /metrics` in Prometheus' text format. This page is made from \
        what the program shows. [Operating](operate.md#what-to-watch) names the ones to alert on, and \
        [Security](security.md#limits) the limits that they count.\n\n"
        .to_owned();
    for (name, kind, help) in described(&text) {
        let help = help.replace('<', "&lt;");
        let _ = writeln!(page, "- `{name}`, a {kind}: {help}");
    }
    page
}

/// Returns the name, type and help of each metric in Prometheus' text format.
fn described(text: &str) -> Vec<(&str, &str, &str)> {
    let mut found = Vec::new();
    let mut help = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let of_metric = help.filter(|(described, _)| *described == name);
            found.push((name, kind, of_metric.map_or("", |(_, help)| help)));
        }
    }
    found
}
