//! Converts the fault of a request to the fault that disturbs calls.

use std::time::Duration;

use crate::control_api::fault::Action;
use faults::{Call, Fault, FaultAction, PRIMITIVES, When, matches};
use os::OsError;
use os_sim::Sim;
use tonic::Status;

/// Returns the fault that is requested, for the daemon on `sim`.
pub(super) fn fault(request: &crate::control_api::Fault, sim: &Sim) -> Result<Fault, Status> {
    check_primitive(&request.primitive)?;
    let action = match request.action {
        None => {
            return Err(Status::invalid_argument("what happens to the calls is missing: a code, a delay or a crash"));
        }
        Some(Action::Code(0)) => {
            return Err(Status::invalid_argument("0 is the code of success: give that of an error"));
        }
        Some(Action::Code(code)) => FaultAction::Fail(OsError(code)),
        Some(Action::DelayMilliseconds(0)) => return Err(Status::invalid_argument("the delay must be more than zero")),
        Some(Action::DelayMilliseconds(span)) => FaultAction::Delay(Duration::from_millis(span)),
        Some(Action::Crash(false)) => return Err(Status::invalid_argument("crash must be true, or left out")),
        Some(Action::Crash(true)) if request.count == 0 => {
            return Err(Status::invalid_argument("a crash needs a count, or the daemon would crash forever"));
        }
        Some(Action::Crash(true)) => FaultAction::Die,
    };
    let when = if request.after { When::After } else { When::Before };
    let count = if request.count == 0 { u64::MAX } else { request.count };
    Ok(Fault::some(request.skip, count, when, action).among(condition(request, sim)))
}

fn condition(request: &crate::control_api::Fault, sim: &Sim) -> impl Fn(&Call) -> bool + Send + Sync + 'static {
    let (primitive, object) = (request.primitive.clone(), request.object.to_lowercase());
    let (disk, sim) = (request.disk_number, sim.clone());
    move |call| {
        matches(&primitive, &call.primitive)
            && call.object.to_lowercase().contains(&object)
            && disk.is_none_or(|disk| sim.is_on_disk(&call.object, disk))
    }
}

/// Refuses a name that no primitive begins with: its fault would never happen.
fn check_primitive(pattern: &str) -> Result<(), Status> {
    let is_known = match (pattern.split_once(' '), pattern.strip_suffix('*')) {
        (Some((word, _)), _) => PRIMITIVES.contains(&word),
        (None, Some(beginning)) => PRIMITIVES.iter().any(|word| word.starts_with(beginning)),
        (None, None) => pattern.is_empty() || PRIMITIVES.contains(&pattern),
    };
    if is_known {
        return Ok(());
    }
    let words = PRIMITIVES.join(", ");
    Err(Status::invalid_argument(format!("no primitive is called {pattern:?}: the first word must be one of {words}")))
}

#[cfg(test)]
mod tests {
    use super::check_primitive;

    #[test]
    fn a_name_that_no_primitive_has_is_refused() {
        for known in ["", "*", "open", "open_*", "control DISK_GET_LENGTH_INFO", "wmi *", "wmi call MSFT_Volume.Format"]
        {
            assert!(check_primitive(known).is_ok(), "{known}");
        }
        for unknown in ["Open", "opne*", "format", "FormatVolume", "wmicall MSFT_Volume.Format"] {
            let status = check_primitive(unknown).expect_err(unknown);
            assert!(status.message().contains("open_child"), "{status}");
        }
    }
}
