//! Converts the fault of a request to the fault that disturbs calls, and refuses one that could
//! never happen.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::GROUP_VERSIONS;
use faults::{Call, Fault, FaultAction, PRIMITIVES, When, matches};
use os::OsError;
use os::abi::ControlCode;
use os_sim::Sim;
use tonic::{Code, Status};

use crate::control_api::fault::Action;
use crate::control_api::{self, RpcStatus};

/// The second words of the primitives that have some, except those of `control` and `wmi`.
const SECOND_WORDS: [(&str, &[&str]); 4] = [
    ("query", &["Basic", "AttributeTag", "Id"]),
    ("set", &["Basic", "Disposition", "DispositionEx"]),
    ("query_fs", &["Attribute", "FullSize"]),
    (
        "service",
        &["config", "state", "start", "stop", "active_dependents"],
    ),
];

/// Returns the fault that is requested, for the daemon on `sim`. What happens to an RPC is in the
/// request alone.
pub(super) fn fault(request: &control_api::Fault, sim: &Sim) -> Result<Fault, Status> {
    check_call(request, sim).map_err(Status::invalid_argument)?;
    if let Some(disk) = request.disk_number.filter(|disk| !has_disk(sim, *disk)) {
        return Err(Status::not_found(format!("no disk has the number {disk}")));
    }
    let action = action(request).map_err(Status::invalid_argument)?;
    let when = if request.after {
        When::After
    } else {
        When::Before
    };
    let count = if request.count == 0 {
        u64::MAX
    } else {
        request.count
    };
    Ok(Fault::some(request.skip, count, when, action).among(condition(request, sim)))
}

fn action(request: &control_api::Fault) -> Result<FaultAction, &'static str> {
    let is_of_rpc = !request.rpc.is_empty();
    Ok(match request.action {
        None => {
            return Err(
                "what happens to the calls is missing: a code, a status, a delay, a cut, a hold or \
                 a crash",
            );
        }
        Some(Action::Code(_)) if is_of_rpc => {
            return Err("an RPC fails with a status; codes are for primitives");
        }
        Some(Action::Status(_) | Action::Cut(_)) if !is_of_rpc => {
            return Err("a status or a cut needs an RPC");
        }
        Some(Action::Code(0)) => return Err("0 is the code of success: give that of an error"),
        Some(Action::Status(RpcStatus { code, .. })) if !(1..=16).contains(&code) => {
            return Err("the codes of gRPC that are errors are 1 to 16");
        }
        Some(Action::DelayMilliseconds(0)) => return Err("the delay must be more than zero"),
        Some(Action::Crash(false) | Action::Cut(false) | Action::Hold(false)) => {
            return Err("crash, cut and hold must be true, or left out");
        }
        Some(Action::Crash(true)) if request.count == 0 => {
            return Err("a crash needs a count, or the daemon would crash forever");
        }
        Some(Action::Code(code)) => FaultAction::Fail(OsError(code)),
        Some(Action::DelayMilliseconds(span)) => FaultAction::Delay(Duration::from_millis(span)),
        Some(Action::Hold(true)) => FaultAction::Delay(Duration::MAX),
        Some(Action::Crash(true)) => FaultAction::Die,
        Some(Action::Status(_) | Action::Cut(true)) => FaultAction::Go,
    })
}

fn condition(
    request: &control_api::Fault,
    sim: &Sim,
) -> impl Fn(&Call) -> bool + Send + Sync + 'static {
    let (rpc, primitive, object) = (
        request.rpc.clone(),
        request.primitive.clone(),
        request.object.to_lowercase(),
    );
    let (disk, sim) = (request.disk_number, sim.clone());
    let (probability, seed, number) = (request.probability, request.seed, AtomicU64::new(0));
    move |call| {
        let is_named = if rpc.is_empty() {
            matches(&primitive, &call.primitive)
        } else {
            is_rpc(&rpc, &call.primitive)
        };
        is_named
            && call.object.to_lowercase().contains(&object)
            && disk.is_none_or(|disk| sim.is_on_disk(&call.object, disk))
            && (probability == 0.0
                || random(seed, number.fetch_add(1, Ordering::Relaxed)) < probability)
    }
}

/// Returns whether a pattern names an RPC, such as `volume/v1/MountVolume`, with its version or
/// without it.
fn is_rpc(pattern: &str, name: &str) -> bool {
    let mut words = name.split('/');
    let short = [words.next(), words.nth(1)]
        .map(Option::unwrap_or_default)
        .join("/");
    matches(pattern, name) || matches(pattern, &short)
}

/// Returns number `index` of a sequence between 0 and 1 that looks random: `SplitMix64`.
fn random(seed: u64, index: u64) -> f64 {
    let mut bits = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    f64::from(u32::try_from((bits ^ bits >> 31) >> 32).unwrap_or(u32::MAX)) / 2f64.powi(32)
}

fn has_disk(sim: &Sim, number: u32) -> bool {
    let attached = sim.disks().into_iter().chain(sim.undetected_disks());
    attached
        .chain(sim.unplugged_disks().into_values())
        .any(|disk| disk.number == number)
}

/// Refuses a call that is never made: its fault would never happen, and a test would pass although
/// nothing was tested.
fn check_call(request: &control_api::Fault, sim: &Sim) -> Result<(), String> {
    let control_api::Fault {
        rpc,
        primitive,
        object,
        disk_number,
        probability,
        ..
    } = request;
    if !(0.0..=1.0).contains(probability) {
        return Err("the probability must be between 0 and 1".to_owned());
    }
    if rpc.is_empty() {
        check_primitive(primitive)?;
    } else {
        if !primitive.is_empty() || disk_number.is_some() {
            return Err(
                "a fault of an RPC has neither a primitive nor a disk: give a part of the request \
                 as object"
                    .to_owned(),
            );
        }
        let names = GROUP_VERSIONS
            .iter()
            .flat_map(|row| row.rpcs.iter().map(move |known| (row, known.name)));
        let mut names =
            names.map(|(row, name)| format!("{}/{}/{name}", row.group.name(), row.version));
        if !names.any(|name| is_rpc(rpc, &name)) {
            return Err(format!(
                "no RPC is called {rpc:?}: write volume/MountVolume or volume/v1/MountVolume"
            ));
        }
    }
    let is_of_service = primitive.starts_with("service") || primitive == "open_service";
    let is_part = |name: &str| name.to_lowercase().contains(&object.to_lowercase());
    if is_of_service && !sim.service_names().iter().any(|name| is_part(name)) {
        return Err(format!("no service of the node is called {object:?}"));
    }
    Ok(())
}

fn check_primitive(pattern: &str) -> Result<(), String> {
    let (first, second) = pattern.split_once(' ').unwrap_or((pattern, "*"));
    if !pattern.is_empty() && !PRIMITIVES.iter().any(|word| matches(first, word)) {
        let words = PRIMITIVES.join(", ");
        return Err(format!(
            "no primitive is called {pattern:?}: the first word must be one of {words}"
        ));
    }
    if second == "*" {
        return Ok(());
    }
    let is_known = match first {
        "control" => ControlCode::ALL
            .iter()
            .any(|(name, _)| matches(second, name)),
        "wmi" => {
            second == "query"
                || os_sim::wmi_methods().any(|method| matches(second, &format!("call {method}")))
        }
        _ => {
            let words = SECOND_WORDS.iter().find(|(word, _)| *word == first);
            words.is_some_and(|(_, words)| words.iter().any(|word| matches(second, word)))
        }
    };
    is_known.then_some(()).ok_or_else(|| {
        format!(
            "no primitive is called {pattern:?}: `csi-proxy-sim ctl primitives` lists those that \
             were called"
        )
    })
}

/// Returns the status that an RPC fails with.
pub(crate) fn status(requested: &RpcStatus) -> Status {
    let code = Code::from_i32(requested.code.try_into().unwrap_or_default());
    let default = || format!("csi-proxy-sim was told to fail with {code:?}");
    Status::new(
        code,
        if requested.message.is_empty() {
            default()
        } else {
            requested.message.clone()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::{check_primitive, is_rpc, random};

    #[test]
    fn a_name_that_no_primitive_has_is_refused() {
        for known in [
            "",
            "*",
            "open",
            "open_*",
            "control *",
            "control DISK_GET_LENGTH_INFO",
            "query Id",
            "service start",
            "wmi *",
            "wmi query",
            "wmi call MSFT_iSCSI*",
            "wmi call MSFT_Volume.Format",
        ] {
            assert_eq!(check_primitive(known), Ok(()), "{known}");
        }
        for unknown in [
            "Open",
            "opne*",
            "format",
            "FormatVolume",
            "wmicall MSFT_Volume.Format",
        ] {
            assert!(
                check_primitive(unknown)
                    .expect_err(unknown)
                    .contains("open_child"),
                "{unknown}"
            );
        }
        for unknown in [
            "wmi call MSFT_Volume.Formatt",
            "wmi call MSFT_Volume.Formatt*",
            "wmi call MSFT_Volume",
            "control DISK_GET",
            "query Name",
            "open x",
        ] {
            assert!(
                check_primitive(unknown)
                    .expect_err(unknown)
                    .contains("ctl primitives"),
                "{unknown}"
            );
        }
    }

    #[test]
    fn an_rpc_is_named_with_its_version_or_without() {
        for pattern in [
            "volume/MountVolume",
            "volume/v1/MountVolume",
            "volume/*",
            "*",
        ] {
            assert!(is_rpc(pattern, "volume/v1/MountVolume"), "{pattern}");
        }
        for pattern in [
            "MountVolume",
            "volume/v2/MountVolume",
            "volume/Mount",
            "disk/*",
        ] {
            assert!(!is_rpc(pattern, "volume/v1/MountVolume"), "{pattern}");
        }
    }

    #[test]
    fn a_probability_is_kept_on_average_and_by_each_seed() {
        for seed in 0..10 {
            let hits = (0..1000)
                .filter(|index| random(seed, *index) < 0.25)
                .count();
            assert!((200..300).contains(&hits), "{hits}");
        }
    }
}
