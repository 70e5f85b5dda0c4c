//! Compares what the storage provider reports about a disk with what the device reports.

use os::Instance;
use os::abi::DiskAttributes;

use crate::devices::disk::MIB;
use crate::devices::{Disk, TableStyle};
use crate::provider::instances::{GPT, MBR, RAW};

/// The properties of a disk that both the provider and the device report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reported {
    pub(crate) size: u64,
    pub(crate) is_offline: bool,
    pub(crate) is_read_only: bool,
    /// As `MSFT_Disk.PartitionStyle`.
    pub(crate) style: u32,
}

impl Reported {
    pub(crate) fn by_provider(instance: &Instance) -> Option<Self> {
        Some(Self {
            size: instance.u64("Size")?,
            is_offline: instance.bool("IsOffline")?,
            is_read_only: instance.bool("IsReadOnly")?,
            style: instance.u32("PartitionStyle")?,
        })
    }

    pub(crate) fn by_device(disk: &Disk) -> Option<Self> {
        // First, because it makes Windows read the disk again.
        let size = disk.size().ok()?;
        let attributes = disk.attributes().ok()?;
        Some(Self {
            size,
            is_offline: attributes & DiskAttributes::OFFLINE != 0,
            is_read_only: attributes & DiskAttributes::READ_ONLY != 0,
            style: match disk.partition_table().ok()?.style {
                TableStyle::Raw => RAW,
                TableStyle::BlankMbr | TableStyle::Mbr => MBR,
                TableStyle::Gpt => GPT,
            },
        })
    }
}

/// A property of a disk that the provider and the device report differently. The numbers are the
/// codes of `Fallback::ProviderCache`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    /// The provider or the device does not report all of them.
    Missing = 0,
    Size = 1,
    IsOffline = 2,
    IsReadOnly = 3,
    PartitionStyle = 4,
}

/// Returns the first property in which the provider's instance of a disk differs from what the
/// device reports.
pub(crate) fn difference(device: Option<Reported>, instance: &Instance) -> Option<Property> {
    let (Some(device), Some(provider)) = (device, Reported::by_provider(instance)) else {
        return Some(Property::Missing);
    };
    let differing = [
        (Property::Size, !is_same_size(device.size, provider.size)),
        (
            Property::IsOffline,
            device.is_offline != provider.is_offline,
        ),
        (
            Property::IsReadOnly,
            device.is_read_only != provider.is_read_only,
        ),
        (Property::PartitionStyle, device.style != provider.style),
    ];
    differing
        .into_iter()
        .find(|(_, differs)| *differs)
        .map(|(property, _)| property)
}

/// Returns whether the provider and the device mean the same size of a disk. Less than a mebibyte
/// cannot be used.
pub(crate) fn is_same_size(device: u64, provider: u64) -> bool {
    device.abs_diff(provider) < MIB
}
