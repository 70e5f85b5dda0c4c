//! The serial number of the machine.

use os::Namespace;

use crate::devices::smbios;
use crate::error::OperationResult;
use crate::node::run::Run;
use crate::provider::wmi;
use crate::scheduling::PoolKind;
use crate::windows::Fallback;

/// Returns the serial number in the firmware's table or, if the table has none or cannot be read,
/// the one that WMI reports.
pub(crate) async fn serial_number(run: Run<'_>) -> OperationResult<String> {
    let first = smbios::read_serial(run.os());
    if let Ok(Some(serial)) = first {
        return Ok(serial);
    }
    run.enter(PoolKind::Wmi).await;
    if let Err(code) = first {
        run.windows()
            .fallbacks
            .record(Fallback::BiosSerialNumber, code);
    }
    let found = wmi::query(run, Namespace::CimV2, "SELECT SerialNumber FROM Win32_BIOS")?;
    Ok(found
        .iter()
        .find_map(|bios| bios.text("SerialNumber"))
        .unwrap_or_default()
        .to_owned())
}
