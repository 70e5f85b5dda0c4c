//! The recordings of disks: what they keep, what they hide, and what the nodes in
//! sim/csi-proxy-sim/clouds cite of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use faults::{Fault, FaultAction, Probed, When};
use os::{Namespace, Os, OsError, Time};
use os_sim::{Description, Sim};
use selftest::{Cloud, DisksOfNode, part_about_clouds, recorded_disks, wrong_citation};
use storage_ops::{Config, ListDiskIds, Node};

/// What a recording keeps of identifiers, besides classes of characters: form.rs.
const KEPT: [&str; 7] = ["6002248", "6000c29", "Google", "eui.", "vol", "AWS", "pvc-"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the file in sim/csi-proxy-sim/clouds, and its node. On Azure, the firmware's table has
/// the asset tag of Azure, which a simulated node can have only as its serial number.
fn cloud(file: &str) -> (String, Sim) {
    let text = fs::read_to_string(root().join("sim/csi-proxy-sim/clouds").join(file));
    let text = text.expect("the file of the cloud").replace("\r\n", "\n");
    let mut description = Description::from_toml(&text).expect("the description");
    if file == "azure.toml" {
        description.bios_serial = Some("7783-7084-3265-9085-8269-3286-77".to_owned());
    }
    (text, os_sim::node().description(&description).build())
}

fn record(os: &Arc<dyn Os>) -> DisksOfNode {
    let node = Node::new(Arc::clone(os), Config::default());
    let mut recording = recorded_disks(&node, &**os);
    recording.disks.retain(|disk| disk.number != 0);
    recording
}

#[test]
fn the_cloud_of_each_disk_is_known_from_the_recording() {
    for (file, expected) in [
        ("aws.toml", &[Some(Cloud::Aws); 2][..]),
        (
            "azure.toml",
            &[
                Some(Cloud::AzureScsi),
                Some(Cloud::AzureScsi),
                Some(Cloud::AzureScsi),
                Some(Cloud::AzureNvme),
                // The scratch space of a container is no disk of the cloud.
                None,
            ],
        ),
        ("gce.toml", &[Some(Cloud::Google); 2]),
        ("vsphere.toml", &[Some(Cloud::Vsphere); 2]),
    ] {
        let (_, sim) = cloud(file);
        let mut recording = record(&(sim.process() as Arc<dyn Os>));
        let clouds = |recording: &DisksOfNode| -> Vec<_> {
            let disks = recording.disks.iter();
            disks.map(|disk| Cloud::of(recording, disk)).collect()
        };
        assert_eq!(clouds(&recording), expected, "{file}");
        assert!(recording.errors.is_empty());
        // A node of Hyper-V has such disks too.
        recording.on_azure = false;
        let is_azure = file == "azure.toml";
        assert_eq!(clouds(&recording)[0].is_none(), is_azure, "{file}");
        for disk in &mut recording.disks {
            disk.msft_disk.as_mut().expect("MSFT_Disk").is_boot = Some(true);
        }
        assert!(clouds(&recording).iter().all(Option::is_none), "{file}");
    }
}

#[test]
fn a_recording_has_what_drivers_compare() {
    let (_, sim) = cloud("gce.toml");
    let recording = record(&(sim.process() as Arc<dyn Os>));
    let json = serde_json::to_string(&recording).expect("JSON");
    assert_eq!(
        serde_json::from_str::<DisksOfNode>(&json).expect("the recording"),
        recording
    );
    let name = "Google  pvc-hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
    let blanks = " ".repeat(20);
    for part in [
        format!(r#""ids":{{"page83":"{name}","serial_number":"{blanks}"}}"#),
        r#""location":{"adapter":"0","bus":"","target":"1","lun_id":"0"}"#.to_owned(),
        format!(
            r#"{{"bus":1,"vendor":"Google  ","product":"PersistentDisk  ","revision":"9.9 ","serial":"{blanks}"}}"#
        ),
        format!(r#"{{"code_set":2,"kind":1,"association":0,"form":"{name}"}}"#),
        r#""location":"PCI Slot 3 : Adapter 0 : Port 0 : Target 1 : LUN 0""#.to_owned(),
        // The provider shows the identifier in hexadecimal.
        format!(r#""unique_id_format":1,"unique_id":"{}""#, "h".repeat(96)),
    ] {
        assert!(json.contains(&part), "{part}\n{json}");
    }
}

#[test]
fn nothing_of_an_identifier_is_in_a_recording() {
    for file in ["aws.toml", "azure.toml", "gce.toml", "vsphere.toml"] {
        let (_, sim) = cloud(file);
        let os = sim.process();
        let mut originals = Vec::new();
        let ids = Node::new(sim.process(), Config::default()).run(&ListDiskIds);
        for ids in ids.expect("the identifiers").into_values() {
            originals.extend([ids.page83, ids.serial]);
        }
        let all = "SELECT * FROM MSFT_Disk";
        let disks = os.wmi().query(Namespace::Storage, all, Time(Duration::MAX));
        for disk in disks.expect("the disks") {
            let texts = ["UniqueId", "SerialNumber"];
            originals.extend(
                texts
                    .iter()
                    .filter_map(|text| Some(disk.text(text)?.to_owned())),
            );
            // A path names a user.
            let path = disk.text("Location").filter(|at| at.contains('\\'));
            originals.extend(path.map(str::to_owned));
        }
        let json = serde_json::to_string(&record(&(os as Arc<dyn Os>))).expect("JSON");
        let mut runs = 0;
        for original in &mut originals {
            for kept in KEPT {
                *original = original.replace(kept, "\0");
            }
            for run in original.as_bytes().windows(4) {
                // Zeros are no secret.
                if run.iter().all(u8::is_ascii_alphanumeric) && run != b"0000" {
                    let run = std::str::from_utf8(run).expect("ASCII");
                    assert!(!json.contains(run), "{run} of {original}\n{json}");
                    runs += 1;
                }
            }
        }
        assert!(runs > 50, "{file}: {runs}");
    }
}

#[test]
fn a_failed_call_is_recorded_and_nothing_is_changed() {
    let (_, sim) = cloud("vsphere.toml");
    let before = sim.node_file();
    let undisturbed = record(&(sim.process() as Arc<dyn Os>));
    let mut codes = 0;
    for call in 0.. {
        let fails = Fault::at(call, When::Before, FaultAction::Fail(OsError::CRC));
        let probed = Arc::new(Probed::new(sim.process(), fails));
        let recording = record(&(probed as Arc<dyn Os>));
        assert_eq!(recording.disks.len(), 2, "call {call}: {recording:?}");
        let json = serde_json::to_string(&recording).expect("JSON");
        codes += usize::from(json.contains("CRC"));
        if recording == undisturbed && call > 200 {
            break;
        }
    }
    assert!(codes >= 6, "{codes}");
    assert_eq!(sim.node_file(), before);
}

#[test]
fn the_page_names_the_clouds_that_are_missing() {
    let none = part_about_clouds(&[]);
    assert!(
        none.starts_with(
            "No report has a data disk of: Azure (SCSI), Azure (NVMe), AWS, Google Cloud, vSphere."
        ),
        "{none}"
    );
    let recordings = [cloud("azure.toml"), cloud("aws.toml")]
        .map(|(_, sim)| record(&(sim.process() as Arc<dyn Os>)));
    let part = part_about_clouds(&[("1.json", &recordings[0]), ("2.json", &recordings[1])]);
    for line in [
        "- The disks of Azure (NVMe) are recorded in [1.json](evidence/1.json).\n",
        "- The disks of AWS are recorded in [2.json](evidence/2.json).\n",
        "\nNo report has a data disk of: Google Cloud, vSphere.",
    ] {
        assert!(part.contains(line), "{line}\n{part}");
    }
}

#[test]
fn a_file_cites_a_recording_of_its_cloud_once_there_is_one() {
    let recording = record(&(cloud("azure.toml").1.process() as Arc<dyn Os>));
    let all = [("26100-7.json", &recording)];
    let wrong = |file, text, all: &[_]| wrong_citation(file, text, all).is_some();
    let none = "# Recording: none yet";
    let cites = "# Recording: docs/evidence/26100-7.json";
    assert!(!wrong("azure.toml", none, &[]));
    assert!(wrong("azure.toml", none, &all));
    assert!(wrong(
        "azure.toml",
        "# Recording: docs/evidence/1.json",
        &all
    ));
    assert!(wrong("azure.toml", "", &[]));
    assert!(wrong("azure.toml", cites, &[]));
    assert!(!wrong("azure.toml", cites, &all));
    assert!(!wrong("aws.toml", none, &all));
}

#[test]
fn the_files_of_clouds_cite_the_reports() {
    let reports = fs::read_dir(root().join("docs/evidence")).expect("docs/evidence");
    let reports = reports.map(|report| report.expect("a report").path());
    let recordings: Vec<(String, DisksOfNode)> = reports
        .filter(|report| report.extension().is_some_and(|is| is == "json"))
        .filter_map(|report| {
            let text = fs::read_to_string(&report).expect("a report");
            let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let disks = json.get("disks_of_node")?.clone();
            let name = report.file_name().expect("a name").to_string_lossy();
            Some((
                name.into_owned(),
                serde_json::from_value(disks).expect("a recording"),
            ))
        })
        .collect();
    let recordings: Vec<_> = recordings
        .iter()
        .map(|(name, disks)| (name.as_str(), disks))
        .collect();
    for file in ["aws.toml", "azure.toml", "gce.toml", "vsphere.toml"] {
        let wrong = wrong_citation(file, &cloud(file).0, &recordings);
        assert_eq!(wrong, None);
    }
}
