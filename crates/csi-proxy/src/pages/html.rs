//! The page at `/`.
//!
//! It has no script and loads nothing. Every text in it is escaped, also against characters that would make it read as
//! another.

use std::fmt::{self, Write as _};

use api::GroupVersion;
use os::escaped;
use server::status::{Failure, Lock, Pool, RpcSummary, RunningCall};

use super::ProgramStatus;
use super::text::{caller, duration, holders, numbers};

const STYLE: &str = include_str!("html/style.css");

/// Text that is escaped, so that a browser shows it and does not interpret it.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in escaped(self.0).chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// The page. `refreshes` makes the browser load it again every five seconds.
pub(super) fn page(status: &ProgramStatus<'_>, served: &[&GroupVersion], refreshes: bool) -> String {
    let mut html = String::with_capacity(16 << 10);
    write(&mut html, status, served, refreshes).expect("a string takes all text");
    html
}

fn write(html: &mut String, program: &ProgramStatus<'_>, served: &[&GroupVersion], refreshes: bool) -> fmt::Result {
    let ProgramStatus { program: name, version, system, process_id, started, up_seconds, status, .. } = program;
    let refresh = if refreshes { "<meta http-equiv=\"refresh\" content=\"5\">" } else { "" };
    let (link, action) = if refreshes { ("/", "stop refreshing") } else { ("/?refresh", "refresh every 5 s") };
    write!(
        html,
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">{refresh}\
         <title>{name}</title><style>{STYLE}</style></head><body>\n\
         <header><h1>{name} <small>{version}</small></h1>\
         <p>{} &middot; process {process_id} &middot; started {started} &middot; up {}</p>\
         <nav><a href=\"{link}\">{action}</a> <a href=\"/statusz\">statusz</a> \
         <a href=\"/statusz?format=json\">JSON</a> <a href=\"/flagz\">flagz</a> <a href=\"/metrics\">metrics</a> \
         <a href=\"/healthz\">healthz</a> <a href=\"/readyz\">readyz</a></nav></header>\n<main>",
        Text(system),
        duration(*up_seconds)
    )?;
    write_figures(html, program)?;

    let head = ["Call", "For", "What", "State", "Connection"];
    table(html, "Running calls", &head, &status.calls, "No call is running.", |html, call| {
        let RunningCall { call: number, rpc, object, seconds, state, .. } = call;
        let class = if state.starts_with("waiting") { "waits" } else { "" };
        let number = number.map_or(String::new(), |number| number.to_string());
        write!(
            html,
            "<td class=\"n\">{number}<td class=\"n\">{}<td>{}<br><code>{rpc}</code><td class=\"{class}\">{}<td class=\"words\">{}",
            duration(*seconds),
            Text(object),
            Text(state),
            caller(call).replacen(' ', "&nbsp;", 1)
        )
    })?;
    let head = ["Object", "Held by", "Awaited by"];
    table(html, "Locks", &head, &status.locks, "Nothing is locked.", |html, lock| {
        let Lock { key, waiting, .. } = lock;
        let awaited = if waiting.is_empty() { String::new() } else { numbers(waiting) };
        write!(html, "<td>{}<td>{}<td>{awaited}", Text(key), holders(lock))
    })?;
    let head = ["Pool", "Busy", "", "Waiting"];
    table(html, "Pools of threads", &head, &status.pools, "", |html, pool| {
        let Pool { name, threads, busy, waiting } = pool;
        // Above it, the bar is not green.
        let high = threads.saturating_sub(1);
        write!(
            html,
            "<td>{name}<td class=\"n\">{busy} of {threads}\
             <td><meter max=\"{threads}\" high=\"{high}\" optimum=\"0\" value=\"{busy}\"></meter><td class=\"n\">{waiting}"
        )
    })?;
    let head = ["When", "Call", "What", "Times"];
    table(
        html,
        "Last failures",
        &head,
        &status.failures,
        "None. Queries about objects that do not exist are not listed.",
        |html, failure| {
            let Failure { call, rpc, code, message, seconds_ago, count } = failure;
            write!(
                html,
                "<td class=\"n\">{} ago<td class=\"n\">{call}<td>{}<br><code>{rpc}</code> {code}<td class=\"n\">{count}",
                duration(*seconds_ago),
                Text(message)
            )
        },
    )?;
    let head = ["RPC", "Calls", "Failed", "Mean", "99 of 100 within"];
    table(html, "RPCs called since the start", &head, &status.rpcs, "No RPC has been called.", |html, summary| {
        let RpcSummary { rpc, started, failed, mean_seconds, p99_seconds, .. } = summary;
        let mean = mean_seconds.map_or(String::new(), duration);
        let p99 = p99(*mean_seconds, *p99_seconds);
        write!(
            html,
            "<td><code>{rpc}</code><td class=\"n\">{started}<td class=\"n\">{failed}<td class=\"n\">{mean}<td class=\"n\">{p99}"
        )
    })?;
    write_served(html, served)?;
    html.write_str(
        "</main>\n<footer>An operation may wait for a thread although the pool has free ones, because one client, disk or \
         server gets only a part of them. Disks and volumes are not shown here, because reading them can hang: \
         <code>csi-proxy doctor</code> examines them.</footer></body></html>\n",
    )
}

/// Writes the numbers at the top.
fn write_figures(html: &mut String, program: &ProgramStatus<'_>) -> fmt::Result {
    let status = &program.status;
    let oldest = status.calls.iter().map(|call| call.seconds).fold(0.0, f64::max);
    let waiting = status.calls.iter().filter(|call| call.state.starts_with("waiting")).count();
    let figures = [
        ("running calls", status.calls.len().to_string()),
        ("of them waiting", waiting.to_string()),
        ("the longest", if status.calls.is_empty() { "-".to_owned() } else { duration(oldest) }),
        ("waiting for a slot", status.counts.waiting_for_slot.to_string()),
        ("connections", status.counts.connections.to_string()),
        ("calls", status.rpcs.iter().map(|rpc| rpc.started).sum::<u64>().to_string()),
        ("failed", status.rpcs.iter().map(|rpc| rpc.failed).sum::<u64>().to_string()),
    ];
    html.write_str("<dl>")?;
    figures.iter().try_for_each(|(name, figure)| write!(html, "<div><dt>{name}<dd>{figure}</div>"))?;
    html.write_str("</dl>")
}

/// Returns the cell of the 99th percentile. Without one, but with a mean, it exceeds the last bound of the histogram.
fn p99(mean: Option<f64>, p99: Option<f64>) -> String {
    match (mean, p99) {
        (_, Some(seconds)) => duration(seconds),
        (Some(_), None) => "&gt; 10 min".to_owned(),
        (None, None) => String::new(),
    }
}

/// Writes which versions of each group are served.
fn write_served(html: &mut String, served: &[&GroupVersion]) -> fmt::Result {
    let groups: Vec<(&str, Vec<&str>)> = served
        .chunk_by(|one, next| one.group == next.group)
        .map(|rows| (rows[0].group.name(), rows.iter().map(|row| row.version).collect()))
        .collect();
    table(html, "Served", &["Group", "Versions"], &groups, "No group is served.", |html, (group, versions)| {
        write!(html, "<td>{group}<td>{}", versions.join(", "))
    })
}

/// Writes a section with a table, or with the sentence `empty` if there are no rows.
fn table<T>(
    html: &mut String,
    title: &str,
    head: &[&str],
    rows: &[T],
    empty: &str,
    write_cells: impl Fn(&mut String, &T) -> fmt::Result,
) -> fmt::Result {
    writeln!(html, "\n<section><h2>{title}</h2>")?;
    if rows.is_empty() {
        return write!(html, "<p>{empty}</p></section>");
    }
    html.write_str("<div><table><thead><tr>")?;
    head.iter().try_for_each(|name| write!(html, "<th>{name}"))?;
    html.write_str("<tbody>")?;
    for row in rows {
        html.write_str("\n<tr>")?;
        write_cells(html, row)?;
    }
    html.write_str("</table></div></section>")
}

#[cfg(test)]
mod tests {
    use super::p99;

    #[test]
    fn a_percentile_above_the_last_bound_is_not_blank() {
        assert_eq!(p99(Some(900.0), None), "&gt; 10 min");
        assert_eq!(p99(Some(1.0), Some(2.0)), "2.0 s");
        assert_eq!(p99(None, None), "");
    }
}
