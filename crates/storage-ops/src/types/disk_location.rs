//! Where a disk is attached.

/// Where a disk is attached, as the storage provider reports it. Each part is a decimal number, or
/// empty if the location does not contain it. The location of an NVMe disk may end with its
/// adapter: `target` and `lun` are then empty, and a driver that looks for a LUN does not find the
/// disk.
///
/// Parsed from the property `Location` of `MSFT_Disk`, which `ListDiskLocations` in `ops/disk.rs`
/// queries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DiskLocation {
    /// The adapter's number.
    pub adapter: String,
    /// The PCI (or virtual) bus of the adapter.
    pub bus: String,
    /// The SCSI target.
    pub target: String,
    /// The SCSI logical unit.
    pub lun: String,
}

impl DiskLocation {
    /// Parses `Integrated : Adapter 3 : Port 0 : Target 0 : LUN 1`. Returns `None` for a disk that
    /// is not attached to an adapter, such as a mounted VHDX, whose location is the path of its
    /// file.
    pub fn parse(location: &str) -> Option<Self> {
        let parts: Vec<_> = location.split(':').map(str::trim).collect();
        if parts.len() < 5 || location.contains('\\') {
            return None;
        }
        let mut found = Self::default();
        for part in parts {
            let words: Vec<_> = part.split_whitespace().collect();
            let [name, value] = words[..] else { continue };
            if !value.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            match name {
                "Adapter" => found.adapter = value.into(),
                "Bus" => found.bus = value.into(),
                "Target" => found.target = value.into(),
                "LUN" => found.lun = value.into(),
                _ => {}
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::DiskLocation;

    #[test]
    fn contract_16_locations_are_parsed_as_the_provider_formats_them() {
        let location = |adapter: &str, bus: &str, target: &str, lun: &str| {
            Some(DiskLocation {
                adapter: adapter.into(),
                bus: bus.into(),
                target: target.into(),
                lun: lun.into(),
            })
        };
        for (text, expected) in [
            (
                "Integrated : Adapter 3 : Port 0 : Target 0 : LUN 1",
                location("3", "", "0", "1"),
            ),
            (
                "Integrated : Bus 0 : Device 63667 : Function 30747 : Adapter 1 : Port 0 : Target \
                 0 : LUN 1",
                location("1", "0", "0", "1"),
            ),
            (
                "PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN 0",
                location("0", "", "1", "0"),
            ),
            // An NVMe disk.
            (
                "Integrated : Bus 12606208 : Device 0 : Function 0 : Adapter 0",
                location("0", "12606208", "", ""),
            ),
            (r"C:\ProgramData\containerd\root\sandbox.vhdx", None),
            (r"C:\odd:a:b:c:d:e\sandbox.vhdx", None),
            ("Integrated : Adapter 3 : Port 0 : Target 0", None),
            ("", None),
        ] {
            assert_eq!(DiskLocation::parse(text), expected, "{text}");
        }
    }
}
