//! Faults: calls of Windows that fail, take longer or crash the daemon.

use std::time::Duration;

use clap::{Args, Subcommand};
use command_line::quantity;
use command_line::table::{Column, shown};
use serde_json::{Value, json};
use tonic::Code;

use super::{Error, Output, Simulator};
use crate::control_api::fault::Action;
use crate::control_api::{
    ClearFaultsRequest, Fault, InjectFaultRequest, InjectedFault, ListFaultsRequest,
    ListPrimitivesRequest, Primitive, RpcStatus, WaitForFaultRequest,
};

static FAULTS: [Column; 9] = [
    Column::number("ID", |row| shown(&row["id"])),
    Column::text("CALL", |row| {
        if row["rpc"].is_null() {
            any(&row["primitive"])
        } else {
            shown(&row["rpc"])
        }
    }),
    Column::text("OBJECT", |row| any(&row["object"])),
    Column::text("DISK", |row| any(&row["disk"])),
    Column::text("ACTION", |row| shown(&row["action"])),
    Column::number("SKIP", |row| shown(&row["skip"])),
    Column::number("COUNT", |row| any(&row["count"])),
    Column::number("HITS", |row| shown(&row["hits"])),
    Column::text("LAST HIT", |row| shown(&row["last_hit"])).wide(),
];

static PRIMITIVES: [Column; 2] = [
    Column::text("PRIMITIVE", |row| shown(&row["primitive"])),
    Column::number("CALLS", |row| shown(&row["calls"])),
];

/// Returns the text of a condition that may be absent.
fn any(value: &Value) -> String {
    if value.is_null() {
        "any".to_owned()
    } else {
        shown(value)
    }
}

#[derive(Subcommand)]
pub(super) enum Task {
    /// Makes RPCs or Windows calls fail, take longer, wait or crash the daemon
    #[command(
        before_help = "A call must meet all conditions that are given. Two examples: the second \
                       MountVolume fails, and every format fails.\n\n    csi-proxy-sim ctl inject \
                       --rpc volume/MountVolume \\\n        --status Aborted --skip 1 --count \
                       1\n    csi-proxy-sim ctl inject --code 0x80041001 \\\n        --primitive \
                       'wmi call MSFT_Volume.Format'\n\n\
                       csi-proxy repeats a call after some codes, such as 5 (access denied). Such \
                       a fault shows only after several attempts."
    )]
    Inject(Box<Disturbance>),
    /// Lists the faults, with the number of calls that each has disturbed
    Faults,
    /// Waits until a fault has disturbed a call
    WaitFault {
        /// Id of the fault, as `csi-proxy-sim ctl faults` shows it
        #[arg(value_parser = fault)]
        id: u64,
        /// Number of calls to wait for
        #[arg(long, value_name = "COUNT", default_value = "1", value_parser = quantity::number::<u64>)]
        hits: u64,
    },
    /// Removes one fault or all faults, and releases the calls that wait for it
    ClearFaults {
        /// Id of the fault, as `csi-proxy-sim ctl faults` shows it [default: all]
        #[arg(value_parser = fault)]
        id: Option<u64>,
    },
    /// Lists the primitives that the daemon has called, for the command inject
    #[command(
        before_help = "A primitive is one call of Windows, such as `open` or `wmi call \
                       MSFT_Volume.Format`."
    )]
    Primitives,
}

/// The calls that are disturbed, and how.
#[derive(Args)]
pub(super) struct Disturbance {
    /// Only calls of this RPC, such as volume/MountVolume or volume/v1/MountVolume; a final *
    /// matches any text
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    rpc: String,
    /// Only calls of this primitive, as `csi-proxy-sim ctl primitives` lists it; a final * matches
    /// any text
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    primitive: String,
    /// Only calls whose path, service name, WMI query or WMI path, or whose request to an RPC,
    /// contains this text
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
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
    /// Disturb each of these calls with this probability, such as 0.1
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0.0,
        hide_default_value = true
    )]
    probability: f64,
    /// Seed of the random choice; the same seed chooses the same calls
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    seed: u64,
    #[command(flatten)]
    action: Effect,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Effect {
    /// Fail with this code, such as 5 or 0x80041001
    #[arg(long, value_parser = code)]
    code: Option<u32>,
    /// Fail the RPC with this gRPC status, such as Aborted or 10
    #[arg(long, value_name = "CODE", value_parser = status_code)]
    status: Option<u32>,
    /// Cut the connection of the client during the RPC
    #[arg(long)]
    cut: bool,
    /// Hold the call until the fault is cleared
    #[arg(long)]
    hold: bool,
    /// Delay the call by this time, such as 30s
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    delay: Option<Duration>,
    /// Crash the daemon, which then starts again. Requires --count
    #[arg(long, requires = "count")]
    crash: bool,
}

/// Parses the id of a fault. To the simulator, 0 means all.
fn fault(text: &str) -> Result<u64, &'static str> {
    quantity::number(text).and_then(|id| {
        if id == 0 {
            Err("the ids of faults begin with 1")
        } else {
            Ok(id)
        }
    })
}

/// Parses a code of gRPC: its name in either spelling, or its number.
fn status_code(text: &str) -> Result<u32, String> {
    let name = |code: u32| format!("{:?}", Code::from_i32(code.try_into().unwrap_or_default()));
    let plain = text.replace('_', "");
    let found =
        (1..=16).find(|code| name(*code).eq_ignore_ascii_case(&plain) || code.to_string() == text);
    found.ok_or_else(|| "a status is a code of gRPC such as Aborted, or its number".to_owned())
}

/// Parses a code of Windows, decimal or in hexadecimal with 0x.
fn code(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| {
        "a code is a number such as 5, or in hexadecimal such as 0x80041001".to_owned()
    })
}

impl Task {
    pub(super) async fn run(
        self,
        Simulator { mut simulation, .. }: Simulator,
    ) -> Result<Output, Error> {
        match self {
            Self::Inject(disturbance) => {
                let request = InjectFaultRequest {
                    fault: Some(disturbance.fault()),
                };
                let injected = simulation.inject_fault(request).await?.into_inner();
                Ok(Output::Response(json!({ "id": injected.id })))
            }
            Self::Faults => {
                let list = simulation
                    .list_faults(ListFaultsRequest {})
                    .await?
                    .into_inner();
                Ok(Output::Rows(
                    &FAULTS,
                    list.faults.into_iter().map(row).collect(),
                ))
            }
            Self::WaitFault { id, hits } => {
                let waited = simulation
                    .wait_for_fault(WaitForFaultRequest { id, hits })
                    .await?
                    .into_inner();
                Ok(Output::Response(json!({ "hits": waited.hits })))
            }
            Self::ClearFaults { id } => {
                simulation
                    .clear_faults(ClearFaultsRequest {
                        id: id.unwrap_or_default(),
                    })
                    .await?;
                Ok(Output::DONE)
            }
            Self::Primitives => {
                let list = simulation
                    .list_primitives(ListPrimitivesRequest {})
                    .await?
                    .into_inner();
                let row =
                    |called: Primitive| json!({ "primitive": called.name, "calls": called.calls });
                Ok(Output::Rows(
                    &PRIMITIVES,
                    list.primitives.into_iter().map(row).collect(),
                ))
            }
        }
    }
}

impl Disturbance {
    fn fault(self) -> Fault {
        let milliseconds = |delay: Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        let Effect {
            code,
            status,
            cut,
            hold,
            delay,
            crash,
        } = self.action;
        let status = status.map(|code| {
            Action::Status(RpcStatus {
                code,
                message: String::new(),
            })
        });
        let delay = delay.map(|delay| Action::DelayMilliseconds(milliseconds(delay)));
        let action = code.map(Action::Code).or(status).or(delay);
        let action = action
            .or(cut.then_some(Action::Cut(true)))
            .or(hold.then_some(Action::Hold(true)));
        Fault {
            rpc: self.rpc,
            probability: self.probability,
            seed: self.seed,
            primitive: self.primitive,
            object: self.object,
            disk_number: self.disk,
            skip: self.skip.unwrap_or_default(),
            count: self.count.unwrap_or_default(),
            after: self.after,
            action: action.or(Some(Action::Crash(crash))),
        }
    }
}

fn row(injected: InjectedFault) -> Value {
    let fault = injected.fault.unwrap_or_default();
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let what = match fault.action {
        Some(Action::Code(code @ 0x8000_0000..)) => format!("fail with 0x{code:08x}"),
        Some(Action::Code(code)) => format!("fail with {code}"),
        Some(Action::DelayMilliseconds(span)) => {
            format!("take {} longer", quantity::short_duration(span))
        }
        Some(Action::Status(RpcStatus { code, .. })) => {
            format!(
                "fail with {:?}",
                Code::from_i32(code.try_into().unwrap_or_default())
            )
        }
        Some(Action::Cut(_)) => "cut the connection".to_owned(),
        Some(Action::Hold(_)) => "hold".to_owned(),
        Some(Action::Crash(_)) | None => "crash".to_owned(),
    };
    json!({
        "id": injected.id,
        "rpc": some(fault.rpc),
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
    use super::{code, status_code};

    #[test]
    fn a_status_has_a_name_and_a_number() {
        for text in ["FailedPrecondition", "FAILED_PRECONDITION", "9"] {
            assert_eq!(status_code(text), Ok(9));
        }
        for text in ["", "0", "Ok", "17", "Failed"] {
            assert!(status_code(text).is_err(), "{text}");
        }
    }

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
