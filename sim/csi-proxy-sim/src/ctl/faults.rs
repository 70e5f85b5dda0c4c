//! Faults: calls of Windows that fail, take longer or crash the daemon.

use std::time::Duration;

use crate::control_api::fault::Action;
use crate::control_api::{
    ClearFaultsRequest, Fault, InjectFaultRequest, InjectedFault, ListFaultsRequest, ListPrimitivesRequest,
};
use clap::{Arg, ArgGroup, ArgMatches, Command};
use serde_json::{Value, json};

use super::{Error, Output, Simulator, answered, response_arg, switch, table_arg};
use csi_proxyctl::quantity;
use csi_proxyctl::table::{Column, shown};

static FAULTS: [Column; 9] = [
    Column::number("ID", |row| shown(&row["id"])),
    Column::text("PRIMITIVE", |row| any(&row["primitive"])),
    Column::text("OBJECT", |row| any(&row["object"])),
    Column::text("DISK", |row| any(&row["disk"])),
    Column::text("ACTION", |row| shown(&row["action"])),
    Column::number("SKIP", |row| shown(&row["skip"])),
    Column::number("COUNT", |row| any(&row["count"])),
    Column::number("HITS", |row| shown(&row["hits"])),
    Column::text("LAST HIT", |row| shown(&row["last_hit"])).wide(),
];

static PRIMITIVES: [Column; 2] =
    [Column::text("PRIMITIVE", |row| shown(&row["primitive"])), Column::number("CALLS", |row| shown(&row["calls"]))];

/// Returns the text of a condition that may be absent.
fn any(value: &Value) -> String {
    if value.is_null() { "any".to_owned() } else { shown(value) }
}

pub(super) fn commands() -> Vec<Command> {
    let flag = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let number = |name, help| flag(name, "COUNT", help).value_parser(quantity::number::<u64>);
    vec![
        Command::new("inject")
            .about("Makes Windows calls fail, take longer or crash the daemon")
            .before_help(
                "A call must meet all conditions that are given. An example: every format fails.\n\n    \
                 csi-proxy-sim ctl inject --code 0x80041001 \\\n        --primitive 'wmi call MSFT_Volume.Format'\n\n\
                 csi-proxy repeats a call after some codes, such as 5 (access denied). Such a fault shows only after several \
                 attempts.",
            )
            .arg(flag(
                "primitive",
                "NAME",
                "Only calls of this primitive, as `csi-proxy-sim ctl primitives` lists it; a final * matches any text",
            ))
            .arg(flag("object", "TEXT", "Only calls whose path, service name, WMI query or WMI path contains this text"))
            .arg(
                flag("disk", "NUMBER", "Only calls on this disk, its volumes and their files")
                    .value_parser(quantity::number::<u32>),
            )
            .arg(number("skip", "Number of these calls to leave undisturbed first"))
            .arg(number("count", "Number of calls to disturb after those [default: all]"))
            .arg(switch("after", "Disturb the call after it has had its effect"))
            .arg(
                flag("code", "CODE", "Fail with this code, such as 5 or 0x80041001")
                    .value_parser(|text: &str| code(text)),
            )
            .arg(
                flag("delay", "TIME", "Delay the call by this time, such as 30s")
                    .value_parser(|text: &str| quantity::duration(text)),
            )
            .arg(switch("crash", "Crash the daemon, which then starts again. Requires --count").requires("count"))
            .group(ArgGroup::new("action").args(["code", "delay", "crash"]).required(true))
            .arg(response_arg()),
        Command::new("faults").about("Lists the faults, with the number of calls that each has disturbed").arg(table_arg()),
        Command::new("clear-faults")
            .about("Removes one fault or all faults")
            .before_help("Calls that a fault has already delayed stay delayed until `csi-proxy-sim ctl restart`.")
            .arg(
                Arg::new("id")
                    .value_name("ID")
                    .value_parser(fault)
                    .help("The fault, as `csi-proxy-sim ctl faults` shows it [default: all]"),
            ),
        Command::new("primitives")
            .about("Lists the primitives that the daemon has called, for the command inject")
            .before_help("A primitive is one call of Windows, such as `open` or `wmi call MSFT_Volume.Format`.")
            .arg(table_arg()),
    ]
}

/// Parses the id of a fault. To the simulator, 0 means all.
fn fault(text: &str) -> Result<u64, &'static str> {
    quantity::number(text).and_then(|id| if id == 0 { Err("the ids of faults begin with 1") } else { Ok(id) })
}

/// Parses a code of Windows, decimal or in hexadecimal with 0x.
fn code(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "a code is a number such as 5, or in hexadecimal such as 0x80041001".to_owned())
}

pub(super) async fn run(name: &str, matches: &ArgMatches, mut simulator: Simulator) -> Result<Output, Error> {
    let simulation = &mut simulator.simulation;
    match name {
        "inject" => {
            let request = InjectFaultRequest { fault: Some(requested(matches)) };
            let injected = answered(simulation.inject_fault(request).await)?;
            Ok(Output::Response(json!({ "id": injected.id })))
        }
        "faults" => {
            let list = answered(simulation.list_faults(ListFaultsRequest {}).await)?;
            Ok(Output::Rows(&FAULTS, list.faults.into_iter().map(row).collect()))
        }
        "clear-faults" => {
            let id = matches.get_one("id").copied().unwrap_or_default();
            answered(simulation.clear_faults(ClearFaultsRequest { id }).await)?;
            Ok(Output::done())
        }
        _ => {
            let list = answered(simulation.list_primitives(ListPrimitivesRequest {}).await)?;
            let row =
                |called: crate::control_api::Primitive| json!({ "primitive": called.name, "calls": called.calls });
            Ok(Output::Rows(&PRIMITIVES, list.primitives.into_iter().map(row).collect()))
        }
    }
}

fn requested(matches: &ArgMatches) -> Fault {
    let text = |name| matches.get_one::<String>(name).cloned().unwrap_or_default();
    let number = |name| matches.get_one::<u64>(name).copied().unwrap_or_default();
    let action = if let Some(code) = matches.get_one("code") {
        Action::Code(*code)
    } else if let Some(delay) = matches.get_one::<Duration>("delay") {
        Action::DelayMilliseconds(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX))
    } else {
        Action::Crash(true)
    };
    Fault {
        primitive: text("primitive"),
        object: text("object"),
        disk_number: matches.get_one("disk").copied(),
        skip: number("skip"),
        count: number("count"),
        after: matches.get_flag("after"),
        action: Some(action),
    }
}

fn row(injected: InjectedFault) -> Value {
    let fault = injected.fault.unwrap_or_default();
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let what = match fault.action {
        Some(Action::Code(code @ 0x8000_0000..)) => format!("fail with 0x{code:08x}"),
        Some(Action::Code(code)) => format!("fail with {code}"),
        Some(Action::DelayMilliseconds(span)) => format!("take {} longer", quantity::short_duration(span)),
        Some(Action::Crash(_)) | None => "crash".to_owned(),
    };
    json!({
        "id": injected.id,
        "primitive": some(fault.primitive),
        "object": some(fault.object),
        "disk": fault.disk_number,
        "skip": fault.skip,
        "count": Some(fault.count).filter(|count| *count > 0),
        "action": if fault.after { format!("{what}, after its effect") } else { what },
        "hits": injected.hits,
        "last_hit": some(injected.last_hit),
    })
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn a_code_is_decimal_or_hexadecimal() {
        assert_eq!(
            ["5", "0x5", "0x80041001", "2147749889"].map(code),
            [Ok(5), Ok(5), Ok(0x8004_1001), Ok(0x8004_1001)]
        );
        for text in ["", "0x", "-1", "0x100000000", "ERROR_ACCESS_DENIED"] {
            assert!(code(text).is_err(), "{text}");
        }
    }
}
