//! What was to be reached, and the distance to it.

use super::super::Measured;
use super::super::figure::{CALLS, CPU, Figure, P50, WHOLE_CPU, median};
use super::super::long_calls::Latencies;
use super::super::results::Results;
use super::super::server::Kind;
use super::table;

/// From this number of callers on, csi-proxy is to be faster than the Go program by [`MUCH_FASTER`].
const MANY_CALLERS: u32 = 32;
const MUCH_FASTER: f64 = 1.3;
/// How much of grpc-go's CPU time is allowed with up to [`MANY_CALLERS`], and of tonic's.
const CPU_OF_GRPC_GO: f64 = 0.7;
const CPU_OF_TONIC: f64 = 1.5;
/// A path lookup is as near to the ping-pong as a refused path if its calls/s are no less than this part of those.
const AS_NEAR: f64 = 0.95;
const IDLE_MB: f64 = 13.0;
const AFTER_LOAD_MB: f64 = 20.0;

/// One figure, with what it may be.
struct Value {
    /// The number of callers, if there is one.
    callers: Option<u32>,
    /// As the page shows it.
    text: String,
    /// The figure, and the worst of those that it is the mean of.
    number: f64,
    worst: f64,
    limit: f64,
}

#[derive(Clone, Copy)]
enum Better {
    More,
    Less,
}

pub(super) fn section(measured: &Measured) -> String {
    let mut rows = Vec::new();
    if let Some(results) = &measured.linux {
        rows.extend(on_linux(results));
    }
    if let Some(results) = &measured.wine {
        rows.extend(on_wine(results));
    }
    rows.extend(during_long_calls(&measured.long_calls));
    rows.extend(memory(measured));
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\n## Goals\n\
         \n\
         The goals for speed are about PathExists of what exists and of what is missing, one and five directories deep, \
         on one connection. `8: 1.20 (1.10 to 1.30)` means: with 8 callers, csi-proxy has 1.20 times the figure of the \
         other server in the geometric mean of these paths, 1.10 times for one of them and 1.30 times for another.\n{}",
        table(&["goal", "measured", "result"], &[], &rows)
    )
}

fn on_linux(results: &Results) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let Some(ours) = results.of_kind(Kind::Ours).last() else { return rows };
    for other in results.of_kind(Kind::Minimal) {
        let name = &results.programs()[other].name;
        let of = |figure, limit: fn(u32) -> f64| ratios(results, figure, ours, other, limit);
        if name == "tonic" {
            let goal = format!("On Linux, CPU per call at most {CPU_OF_TONIC} of tonic's");
            rows.extend(row(&goal, Better::Less, &of(&CPU, |_| CPU_OF_TONIC)));
            continue;
        }
        let goal = format!("On Linux, calls/s at least those of {name}");
        rows.extend(row(&goal, Better::More, &of(&CALLS, |_| 1.0)));
        rows.extend(row(&format!("On Linux, p50 at most that of {name}"), Better::Less, &of(&P50, |_| 1.0)));
        let goal = format!(
            "On Linux, CPU per call at most {CPU_OF_GRPC_GO} of {name}'s with up to {MANY_CALLERS} callers, and no more \
             with 128"
        );
        let limit = |callers| if callers <= MANY_CALLERS { CPU_OF_GRPC_GO } else { 1.0 };
        rows.extend(row(&goal, Better::Less, &of(&CPU, limit)));
    }
    rows
}

fn on_wine(results: &Results) -> Vec<Vec<String>> {
    let (Some(ours), Some(go)) = (results.of_kind(Kind::Ours).last(), results.of_kind(Kind::GoProgram).next()) else {
        return Vec::new();
    };
    let faster = ratios(results, &CALLS, ours, go, |callers| if callers < MANY_CALLERS { 1.0 } else { MUCH_FASTER });
    let cheaper = ratios(results, &WHOLE_CPU, ours, go, |_| 1.0);
    let goal = format!(
        "Under Wine, calls/s at least those of the Go program, and {MUCH_FASTER} times from {MANY_CALLERS} callers on"
    );
    let rows = [
        row(&goal, Better::More, &faster),
        row(
            "Or, under Wine, calls/s as near to the ping-pong as those of a refused path",
            Better::More,
            &floors(results, ours),
        ),
        row("Under Wine, less CPU per call than the Go program, with the wineserver", Better::Less, &cheaper),
    ];
    rows.into_iter().flatten().collect()
}

/// How PathExists compares with the other program, by number of callers.
fn ratios(results: &Results, figure: &Figure, of: usize, to: usize, limit: fn(u32) -> f64) -> Vec<Value> {
    let more_is_better = figure.name == CALLS.name;
    let of_callers = |callers: u32| {
        let ratios = results.path_lookups(callers, figure, of, to);
        let text = format!("{:.2} ({:.2} to {:.2})", ratios.mean(), ratios.least(), ratios.most());
        let worst = if more_is_better { ratios.least() } else { ratios.most() };
        Value { callers: Some(callers), text, number: ratios.mean(), worst, limit: limit(callers) }
    };
    results.callers().into_iter().map(of_callers).filter(|value| value.number.is_finite()).collect()
}

/// The calls/s of PathExists as a part of the ping-pong's, beside those of a refused path.
fn floors(results: &Results, ours: usize) -> Vec<Value> {
    let Some(ping_pong) = results.of_kind(Kind::PingPong).next() else { return Vec::new() };
    let of_callers = |callers: u32| {
        let floor = results.calls_per_second("ping-pong", callers, ping_pong)?;
        let refused = results.calls_per_second("refused", callers, ours)?;
        let slowest = results.slowest_lookup(callers, ours)?;
        Some(Value {
            callers: Some(callers),
            text: format!("{:.2} (refused {:.2})", slowest / floor, refused / floor),
            number: slowest / refused,
            worst: slowest / refused,
            limit: AS_NEAR,
        })
    };
    results.callers().into_iter().filter_map(of_callers).collect()
}

fn during_long_calls(all: &[Latencies]) -> Vec<Vec<String>> {
    let calls = ["an SMB call", "a format"];
    let of = |(during, call): (usize, &str)| {
        let goal = format!("p99 of PathExists during {call} of 30 s within the spread without one, in us");
        let values: Vec<Value> = all
            .iter()
            .map(|latencies| {
                let [least, most] = latencies.range_without();
                let value = median(latencies.during[during].iter().copied());
                let text = format!("{value:.0} ({least:.0} to {most:.0} without)");
                Value { callers: Some(latencies.callers), text, number: value, worst: value, limit: most }
            })
            .collect();
        row(&goal, Better::Less, &values)
    };
    calls.into_iter().enumerate().filter_map(of).collect()
}

fn memory(measured: &Measured) -> Vec<Vec<String>> {
    let Some(ours) = measured.lifetimes_on_wine.iter().find(|lifetime| lifetime.name == "csi-proxy") else {
        return Vec::new();
    };
    let megabytes =
        |value: f64, limit| [Value { callers: None, text: format!("{value:.1}"), number: value, worst: value, limit }];
    let [quiet, idle] = [ours.quiet.threads, ours.idle.threads];
    let threads = |count: usize| u32::try_from(count).map_or(f64::NAN, f64::from);
    let threads = [Value {
        callers: None,
        text: format!("{quiet} ({idle} when idle)"),
        number: threads(quiet),
        worst: threads(quiet),
        limit: threads(idle),
    }];
    let rows = [
        row(
            &format!("Under Wine, at most {IDLE_MB} MB when idle"),
            Better::Less,
            &megabytes(ours.idle.resident_mb, IDLE_MB),
        ),
        row(
            &format!("Under Wine, at most {AFTER_LOAD_MB} MB after a load"),
            Better::Less,
            &megabytes(ours.after.resident_mb, AFTER_LOAD_MB),
        ),
        row("Under Wine, after a quiet minute no more threads than when idle", Better::Less, &threads),
    ];
    rows.into_iter().flatten().collect()
}

/// Returns the row of a goal, unless nothing was measured.
fn row(goal: &str, better: Better, values: &[Value]) -> Option<Vec<String>> {
    if values.is_empty() {
        return None;
    }
    let with_callers = |value: &Value, text: &str, word: &str| {
        value.callers.map_or_else(
            || text.to_owned(),
            |callers| {
                if word.is_empty() { format!("{callers}: {text}") } else { format!("{text} {word} {callers}") }
            },
        )
    };
    let measured: Vec<String> = values.iter().map(|value| with_callers(value, &value.text, "")).collect();
    let missed = values.iter().filter_map(|value| Some(with_callers(value, &value.shortfall(better)?, "at")));
    let missed: Vec<String> = missed.collect();
    let result = if missed.is_empty() { "met".to_owned() } else { missed.join(", ") };
    Some(vec![goal.to_owned(), measured.join(", "), result])
}

impl Value {
    /// How far it is from its limit, or `None` if it is within.
    fn shortfall(&self, better: Better) -> Option<String> {
        let of_mean = self.distance(self.number, better);
        of_mean.or_else(|| Some(format!("met on average, the worst path {}", self.distance(self.worst, better)?)))
    }

    fn distance(&self, number: f64, better: Better) -> Option<String> {
        let ratio = number / self.limit;
        match better {
            Better::More if ratio < 1.0 => Some(format!("{:.0} % short", 100.0 * (1.0 - ratio))),
            Better::Less if ratio > 1.0 => Some(format!("{:.0} % too much", 100.0 * (ratio - 1.0))),
            Better::More | Better::Less => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Better, Value, row};

    #[test]
    fn a_goal_is_met_if_each_path_meets_it() {
        let value =
            |callers, number, worst| Value { callers: Some(callers), text: "x".into(), number, worst, limit: 1.0 };
        let result = |values: &[Value], better| row("goal", better, values).and_then(|row| row.last().cloned());
        let faster = [value(1, 1.2, 1.1), value(8, 1.1, 0.95), value(32, 0.9, 0.8)];
        let expected = "met on average, the worst path 5 % short at 8, 10 % short at 32";
        assert_eq!(result(&faster, Better::More).as_deref(), Some(expected));
        assert_eq!(result(&faster[..1], Better::More).as_deref(), Some("met"));
        assert_eq!(result(&faster[2..], Better::Less).as_deref(), Some("met"));
        assert_eq!(result(&[], Better::Less), None);
    }
}
