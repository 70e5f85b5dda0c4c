//! The clouds whose disks a driver must find, and which of them the reports have.

use std::fmt::Write as _;

use os::abi::BusType;

use crate::{DisksOfNode, RecordedDisk};

/// A cloud, or a kind of disks of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// Azure, SCSI.
    AzureScsi,
    /// Azure, NVMe.
    AzureNvme,
    /// AWS.
    Aws,
    /// Google Cloud.
    Google,
    /// vSphere.
    Vsphere,
}

impl Cloud {
    /// All clouds.
    pub const ALL: [Self; 5] = [
        Self::AzureScsi,
        Self::AzureNvme,
        Self::Aws,
        Self::Google,
        Self::Vsphere,
    ];

    /// Returns the name that a page shows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AzureScsi => "Azure (SCSI)",
            Self::AzureNvme => "Azure (NVMe)",
            Self::Aws => "AWS",
            Self::Google => "Google Cloud",
            Self::Vsphere => "vSphere",
        }
    }

    /// Returns the file in sim/csi-proxy-sim/clouds with disks of the cloud.
    pub const fn file(self) -> &'static str {
        match self {
            Self::AzureScsi | Self::AzureNvme => "azure.toml",
            Self::Aws => "aws.toml",
            Self::Google => "gce.toml",
            Self::Vsphere => "vsphere.toml",
        }
    }

    /// Returns the cloud that a disk is of, by vendor and product. The disk from which Windows was
    /// started says nothing about what drivers find.
    pub fn of(node: &DisksOfNode, disk: &RecordedDisk) -> Option<Self> {
        let provider = disk.msft_disk.clone().unwrap_or_default();
        let device = disk.device.as_ref().ok();
        if provider.is_boot == Some(true) {
            return None;
        }
        let names = [
            device.and_then(|device| device.vendor.as_ref()),
            device.and_then(|device| device.product.as_ref()),
            provider.friendly_name.as_ref(),
            provider.model.as_ref(),
        ];
        let names: Vec<_> = names.into_iter().flatten().map(String::as_str).collect();
        let names = names.join(" ").to_lowercase();
        let has = |some: &[&str]| some.iter().any(|name| names.contains(name));
        let bus = device.map(|device| BusType(device.bus));
        if has(&["amazon", "aws pvdisk", "aws      pvdisk"]) {
            Some(Self::Aws)
        } else if has(&["google", "persistentdisk", "nvme_card"]) {
            Some(Self::Google)
        } else if has(&["vmware"]) {
            Some(Self::Vsphere)
        } else if !node.on_azure {
            None
        } else if has(&["msft nvme", "microsoft nvme"]) {
            Some(Self::AzureNvme)
        } else if has(&["msft"]) && bus != Some(BusType::FILE_BACKED_VIRTUAL) {
            Some(Self::AzureScsi)
        } else {
            None
        }
    }
}

/// Returns the reports that have a disk of a cloud.
fn reports_of<'a>(cloud: Cloud, all: &[(&'a str, &DisksOfNode)]) -> Vec<&'a str> {
    let has_disk = |node: &DisksOfNode| {
        let mut disks = node.disks.iter();
        disks.any(|disk| Cloud::of(node, disk) == Some(cloud))
    };
    all.iter()
        .filter(|(_, node)| has_disk(node))
        .map(|(report, _)| *report)
        .collect()
}

/// Returns the part of docs/windows.md about the clouds whose disks the reports have. A report is
/// the name of its file in docs/evidence.
pub fn part_about_clouds(all: &[(&str, &DisksOfNode)]) -> String {
    let of = |cloud| reports_of(cloud, all);
    let (recorded, missing): (Vec<Cloud>, _) = Cloud::ALL
        .into_iter()
        .partition(|cloud| !of(*cloud).is_empty());
    let mut part = String::new();
    for cloud in recorded {
        let reports: Vec<_> = of(cloud)
            .iter()
            .map(|report| format!("[{report}](evidence/{report})"))
            .collect();
        let _ = writeln!(
            part,
            "- The disks of {} are recorded in {}.",
            cloud.name(),
            reports.join(", ")
        );
    }
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|cloud| cloud.name()).collect();
        let _ = writeln!(
            part,
            "{}No report has a data disk of: {}. A report from there shows whether drivers find \
             their disks.",
            if part.is_empty() { "" } else { "\n" },
            names.join(", ")
        );
    }
    part
}

/// Returns what is wrong with the line `# Recording: ` of a file in sim/csi-proxy-sim/clouds: for
/// each cloud with disks in the file, it names a report that has such disks; it is `none yet` if
/// there is no report.
pub fn wrong_citation(file: &str, text: &str, all: &[(&str, &DisksOfNode)]) -> Option<String> {
    let cited: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# Recording: "))
        .collect();
    let [cited] = cited[..] else {
        return Some(format!(
            "{file} has no line or several lines \"# Recording: \""
        ));
    };
    let recorded: Vec<_> = Cloud::ALL
        .into_iter()
        .filter(|cloud| cloud.file() == file)
        .map(|cloud| (cloud, reports_of(cloud, all)))
        .filter(|(_, reports)| !reports.is_empty())
        .collect();
    if recorded.is_empty() {
        return (cited != "none yet")
            .then(|| format!("{file} cites {cited}, but no report has such a disk: none yet"));
    }
    let words: Vec<_> = cited.split([' ', ',']).collect();
    let lacks = recorded.iter().find(|(_, reports)| {
        !reports
            .iter()
            .any(|report| words.contains(&&*format!("docs/evidence/{report}")))
    });
    lacks.map(|(cloud, reports)| {
        format!(
            "{file} does not cite docs/evidence/{}, which has disks of {}",
            reports[0],
            cloud.name()
        )
    })
}
