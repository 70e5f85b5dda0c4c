//! The results as docs/performance.md.

use std::fmt::Write as _;

use super::about::About;
use super::figure::median;
use super::results::Results;
use super::{LONG_WINDOWS, Measured, Options};

mod goals;
mod tables;

/// If other processes take more than this part of the machine's CPU time, the figures of a round are unreliable.
/// Interrupts and the system's own threads alone take 2 to 4 %.
const NOISY: f64 = 0.08;
const NOISY_WARNING: &str = " **The calls/s and latencies of a noisy round are unreliable**: Linux shares the \
                             processors between threads, so a server with more threads loses less to other \
                             processes. CPU time per call suffers least.";

/// The heading of the first section that is written by hand. The one after it is counted by the test `wmi_calls` of
/// csi-proxy-sim.
const WRITTEN: &str = "\n## Why goals are missed\n";

/// The last sections of an earlier page, which stay as they are.
pub(super) fn written(page: &str) -> &str {
    page.find(WRITTEN).map_or("", |at| &page[at..])
}

/// The page without its last sections.
pub(super) fn render(measured: &Measured, about: &About, options: &Options) -> String {
    let mut page = introduction(about, options);
    page += &goals::section(measured);
    if let Some(results) = &measured.linux {
        page += "\n## On Linux\n\n\
                 csi-proxy runs its operations on the simulated node, in a release build with its default flags. The \
                 minimal servers call `lstat` on Linux files, and return constants of the same size for disks and \
                 volumes. They have none of csi-proxy's path checks, locks, limits, metrics and deadlines, and do not \
                 log, while csi-proxy logs one line for each refused call. So this compares the way from the socket \
                 through HTTP/2, gRPC and the server's own layers to the operation and back, not file systems or disks.\n";
        page += &tables::of(results);
    }
    if let Some(results) = &measured.wine {
        page += "\n## Under Wine\n\n\
                 csi-proxy.exe as it is shipped, beside the csi-proxy written in Go, version 1.3.0. Both answer on named \
                 pipes and look the paths up in the file system of Wine, each in a prefix of its own. Wine does a part \
                 of each call in another process, the wineserver: its CPU time is that for the server and for the \
                 client, which is the same program for both.\n";
        page += &tables::of(results);
    }
    if let Some(reason) = &measured.no_wine {
        let _infallible = write!(page, "\n## Under Wine\n\nNot measured: {reason}.\n");
    }
    page += &tables::long_calls(&measured.long_calls);
    page += &tables::lifetimes(measured, options);
    page += &method(measured, options);
    page
}

fn introduction(about: &About, options: &Options) -> String {
    let note = options.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
    format!(
        "# Performance\n\
         \n\
         How fast csi-proxy serves, beside other servers of the same RPCs. `cargo xtask bench` writes this page in about \
         a quarter of an hour; run it again, on a machine that does nothing else, to replace it. \
         [call-costs.md](call-costs.md) has what one call costs in allocations, instructions and calls of Windows, which CI \
         compares.\n\
         \n\
         Measured on {date}, commit {commit}{note}. {machine}. {versions}.\n",
        date = about.date,
        commit = about.commit,
        machine = about.machine,
        versions = about.versions,
    )
}

/// How the figures were measured, and how exact they are.
fn method(measured: &Measured, options: &Options) -> String {
    let results: Vec<&Results> = measured.linux.iter().chain(&measured.wine).collect();
    let spreads: Vec<f64> = results.iter().flat_map(|results| results.spreads()).collect();
    if spreads.is_empty() {
        return String::new();
    }
    let noise: Vec<f64> = results.iter().flat_map(|results| results.noise()).collect();
    format!(
        "\n## How it was measured\n\
         \n\
         The client is a Go program with the published stubs, on the same machine. Each caller calls again as soon as it \
         has its answer, and every answer is checked. The authority that a driver sends, a pipe's path, is replaced by a \
         valid one, since tonic refuses it. For each number of callers the servers are measured right after each other, \
         each in a new process, for {seconds} s after a warm-up of a fifth of that, in {rounds} rounds, each time in \
         another order; during long calls and for the lifetimes it is {long} s. The figures are medians of the rounds. CPU \
         time and context switches are those of the server's threads, voluntary or not; memory (VmRSS, VmHWM) and \
         threads are read at the end of the load.\n\
         \n\
         From the slowest round to the fastest, calls/s differ by {typical:.0} % of their median (the median of all rows \
         and servers), and by {worst:.0} % in the worst case. {noise}\n",
        seconds = options.seconds.as_secs_f64(),
        long = (options.seconds * LONG_WINDOWS).as_secs_f64(),
        rounds = options.rounds,
        typical = 100.0 * median(spreads.iter().copied()),
        worst = 100.0 * spreads.iter().copied().fold(0.0, f64::max),
        noise = sentence_about_noise(&noise),
    )
}

fn sentence_about_noise(by_round: &[f64]) -> String {
    let shares: Vec<String> = by_round
        .iter()
        .map(|share| format!("{:.1} %{}", 100.0 * share, if *share > NOISY { " (noisy)" } else { "" }))
        .collect();
    let warning = if by_round.iter().any(|share| *share > NOISY) { NOISY_WARNING } else { "" };
    let shares = shares.join(", ");
    format!(
        "Interrupts, kernel threads and other processes took, by round, {shares} of the machine's CPU time.{warning}"
    )
}

/// Returns the rows of a table of Markdown, whose first columns are texts and whose others are numbers.
fn table(texts: &[&str], numbers: &[&str], rows: &[Vec<String>]) -> String {
    let heading: Vec<&str> = texts.iter().chain(numbers).copied().collect();
    let mut table =
        format!("\n| {} |\n|{}{}\n", heading.join(" | "), "---|".repeat(texts.len()), "--:|".repeat(numbers.len()));
    for row in rows {
        let _infallible = writeln!(table, "| {} |", row.join(" | "));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::lifetime::{Lifetime, State};
    use super::super::long_calls::Latencies;
    use super::super::results::tests::results;
    use super::super::workload::System;
    use super::{About, Measured, Options, render, sentence_about_noise, written};

    fn measured() -> Measured {
        let state = |resident_mb, threads| State { resident_mb, threads };
        let lifetime = |name: &str, idle| Lifetime {
            name: name.into(),
            first_answer: Duration::from_millis(25),
            megabytes: 5.6,
            idle: state(idle, 6),
            loaded: state(30.0, 40),
            after: state(18.0, 40),
            quiet: state(17.0, 7),
        };
        Measured {
            linux: Some(results(System::Linux)),
            wine: Some(results(System::Wine)),
            long_calls: vec![Latencies {
                callers: 8,
                without: vec![100.0, 120.0, 80.0],
                during: [vec![90.0, 120.0, 500.0], vec![150.0, 180.0, 90.0]],
            }],
            lifetimes_on_linux: vec![lifetime("grpc-go", 9.0)],
            lifetimes_on_wine: vec![lifetime("csi-proxy", 13.5)],
            no_wine: None,
        }
    }

    fn options() -> Options {
        Options {
            rounds: 3,
            seconds: Duration::from_secs(2),
            only: Vec::new(),
            workload: Vec::new(),
            callers: vec![1, 8],
            long_call_callers: vec![8],
            quiet: Duration::from_mins(1),
            ours: Vec::new(),
            note: Some("before".into()),
            page: "docs/performance.md".into(),
            build: false,
        }
    }

    fn page(measured: &Measured) -> String {
        let about = About {
            date: "2026-01-02".into(),
            commit: "38922cd".into(),
            machine: "2 processors".into(),
            versions: "tonic 0.14.9".into(),
        };
        render(measured, &about, &options())
    }

    #[test]
    fn the_page_has_the_goals_and_the_medians() {
        let page = page(&measured());
        for line in [
            "Measured on 2026-01-02, commit 38922cd (before). 2 processors. tonic 0.14.9.",
            "| On Linux, calls/s at least those of grpc-go | 1: 0.71 (0.50 to 1.00), 8: 0.71 (0.50 to 1.00) | \
             29 % short at 1, 29 % short at 8 |",
            "| On Linux, CPU per call at most 0.7 of grpc-go's with up to 32 callers, and no more with 128 | \
             1: 1.41 (1.00 to 2.00), 8: 1.41 (1.00 to 2.00) | 102 % too much at 1, 102 % too much at 8 |",
            "| On Linux, p50 at most that of grpc-go | 1: 1.00 (1.00 to 1.00), 8: 1.00 (1.00 to 1.00) | met |",
            "| p99 of PathExists during an SMB call of 30 s within the spread without one, in us | \
             8: 120 (80 to 120 without) | met |",
            "| p99 of PathExists during a format of 30 s within the spread without one, in us | \
             8: 150 (80 to 120 without) | 25 % too much at 8 |",
            "| Under Wine, at most 13 MB when idle | 13.5 | 4 % too much |",
            "| Under Wine, at most 20 MB after a load | 18.0 | met |",
            "| Under Wine, after a quiet minute no more threads than when idle | 7 (6 when idle) | 17 % too much |",
            "| missing-1 | shared | csi-proxy | 500 / 500 | 100 / 100 | 900 / 900 |",
            "| missing-1 | shared | grpc-go | 1000 / 1000 | 100 / 100 | 900 / 900 |",
            "| missing-1 | shared | csi-proxy | 1000.0 / 1000.0 | 0.50 / 0.50 | 4 | 12.5 | 13.0 |",
            "| missing-1 | shared | Go program | 500.0 / 500.0 | 0.0 / 0.0 | 0.50 / 0.50 | 4 | 12.5 | 13.0 |",
            "| 8 | 100 (80 to 120) | 120 (90 to 500) | 150 (90 to 180) |",
            "| csi-proxy, Wine | 20 | 5.6 | 13.5, 6 | 30.0, 40 | 18.0, 40 | 17.0, 7 |",
        ] {
            assert!(page.lines().any(|found| found == line), "no line {line:?} in:\n{page}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }

    #[test]
    fn a_part_that_was_left_out_has_no_section_and_no_goals() {
        let no_wine = Measured { no_wine: Some("Wine is not installed".into()), ..Measured::default() };
        let page = page(&no_wine);
        assert!(page.contains("Not measured: Wine is not installed."), "{page}");
        assert!(!page.contains("## On Linux") && !page.contains('|'), "{page}");
    }

    #[test]
    fn the_sections_that_are_not_measured_are_kept() {
        let page = include_str!("../../../docs/performance.md");
        let kept = written(page);
        assert!(kept.contains("**Memory under Wine.**") && kept.contains("The times are simulated"), "{kept}");
        assert!(page.ends_with(kept) && !kept.contains("## Under Wine"), "{kept}");
        assert_eq!(written("# Performance"), "");
    }

    #[test]
    fn a_noisy_round_is_marked() {
        let sentence = sentence_about_noise(&[0.004, 0.12]);
        assert!(sentence.contains("of a noisy round are unreliable"), "{sentence}");
        assert!(!sentence_about_noise(&[0.004]).contains("noisy"));
        assert!(sentence.contains("by round, 0.4 %, 12.0 % (noisy) of the"), "{sentence}");
    }
}
