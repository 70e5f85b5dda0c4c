use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::{env, fs};

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use server::status::{Failure, Lock, RpcSummary, RunningCall};
use server::{Limits, Server, Status};
use storage_ops::{Config, Executor, Node};
use tokio::sync::Notify;
use transport::address::Location;
use transport::memory::MemoryEndpoint;

use super::Pages;
use crate::program::CSI_PROXY;

pub(crate) const LOCAL: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 5000);

/// The pages of a daemon that has just started, with a few flags.
pub(crate) fn pages() -> Arc<Pages> {
    pages_of(&server())
}

fn server() -> Server {
    let node = Node::new(os_sim::node().build().process(), Config::default());
    Server::new(Arc::new(Executor::new(Arc::new(node))), Limits::default())
}

fn pages_of(server: &Server) -> Arc<Pages> {
    let flags = [
        "-v=2",
        "-working-dir=C:\\one",
        "-working-dir=D:\\two",
        "-log_backtrace_at=x:1",
        "-api-groups=system,volume",
    ];
    let flags = CSI_PROXY.parse(flags.map(str::to_owned)).unwrap();
    Arc::new(Pages::new(
        &flags,
        "a <node>\u{202e}",
        &Location::NamedPipes,
        Arc::clone(server.metrics()),
    ))
}

async fn text(response: Response<Full<Bytes>>) -> String {
    let body = response.into_body().collect().await.unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

fn get(path: &str) -> Request<()> {
    Request::get(path)
        .header("Host", "localhost:8888")
        .body(())
        .unwrap()
}

async fn page(path: &str) -> String {
    let response = pages().respond(&get(path), LOCAL);
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    text(response).await
}

fn is_ready(future: Pin<&mut impl Future>) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    future.poll(&mut context).is_ready()
}

#[tokio::test]
async fn pages_are_written_one_at_a_time_and_probes_do_not_wait() {
    let pages = pages();
    let writing = pages.writing.lock().await;
    for (path, waits) in [
        ("/metrics", true),
        ("/statusz", true),
        ("/healthz", false),
        ("/readyz", false),
    ] {
        let request = get(path);
        let is_written = is_ready(pin!(pages.answer(&request, LOCAL)));
        assert_eq!(is_written, !waits, "{path}");
    }
    drop(writing);
    let request = get("/metrics");
    assert!(is_ready(pin!(pages.answer(&request, LOCAL))));
}

#[tokio::test]
async fn what_names_objects_is_answered_to_the_node_itself_alone() {
    let other = SocketAddr::from(([10, 0, 0, 7], 5000));
    for (path, is_for_all) in [
        ("/metrics", true),
        ("/healthz", true),
        ("/", false),
        ("/statusz", false),
        ("/flagz", false),
    ] {
        assert_eq!(
            pages().respond(&get(path), LOCAL).status(),
            StatusCode::OK,
            "{path}"
        );
        let response = pages().respond(&get(path), other);
        assert_eq!(response.status() == StatusCode::OK, is_for_all, "{path}");
        let foreign = Request::get(path)
            .header("Host", "evil.example")
            .body(())
            .unwrap();
        let rebound = pages().respond(&foreign, LOCAL);
        assert_eq!(rebound.status() == StatusCode::OK, is_for_all, "{path}");
        if !is_for_all {
            assert_eq!(
                (response.status(), rebound.status()),
                (StatusCode::FORBIDDEN, StatusCode::FORBIDDEN)
            );
            assert!(
                text(response)
                    .await
                    .starts_with("This page is for clients on the node itself.")
            );
            assert!(
                text(rebound)
                    .await
                    .starts_with("This page is answered only at a loopback address")
            );
        }
    }
}

#[tokio::test]
async fn a_daemon_is_ready_while_it_serves_and_healthy_also_before_and_after() {
    let server = server();
    let pages = pages_of(&server);
    let answers = async || {
        let other = SocketAddr::from(([10, 0, 0, 7], 5000));
        let ready = pages.respond(&get("/readyz"), other);
        assert_eq!(
            pages.respond(&get("/healthz"), other).status(),
            StatusCode::OK
        );
        (ready.status().as_u16(), text(ready).await)
    };
    assert_eq!(answers().await, (503, "not ready: starting\n".to_owned()));
    let stop = Notify::new();
    let mut serving = pin!(server.serve::<MemoryEndpoint>(Vec::new(), stop.notified()));
    assert!(!is_ready(serving.as_mut()));
    assert_eq!(answers().await, (200, "ok\n".to_owned()));
    stop.notify_one();
    serving.await;
    assert_eq!(answers().await, (503, "not ready: draining\n".to_owned()));
}

#[tokio::test]
async fn only_reading_is_possible_and_a_browser_keeps_to_the_page() {
    let post = Request::builder()
        .method(Method::POST)
        .uri("/statusz")
        .header("Host", "localhost")
        .body(())
        .unwrap();
    assert_eq!(
        pages().respond(&post, LOCAL).status(),
        StatusCode::METHOD_NOT_ALLOWED
    );
    let response = pages().respond(&get("/"), LOCAL);
    let policy = response.headers()["content-security-policy"]
        .to_str()
        .unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
}

#[tokio::test]
async fn the_flags_are_listed_as_components_of_kubernetes_list_them() {
    let text = page("/flagz").await;
    let mut lines = text.lines();
    assert_eq!(
        [lines.next(), lines.next()],
        [Some(""), Some("csi-proxy flags")]
    );
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("Warning: This endpoint is not meant to be machine parseable")
    );
    let flags: Vec<&str> = lines.skip(1).collect();
    assert!(flags.is_sorted(), "{flags:?}");
    for line in [
        r"kubelet-path=C:\var\lib\kubelet",
        "v=2",
        r"working-dir=C:\one,D:\two",
        "log_backtrace_at=x:1",
        "pipe-sid=",
    ] {
        assert!(flags.contains(&line), "{line} in {flags:?}");
    }
    assert!(
        !text.contains("add_dir_header"),
        "a flag without effect that was not given"
    );
    let json: serde_json::Value = serde_json::from_str(&page("/flagz?format=json").await).unwrap();
    assert_eq!((&json["v"], &json["drain"]), (&"2".into(), &"30".into()));
}

#[tokio::test]
async fn the_status_of_a_daemon_at_rest_has_all_fields() {
    let json = page("/statusz?format=json").await;
    assert!(json.contains(r"a <node>\u202e"), "{json}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let fields = "program version system endpoints process_id started up_seconds served calls \
                  pools locks counts rpcs failures last_seen";
    for field in fields.split(' ') {
        assert!(json.get(field).is_some(), "{field} in {json}");
    }
    assert_eq!(json["pools"].as_array().unwrap().len(), 7);
    assert_eq!(
        json["pools"][2],
        serde_json::json!({"name": "disks", "threads": 16, "busy": 0, "waiting": 0})
    );
    let text = page("/statusz").await;
    assert!(text.starts_with("\ncsi-proxy statusz\nWarning: "), "{text}");
    assert!(
        text.contains("\nNode: a <node>\\u{202e}\nEndpoints: \\\\.\\pipe\\csi-proxy-*\n"),
        "{text}"
    );
    assert!(text.contains("\nCalls in progress: 0\n"), "{text}");
}

#[test]
fn a_thousand_calls_that_wait_for_the_same_are_two_lines() {
    let pages = pages();
    let mut status = pages.status();
    let call = |number: u64, rpc, state: &str| RunningCall {
        call: Some(number),
        rpc,
        object: format!("object {number}"),
        seconds: 1500.0 / f64::from(u32::try_from(number).expect("small")),
        connection: Some(number % 40),
        has_caller: true,
        state: state.to_owned(),
    };
    let wait = "waiting: volume v already uses its 5 of the 16 threads of pool disks";
    let calls = &mut status.status.calls;
    calls.extend((1..6).map(|number| call(number, "/v1.Volume/UnmountVolume", "running")));
    calls.extend((10..1000).map(|number| call(number, "/v1.Volume/GetVolumeStats", wait)));
    calls.push(call(1000, "/v1.Volume/UnmountVolume", wait));
    calls.push(call(1001, "/v1.Volume/UnmountVolume", "waiting for a slot"));
    let text = super::text::statusz(&status);
    let lines = "  991 calls on 40 connections, calls 10, 11, 12, 13, 14, 15, 16, 17 and 983 more, \
                 the oldest for 2.5 min\n      waiting: volume v already uses its 5 of the 16 \
                 threads of pool disks: /v1.Volume/GetVolumeStats 990, /v1.Volume/UnmountVolume 1\n";
    assert!(text.contains(lines), "{text}");
    assert!(text.contains("\n  call 1001, 1.5 s: /v1.Volume/UnmountVolume: object 1001\n"));
    let calls = text
        .split("\nCalls in progress: 997\n")
        .nth(1)
        .expect("a section");
    assert_eq!(
        calls.lines().take_while(|line| !line.is_empty()).count(),
        14
    );
}

#[test]
fn the_status_says_what_runs_what_waits_and_what_has_failed() {
    let pages = pages();
    let mut status = pages.status();
    let Status {
        calls,
        locks,
        rpcs,
        failures,
        ..
    } = &mut status.status;
    let call = |call, seconds, object: &str, state: &str, has_caller| RunningCall {
        call: Some(call),
        rpc: "/v1.Disk/PartitionDisk",
        object: object.to_owned(),
        seconds,
        connection: Some(3),
        has_caller,
        state: state.to_owned(),
    };
    calls.extend([
        call(16, 130.0, "partition disk 2", "running", false),
        call(17, 120.0, "a\n", "waiting for lock disk 2", true),
        call(18, 1.5, "b", "running", true),
    ]);
    locks.push(Lock {
        key: "disk 2".to_owned(),
        held_by: vec![16],
        held_by_others: 1,
        waiting: vec![17],
    });
    rpcs.push(RpcSummary {
        rpc: "/v1.Disk/PartitionDisk",
        started: 3,
        succeeded: 0,
        failed: 1,
        mean_seconds: Some(900.0),
        max_seconds: Some(1800.0),
    });
    failures.push(Failure {
        call: 9,
        rpc: "/v1.Disk/PartitionDisk",
        code: "NotFound",
        message: "no disk 4".to_owned(),
        seconds_ago: 300.0,
        count: 2,
    });
    let text = super::text::statusz(&status);
    for lines in [
        "\nCalls in flight: 0 (0 in transfer, 0 waiting for a slot)\n",
        "\n! call 16, 2.2 min: /v1.Disk/PartitionDisk: partition disk 2\n      running, connection \
         3 no longer waits\n",
        "\n  call 17, 2.0 min: /v1.Disk/PartitionDisk: a\\u{a}\n      waiting for lock disk 2, \
         connection 3\n",
        "\n  call 18, 1.5 s: ",
        "  disk 2: held by call 16 and a Windows call that still hangs after its request has \
         ended, awaited by call 17\n",
        "  /v1.Disk/PartitionDisk: 3 calls, 1 failed, mean 15.0 min, longest 30.0 min\n",
        "  5.0 min ago: call 9 /v1.Disk/PartitionDisk, NotFound, 2 so far\n    no disk 4\n",
    ] {
        assert!(text.contains(lines), "{lines} is not in {text}");
    }
    let at = |title: &str| text.find(title).expect("a section");
    assert!(at("\nLast failures: 1\n") < at("\nCalls in progress: 3\n"));
    let html = super::html::page("csi-proxy", &text, false);
    assert_eq!(html.matches("<mark>").count(), 1, "{html}");
    assert!(
        html.contains(
            "\n<mark>slow</mark> call 16, 2.2 min: /v1.Disk/PartitionDisk: partition disk 2\n"
        ),
        "{html}"
    );
}

#[tokio::test]
async fn the_page_shows_text_as_it_is() {
    let html = page("/").await;
    assert!(
        html.contains("a &lt;node&gt;\\u{202e}") && !html.contains("<node>"),
        "{html}"
    );
    assert!(
        html.contains(" v1.Volume") && !html.contains("v1.Disk"),
        "{html}"
    );
    assert!(
        !html.contains("<script") && !html.contains("http-equiv"),
        "{html}"
    );
    assert!(
        page("/?refresh")
            .await
            .contains("<meta http-equiv=\"refresh\" content=\"5\">")
    );
}

/// Returns the names of the metrics in the text of `/metrics`.
fn names(text: &str) -> BTreeSet<&str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect()
}

#[tokio::test]
async fn a_daemon_at_rest_has_at_most_300_series_and_the_figures_of_its_process() {
    let text = page("/metrics").await;
    let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(series.len() <= 300, "{} series", series.len());
    let version = format!("version=\"{}\"}} 1", crate::VERSION);
    assert!(
        series
            .iter()
            .any(|line| line.starts_with("csi_proxy_build_info{") && line.ends_with(&version)),
        "{text}"
    );
    for name in [
        "start_time_seconds",
        "cpu_seconds_total",
        "resident_memory_bytes",
        "open_fds",
    ] {
        let name = format!("process_{name} ");
        let value = series
            .iter()
            .find_map(|line| line.strip_prefix(&name))
            .unwrap_or_else(|| panic!("{name} in {text}"));
        // Wine counts no handles.
        let may_be_zero = name.contains("open_fds") && std::env::consts::OS == "windows";
        assert!(
            value.parse::<f64>().unwrap() > 0.0 || may_be_zero,
            "{name}{value}"
        );
    }
    for name in names(&text) {
        let heads = text
            .lines()
            .filter(|line| line.starts_with(&format!("# TYPE {name} ")))
            .count();
        assert_eq!(heads, 1, "{name}");
    }
}

/// The text above the table of metrics.
const METRICS_HEAD: &str = "\
# Metrics

`BLESS=1 cargo test -p csi-proxy documentation` writes this page from the help texts of the program. [Monitoring](monitoring.md) \
says how to read the metrics and what to do about them.

| metric | type | meaning |
|---|---|---|
";

#[tokio::test]
async fn the_dashboard_the_alerts_and_the_documentation_name_metrics_that_exist() {
    let text = page("/metrics").await;
    let known = names(&text);
    let files = [
        include_str!("../../../../deploy/monitoring/dashboard.json"),
        include_str!("../../../../deploy/monitoring/alerts.yaml"),
    ];
    for file in files {
        let words = file.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let is_metric = |word: &&str| {
            ["csi_proxy_", "grpc_server_", "process_"]
                .iter()
                .any(|start| word.starts_with(start))
        };
        let metrics: BTreeSet<&str> = words.filter(is_metric).collect();
        assert!(metrics.len() > 5, "{metrics:?}");
        for metric in metrics {
            let parts = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|part| metric.strip_suffix(part));
            assert!(
                known.contains(metric) || parts.is_some_and(|name| known.contains(name)),
                "no metric {metric}"
            );
        }
    }
    let rows: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# HELP "))
        .map(|line| {
            let (name, help) = line.split_once(' ').unwrap();
            let kind = text
                .lines()
                .find_map(|line| line.strip_prefix(&format!("# TYPE {name} ")))
                .unwrap();
            format!("| `{name}` | {kind} | {help} |")
        })
        .collect();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let page = format!("{METRICS_HEAD}{}\n", rows.join("\n"));
    if env::var_os("BLESS").is_some() {
        fs::write(file, &page).expect("the page is written");
    }
    assert_eq!(
        fs::read_to_string(file).expect("the page"),
        page,
        "BLESS=1 renews the page"
    );
}

/// A rule without a severity is routed nowhere. That the alerts fire is tested by promtool.
#[test]
fn each_alert_has_a_severity_a_text_a_remedy_and_a_situation_in_which_it_fires() {
    let documentation = include_str!("../../../../docs/monitoring.md");
    let situations = include_str!("../../../../deploy/monitoring/alerts_test.yaml");
    let rules = include_str!("../../../../deploy/monitoring/alerts.yaml")
        .split("- alert: ")
        .skip(1);
    assert!(rules.clone().count() > 5);
    for rule in rules {
        let name = rule.lines().next().unwrap();
        let has = |start: &str| {
            rule.lines().any(|line| {
                line.trim()
                    .strip_prefix(start)
                    .is_some_and(|rest| !rest.is_empty())
            })
        };
        let severities = ["critical", "warning", "info"];
        assert!(
            severities
                .iter()
                .any(|level| rule.contains(&format!("severity: {level}\n"))),
            "severity of {name}"
        );
        assert!(
            has("summary: ") && has("description: "),
            "{name} has no summary or no description"
        );
        assert!(
            documentation.contains(&format!("\n### {name}\n")),
            "{name} is not in docs/monitoring.md"
        );
        let fires = format!("labels: '{{alertname=\"{name}\", alertstate=\"firing\"");
        assert!(
            situations.contains(&fires),
            "no situation in alerts_test.yaml has {name} fire"
        );
    }
}
