//! The tables of what was measured.

use super::super::figure::{CALLS, CPU, Figure, P50, P99, PEAK, RESIDENT, SWITCHES, THREADS, WINESERVER, median};
use super::super::lifetime::{Lifetime, State};
use super::super::long_calls::{self, Latencies};
use super::super::results::{Cell, Results};
use super::super::server::Kind;
use super::super::{Measured, Options};
use super::table;

/// How a column shows the figures of all numbers of callers.
#[derive(Clone, Copy)]
enum Column {
    /// One after the other.
    Each(&'static Figure),
    /// The largest.
    Largest(&'static Figure),
}

/// The speed and the costs of each workload, connection and server.
pub(super) fn of(results: &Results) -> String {
    let callers: Vec<String> = results.callers().iter().map(u32::to_string).collect();
    let callers = callers.join(" / ");
    let is_wine = results.of_kind(Kind::GoProgram).next().is_some();
    let speed = [&CALLS, &P50, &P99].map(Column::Each).to_vec();
    let mut costs = vec![Column::Each(&CPU)];
    costs.extend(is_wine.then_some(Column::Each(&WINESERVER)));
    costs.push(Column::Each(&SWITCHES));
    costs.extend([&THREADS, &RESIDENT, &PEAK].map(Column::Largest));
    format!(
        "\nWith {callers} callers, on one connection for all (shared), on one for each, or on a new one for each call \
         (per-call):\n{}\n\
         What the server needed for that; threads and memory are the largest of all numbers of callers:\n{}",
        rows(results, &speed),
        rows(results, &costs),
    )
}

fn rows(results: &Results, columns: &[Column]) -> String {
    let mut rows = Vec::new();
    for cells in results.cells().chunk_by(|a, b| (a.workload, a.connections) == (b.workload, b.connections)) {
        for (index, program) in results.programs().iter().enumerate() {
            if !cells.iter().all(|cell| cell.is_measured(index)) {
                continue;
            }
            let [cell, ..] = cells else { continue };
            let mut row = vec![cell.workload.name.into(), cell.connections.name().into(), program.name.clone()];
            row.extend(columns.iter().map(|column| column.text(cells, index)));
            rows.push(row);
        }
    }
    let names: Vec<&str> = columns.iter().map(|column| column.figure().name).collect();
    table(&["call", "connections", "server"], &names, &rows)
}

impl Column {
    fn figure(self) -> &'static Figure {
        match self {
            Self::Each(figure) | Self::Largest(figure) => figure,
        }
    }

    fn text(self, cells: &[Cell], program: usize) -> String {
        let figure = self.figure();
        let values = cells.iter().map(|cell| cell.median(figure, program));
        let text = |value: f64| format!("{value:.*}", figure.decimals);
        match self {
            Self::Each(_) => values.map(text).collect::<Vec<_>>().join(" / "),
            Self::Largest(_) => text(values.fold(f64::NEG_INFINITY, f64::max)),
        }
    }
}

/// p99 with and without long calls.
pub(super) fn long_calls(all: &[Latencies]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let cell = |values: &[f64]| {
        let [least, most] = long_calls::range(values);
        format!("{:.0} ({least:.0} to {most:.0})", median(values.iter().copied()))
    };
    let row = |latencies: &Latencies| {
        let Latencies { callers, without, during: [smb, format] } = latencies;
        vec![callers.to_string(), cell(without), cell(smb), cell(format)]
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    format!(
        "\n## During long calls\n\
         \n\
         p99 of PathExists (`missing-1`) in us, the median of the rounds and their range: while no other call runs, while \
         one call maps an SMB share whose server takes 30 s, and while one formats a volume for 30 s. The test \
         `path_lookups_share_no_thread_no_slot_and_no_lock_with_long_calls` in `crates/server/tests` shows that they do \
         not wait for each other.\n{}",
        table(&[], &["callers", "no long call", "SMB call", "format"], &rows)
    )
}

/// Each server from its start to a quiet end.
pub(super) fn lifetimes(measured: &Measured, options: &Options) -> String {
    let state = |State { resident_mb, threads }: State| format!("{resident_mb:.1}, {threads}");
    let row = |lifetime: &Lifetime, system: &str, results: &Option<Results>| {
        let Lifetime { name, first_answer, megabytes, idle, loaded, after, quiet } = lifetime;
        let many = results.as_ref().and_then(|results| results.first_answer(name));
        let first_answer = many.unwrap_or(first_answer.as_secs_f64());
        let mut row = vec![format!("{name}, {system}"), format!("{:.0}", 1e3 * first_answer)];
        row.push(format!("{megabytes:.1}"));
        row.extend([idle, loaded, after, quiet].map(|moment| state(*moment)));
        row
    };
    let on_linux = measured.lifetimes_on_linux.iter().map(|lifetime| row(lifetime, "Linux", &measured.linux));
    let rows: Vec<_> = on_linux
        .chain(measured.lifetimes_on_wine.iter().map(|lifetime| row(lifetime, "Wine", &measured.wine)))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let quiet = format!("{} s later", options.quiet.as_secs_f64());
    let columns = ["first answer ms", "size MB", "idle", "under load", "after load", &quiet];
    format!(
        "\n## Start, size, memory and threads\n\
         \n\
         From the start to the first answer, the median of all starts; the size of the executable; then the resident memory in MB and the number of \
         threads: after one answer, at the end of a load by 128 callers (first on one connection, then on 128), a second \
         after the load when the connections are closed, and after a time without a call. The program for Linux is \
         csi-proxy-sim, with the simulator in it.\n{}",
        table(&["server"], &columns, &rows)
    )
}
