//! The results as docs/performance.md.

use std::fmt::Write as _;

use super::Options;
use super::about::About;
use super::figure::{FIGURES, Figure, median};
use super::results::Results;
use super::server::Kind;

/// If other processes take more than this part of the machine's CPU time, the figures of a round are unreliable.
/// Interrupts and the system's own threads alone take 2 to 4 %.
const NOISY: f64 = 0.08;
const NOISY_WARNING: &str = " **The calls/s and latencies of a noisy round are unreliable**: Linux shares the \
                             processors between threads, so a server with more threads loses less to other \
                             processes. CPU time per call suffers least.";

/// The heading of the section that is counted by the test `wmi_calls` of csi-proxy-sim, not measured here.
const COUNTED: &str = "\n## Calls of WMI and of devices\n";

/// The last section of an earlier page, which stays as it is.
pub(super) fn counted(page: &str) -> &str {
    page.find(COUNTED).map_or("", |at| &page[at..])
}

/// The page without its last section.
pub(super) fn render(results: &Results, about: &About, options: &Options) -> String {
    let mut page = introduction(results, about, options);
    for (of, to) in pairs(results) {
        page += &ratios(results, of, to);
    }
    for program in 0..results.programs().len() {
        page += &medians(results, program);
    }
    page
}

fn introduction(results: &Results, about: &About, options: &Options) -> String {
    let note = options.note.as_ref().map_or(String::new(), |note| format!(" ({note})"));
    let spreads = results.spreads();
    format!(
        "# Performance\n\
         \n\
         How fast csi-proxy serves, beside two minimal servers of the same two RPCs, one on grpc-go and one on \
         tonic. This page is written by `cargo xtask bench`, which takes about ten minutes; run it again, on a machine \
         that does nothing else, to replace it. [call-costs.md](call-costs.md) has what one call costs, in counts that CI \
         compares.\n\
         \n\
         Measured on {date}, commit {commit}{note}. {machine}. {versions}.\n\
         \n\
         **What is compared** is the serving path: from the socket through HTTP/2, gRPC and the server's own layers to \
         the operation, and back. It is not a file system or a disk. csi-proxy (a release build with its default \
         flags) runs its operations on the simulated node, the minimal servers call `lstat` on Linux files and answer \
         ListDiskIDs with a constant of the same size. They have none of csi-proxy's path checks, locks, limits, \
         metrics and deadlines, and they do not log, while csi-proxy logs one line for each refused call.\n\
         \n\
         **How**: The client is a Go program with the published stubs, on the same machine. All callers share one \
         connection, as a driver has one for each API group, and each calls again as soon as it has its answer. Every \
         answer is checked. The authority that a driver sends, a pipe's path, is replaced by a valid one, since tonic \
         refuses it. For each row the servers are measured right after each other, each in a new process, for {seconds} s \
         after a warm-up of a fifth of that, in {rounds} rounds, each time in another order; the figures are medians \
         of the rounds. CPU time and context switches are those of the server's threads, voluntary or not; resident \
         and peak memory (VmRSS, VmHWM) and threads are read at the end of the load.\n\
         \n\
         **How exact**: From the slowest round to the fastest, calls/s differ by {typical:.0} % of their median (the \
         median of all rows and servers), and by {worst:.0} % in the worst case. {noise}\n",
        date = about.date,
        commit = about.commit,
        machine = about.machine,
        versions = about.versions,
        seconds = options.seconds.as_secs_f64(),
        rounds = results.rounds(),
        typical = 100.0 * median(spreads.iter().copied()),
        worst = 100.0 * spreads.iter().copied().fold(0.0, f64::max),
        noise = noise(&results.noise()),
    )
}

/// A sentence about other processes.
fn noise(by_round: &[f64]) -> String {
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

/// Which program is compared with which, by index: each build of ours with the minimal servers and with the first build.
fn pairs(results: &Results) -> Vec<(usize, usize)> {
    let of_kind = |kind| {
        let programs = results.programs().iter().enumerate();
        programs.filter(move |(_, program)| program.kind == kind).map(|(index, _)| index)
    };
    let first = of_kind(Kind::Ours).next();
    let with_first = of_kind(Kind::Ours).skip(1).filter_map(|of| first.map(|first| (of, first)));
    let with_minimal = of_kind(Kind::Ours).flat_map(|of| of_kind(Kind::Minimal).map(move |to| (of, to)));
    with_first.chain(with_minimal).collect()
}

fn ratios(results: &Results, of: usize, to: usize) -> String {
    let (ours, theirs) = (&results.programs()[of].name, &results.programs()[to].name);
    let mut table = format!(
        "\n## {ours} / {theirs}\n\nMore than 1 is better for calls/s, less than 1 for everything else.\n\n{}",
        heading()
    );
    for cell in results.cells() {
        row(&mut table, cell.workload.name, cell.callers, |figure| format!("{:.2}", cell.ratio(figure, of, to)));
    }
    let mut callers: Vec<u32> = results.cells().iter().map(|cell| cell.callers).collect();
    callers.sort_unstable();
    callers.dedup();
    for callers in callers {
        row(&mut table, "**geometric mean**", callers, |figure| {
            format!("**{:.2}**", results.mean_ratio(callers, figure, of, to))
        });
    }
    table
}

fn medians(results: &Results, program: usize) -> String {
    let mut table = format!("\n## Medians of {}\n\n{}", results.programs()[program].name, heading());
    for cell in results.cells() {
        row(&mut table, cell.workload.name, cell.callers, |figure| {
            format!("{:.*}", figure.decimals, cell.median(figure, program))
        });
    }
    table
}

fn heading() -> String {
    let names = FIGURES.map(|figure| figure.name);
    format!("| workload | callers | {} |\n|---|--:|{}\n", names.join(" | "), "--:|".repeat(names.len()))
}

fn row(table: &mut String, workload: &str, callers: u32, value: impl Fn(&Figure) -> String) {
    let values: Vec<String> = FIGURES.iter().map(value).collect();
    let _infallible = writeln!(table, "| {workload} | {callers} | {} |", values.join(" | "));
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::results::Results;
    use super::super::results::tests::results;
    use super::super::server::Program;
    use super::{About, Options, counted, noise, pairs, render};

    #[test]
    fn the_page_has_ratios_and_medians() {
        let about = About {
            date: "2026-01-02".into(),
            commit: "38922cd".into(),
            machine: "2 processors".into(),
            versions: "tonic 0.14.9".into(),
        };
        let options = Options {
            rounds: 3,
            seconds: Duration::from_secs(2),
            workload: Vec::new(),
            callers: vec![1, 8],
            ours: Vec::new(),
            note: Some("before".into()),
            page: "docs/performance.md".into(),
        };
        let page = render(&results(), &about, &options);
        for line in [
            "Measured on 2026-01-02, commit 38922cd (before). 2 processors. tonic 0.14.9.",
            "## csi-proxy / grpc-go",
            "| missing-1 | 8 | 0.50 | 1.00 | 1.00 | 2.00 | 1.00 | 1.00 | 1.00 | 1.00 |",
            "| **geometric mean** | 8 | **0.50** | **1.00** | **1.00** | **2.00** | **1.00** | **1.00** | **1.00** | **1.00** |",
            "## Medians of csi-proxy",
            "| missing-1 | 1 | 500 | 100 | 900 | 1000.0 | 0.50 | 4 | 12.5 | 13.0 |",
            "## Medians of grpc-go",
            "| missing-1 | 8 | 1000 | 100 | 900 | 500.0 | 0.50 | 4 | 12.5 | 13.0 |",
        ] {
            assert!(page.lines().any(|found| found == line), "no line {line:?} in:\n{page}");
        }
        let columns = |line: &str| line.matches('|').count();
        assert!(page.lines().filter(|line| line.starts_with('|')).all(|line| columns(line) == 11), "{page}");
    }

    #[test]
    fn the_section_that_is_not_measured_is_kept() {
        let page = include_str!("../../../docs/performance.md");
        let kept = counted(page);
        assert!(
            kept.contains("The times are simulated") && page.ends_with(kept) && !kept.contains("## Medians"),
            "{kept}"
        );
        assert_eq!(counted("# Performance"), "");
    }

    #[test]
    fn a_noisy_round_is_marked() {
        let sentence = noise(&[0.004, 0.12]);
        assert!(sentence.contains("of a noisy round are unreliable"), "{sentence}");
        assert!(!noise(&[0.004]).contains("noisy"));
        assert!(sentence.contains("by round, 0.4 %, 12.0 % (noisy) of the"), "{sentence}");
    }

    #[test]
    fn builds_are_compared_with_the_first_and_with_the_minimal_servers() {
        let build = |text| Program::daemon(text).expect("a name and a path");
        let minimal = Program::minimal("tonic", "tonic".into());
        let results = Results::new(&[build("before=a"), build("after=b"), minimal], &[], &[]);
        assert_eq!(pairs(&results), [(1, 0), (0, 2), (1, 2)]);
    }
}
