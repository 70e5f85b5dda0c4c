//! Faults: calls of Windows that fail, take longer or crash the daemon.

use std::time::Duration;

use clap::{Args, Subcommand};
use csi_proxyctl::quantity;
use csi_proxyctl::table::{Column, shown};
use serde_json::{Value, json};

use super::{Error, Output, Simulator};
use crate::control_api::fault::Action;
use crate::control_api::{
    ClearFaultsRequest, Fault, InjectFaultRequest, InjectedFault, ListFaultsRequest, ListPrimitivesRequest, Primitive,
};

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

#[derive(Subcommand)]
pub(super) enum Task {
    /// Makes Windows calls fail, take longer or crash the daemon
    #[command(before_help = "A call must meet all conditions that are given. An example: every format fails.\n\n    \
                       csi-proxy-sim ctl inject --code 0x80041001 \\\n        \
                       --primitive 'wmi call MSFT_Volume.Format'\n\n\
                       csi-proxy repeats a call after some codes, such as 5 (access denied). Such a fault shows only after \
                       several attempts.")]
    Inject(Disturbance),
    /// Lists the faults, with the number of calls that each has disturbed
    Faults,
    /// Removes one fault or all faults
    #[command(before_help = "Calls that a fault has already delayed stay delayed until `csi-proxy-sim ctl restart`.")]
    ClearFaults {
        /// Id of the fault, as `csi-proxy-sim ctl faults` shows it [default: all]
        #[arg(value_parser = fault)]
        id: Option<u64>,
    },
    /// Lists the primitives that the daemon has called, for the command inject
    #[command(before_help = "A primitive is one call of Windows, such as `open` or `wmi call MSFT_Volume.Format`.")]
    Primitives,
}

/// The calls that are disturbed, and how.
#[derive(Args)]
pub(super) struct Disturbance {
    /// Only calls of this primitive, as `csi-proxy-sim ctl primitives` lists it; a final * matches any text
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    primitive: String,
    /// Only calls whose path, service name, WMI query or WMI path contains this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    object: String,
    /// Only calls on this disk, its volumes and their files
    #[arg(long, value_name = "NUMBER", value_parser = quantity::number::<u32>)]
    disk: Option<u32>,
    /// Number of these calls to leave undisturbed first
    #[arg(long, value_name = "COUNT", value_parser = quantity::number::<u64>)]
    skip: Option<u64>,
    /// Number of calls to disturb after those [default: all]
    #[arg(long, value_name = "COUNT", value_parser = quantity::number::<u64>)]
    count: Option<u64>,
    /// Disturb the call after it has had its effect
    #[arg(long)]
    after: bool,
    #[command(flatten)]
    action: Effect,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Effect {
    /// Fail with this code, such as 5 or 0x80041001
    #[arg(long, value_parser = code)]
    code: Option<u32>,
    /// Delay the call by this time, such as 30s
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    delay: Option<Duration>,
    /// Crash the daemon, which then starts again. Requires --count
    #[arg(long, requires = "count")]
    crash: bool,
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

impl Task {
    pub(super) async fn run(self, Simulator { mut simulation, .. }: Simulator) -> Result<Output, Error> {
        match self {
            Self::Inject(disturbance) => {
                let request = InjectFaultRequest { fault: Some(disturbance.fault()) };
                let injected = simulation.inject_fault(request).await?.into_inner();
                Ok(Output::Response(json!({ "id": injected.id })))
            }
            Self::Faults => {
                let list = simulation.list_faults(ListFaultsRequest {}).await?.into_inner();
                Ok(Output::Rows(&FAULTS, list.faults.into_iter().map(row).collect()))
            }
            Self::ClearFaults { id } => {
                simulation.clear_faults(ClearFaultsRequest { id: id.unwrap_or_default() }).await?;
                Ok(Output::DONE)
            }
            Self::Primitives => {
                let list = simulation.list_primitives(ListPrimitivesRequest {}).await?.into_inner();
                let row = |called: Primitive| json!({ "primitive": called.name, "calls": called.calls });
                Ok(Output::Rows(&PRIMITIVES, list.primitives.into_iter().map(row).collect()))
            }
        }
    }
}

impl Disturbance {
    fn fault(self) -> Fault {
        let milliseconds = |delay: Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let code = self.action.code.map(Action::Code);
        let action = code.or(self.action.delay.map(|delay| Action::DelayMilliseconds(milliseconds(delay))));
        Fault {
            primitive: self.primitive,
            object: self.object,
            disk_number: self.disk,
            skip: self.skip.unwrap_or_default(),
            count: self.count.unwrap_or_default(),
            after: self.after,
            action: action.or(Some(Action::Crash(self.action.crash))),
        }
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
