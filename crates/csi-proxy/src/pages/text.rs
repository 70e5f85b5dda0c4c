//! `/statusz` and `/flagz` as plain text, with the first lines that components of Kubernetes write.
//! <https://github.com/kubernetes/kubernetes/tree/master/staging/src/k8s.io/component-base/zpages>

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use server::status::{Counts, Failure, Lock, Pool, RpcSummary, RunningCall};
use terminal_text::escaped;

use super::ProgramStatus;

const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no \
                       formatting compatibility guarantees and is for debugging purposes only.";

/// The page `/flagz`.
pub(super) fn flagz(program: &str, flags: &[(&'static str, String)]) -> String {
    let mut text = format!("\n{program} flags\n{WARNING}\n\n");
    for (name, value) in flags {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{name}={}", escaped(value));
    }
    text
}

/// The page `/statusz`.
pub(super) fn statusz(status: &ProgramStatus<'_>) -> String {
    let mut text = String::new();
    write(&mut text, status).expect("a string takes all text");
    text
}

fn write(text: &mut String, status: &ProgramStatus<'_>) -> fmt::Result {
    let ProgramStatus {
        program,
        version,
        system,
        endpoints,
        process_id,
        started,
        up_seconds,
        served,
        status,
    } = status;
    writeln!(
        text,
        "\n{program} statusz\n{WARNING} Use /statusz?format=json in programs.\n"
    )?;
    writeln!(
        text,
        "Started: {started}\nUp: {}\nBinary version: {version}",
        duration(*up_seconds)
    )?;
    writeln!(
        text,
        "Process: {process_id}\nNode: {}\nEndpoints: {}",
        escaped(system),
        escaped(endpoints)
    )?;
    writeln!(text, "Served: {}", served.join(" "))?;
    let Counts {
        connections,
        in_flight,
        in_transfer,
        waiting_for_slot,
        ..
    } = status.counts;
    writeln!(text, "\nConnections: {connections}")?;
    writeln!(
        text,
        "Calls in flight: {in_flight} ({in_transfer} in transfer, {waiting_for_slot} waiting for a \
         slot)"
    )?;

    let pools: Vec<&Pool> = status
        .pools
        .iter()
        .filter(|pool| pool.busy + pool.waiting > 0)
        .collect();
    section(text, "Pools of threads in use", &pools, |text, pool| {
        let Pool {
            name,
            threads,
            busy,
            waiting,
        } = pool;
        writeln!(
            text,
            "  {name:<9} {busy:>2} of {threads} busy, {waiting} waiting"
        )
    })?;
    section(text, "Last failures", &status.failures, |text, failure| {
        let Failure {
            call,
            rpc,
            code,
            message,
            seconds_ago,
            count,
        } = failure;
        writeln!(
            text,
            "  {} ago: call {call} {rpc}, {code}, {count} so far",
            duration(*seconds_ago)
        )?;
        writeln!(text, "    {}", escaped(message))
    })?;
    writeln!(text, "\nCalls in progress: {}", status.calls.len())?;
    for calls in with_equal_waits(&status.calls) {
        match calls.as_slice() {
            [call] => write_call(text, call)?,
            calls => write_calls(text, calls)?,
        }
    }
    section(text, "Locks", &status.locks, |text, lock| {
        writeln!(
            text,
            "  {}: held by {}, awaited by {}",
            escaped(&lock.key),
            holders(lock),
            numbers(&lock.waiting)
        )
    })?;
    section(
        text,
        "RPCs called since the start",
        &status.rpcs,
        |text, rpc| {
            let RpcSummary {
                rpc,
                started,
                failed,
                mean_seconds,
                max_seconds,
                ..
            } = rpc;
            write!(text, "  {rpc}: {started} calls, {failed} failed")?;
            if let (Some(mean), Some(longest)) = (mean_seconds, max_seconds) {
                let (mean, longest) = (duration(*mean), duration(*longest));
                write!(text, ", mean {mean}, longest {longest}")?;
            }
            writeln!(text)
        },
    )
}

fn section<T>(
    text: &mut String,
    title: &str,
    items: &[T],
    write: impl Fn(&mut String, &T) -> fmt::Result,
) -> fmt::Result {
    writeln!(text, "\n{title}: {}", items.len())?;
    items.iter().try_for_each(|item| write(text, item))
}

/// Returns the calls, those that wait for the same together.
fn with_equal_waits(calls: &[RunningCall]) -> Vec<Vec<&RunningCall>> {
    let mut groups: Vec<Vec<&RunningCall>> = Vec::new();
    let mut waits: BTreeMap<&str, usize> = BTreeMap::new();
    for call in calls {
        let state = call.state.as_str();
        let is_wait = state.starts_with("waiting") || state.starts_with("sharing");
        let next = groups.len();
        match waits.entry(state) {
            Entry::Occupied(group) if is_wait => groups[*group.get()].push(call),
            entry => {
                entry.insert_entry(next);
                groups.push(vec![call]);
            }
        }
    }
    groups
}

fn write_call(text: &mut String, call: &RunningCall) -> fmt::Result {
    let RunningCall {
        rpc, object, state, ..
    } = call;
    // The calls that wait for a call that hangs are its victims.
    let mark = if state == "running" && call.seconds > 10.0 {
        "!"
    } else {
        " "
    };
    let number = call
        .call
        .map_or("no call".to_owned(), |number| format!("call {number}"));
    let age = duration(call.seconds);
    writeln!(text, "{mark} {number}, {age}: {rpc}: {}", escaped(object))?;
    writeln!(text, "      {}, {}", escaped(state), caller(call))
}

/// Writes calls that wait for the same.
fn write_calls(text: &mut String, calls: &[&RunningCall]) -> fmt::Result {
    let oldest = calls.iter().map(|call| call.seconds).fold(0.0, f64::max);
    let connections: BTreeSet<_> = calls.iter().map(|call| call.connection).collect();
    let mut rpcs: BTreeMap<_, usize> = BTreeMap::new();
    for call in calls {
        *rpcs.entry(call.rpc).or_default() += 1;
    }
    let rpcs: Vec<_> = rpcs
        .iter()
        .map(|(rpc, count)| format!("{rpc} {count}"))
        .collect();
    writeln!(
        text,
        "  {} calls on {} connections, {}, the oldest for {}",
        calls.len(),
        connections.len(),
        numbers(
            &calls
                .iter()
                .filter_map(|call| call.call)
                .collect::<Vec<_>>()
        ),
        duration(oldest)
    )?;
    writeln!(
        text,
        "      {}: {}",
        escaped(&calls[0].state),
        rpcs.join(", ")
    )
}

/// Returns which connection a call arrived on, and whether its client still waits.
fn caller(call: &RunningCall) -> String {
    match (call.connection, call.has_caller) {
        (None, _) => "no call".to_owned(),
        (Some(connection), true) => format!("connection {connection}"),
        (Some(connection), false) => format!("connection {connection} no longer waits"),
    }
}

/// What holds a lock after its request has ended.
const HUNG_CALL: &str = "a Windows call that still hangs after its request has ended";

/// Returns who has a lock.
fn holders(lock: &Lock) -> String {
    match (lock.held_by.as_slice(), lock.held_by_others) {
        ([], 0) => "an operation that no call requested".to_owned(),
        ([], _) => HUNG_CALL.to_owned(),
        (calls, 0) => numbers(calls),
        (calls, _) => format!("{} and {HUNG_CALL}", numbers(calls)),
    }
}

/// The calls that a list of numbers shows; it counts the others.
const SHOWN_NUMBERS: usize = 8;

/// Returns numbers of calls as text.
fn numbers(calls: &[u64]) -> String {
    let numbers: Vec<String> = calls.iter().map(u64::to_string).collect();
    match numbers.as_slice() {
        [] => "nobody".to_owned(),
        [one] => format!("call {one}"),
        all => match all.split_at_checked(SHOWN_NUMBERS) {
            Some((shown, [_, ..])) => {
                let more = all.len() - SHOWN_NUMBERS;
                format!("calls {} and {more} more", shown.join(", "))
            }
            _ => format!("calls {}", all.join(", ")),
        },
    }
}

/// Returns a duration as a person writes it.
fn duration(seconds: f64) -> String {
    match seconds {
        ..0.0 => "0 s".to_owned(),
        // The bounds are where the rounded number would be 1000 or more of the unit.
        ..0.000_999_5 => format!("{:.0} us", seconds * 1e6),
        ..0.999_95 => format!("{:.1} ms", seconds * 1e3),
        ..120.0 => format!("{seconds:.1} s"),
        ..6_000.0 => format!("{:.1} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn a_duration_is_written_with_a_unit_that_suits_it() {
        for (seconds, text) in [
            (0.0, "0 us"),
            (0.000_05, "50 us"),
            (0.0123, "12.3 ms"),
            (0.000_999_6, "1.0 ms"),
            (0.999_94, "999.9 ms"),
            (0.999_96, "1.0 s"),
            (1.0, "1.0 s"),
            (100.0, "100.0 s"),
            (130.0, "2.2 min"),
            (300.0, "5.0 min"),
            (7200.0, "2.0 h"),
            (864_000.0, "10.0 days"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
