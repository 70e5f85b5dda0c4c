//! Nodes, and what the checks find on them.

use std::sync::Arc;

use doctor::{
    Finding, ProviderComparison, Report, ServiceRegistration, Settings, State, compare, examine,
};
use faults::{Layer, Layered};
use os::abi::SecurityDescriptor;
use os::{Os, OsResult, U16Str, U16String};
use os_sim::Sim;
use storage_ops::{Config, NewSmbGlobalMapping, Node, SecretText, UncPath};

pub(crate) use crate::simulated_system::PROGRAM;
use crate::simulated_system::{SimulatedSystem, granting};

/// A node on which everything is as it should be: the service, a mounted volume, a link, and an SMB
/// server.
const HEALTHY: &str = r#"
bios_serial = "VMware-42"

[[disk]]
size = "10 GiB"
content = "partitioned"
file_system = "NTFS"
serial = "disk-serial"

[[smb_server]]
host = "server"
shares = [{ name = "share", guest = true }, { name = "other", guest = true }]

[[iscsi_portal]]
address = "10.0.0.10"

[[iscsi_target]]
iqn = "iqn.2026-01.example:target"
portals = [{ address = "10.0.0.10" }]
luns = [{ number = 0, size = 5368709120 }]

[[service]]
name = "csiproxy"
display_name = "CSI Proxy"
start_type = "automatic"
state = "running"

[[service]]
name = "LanmanWorkstation"
display_name = "Workstation"
start_type = "automatic"
state = "running"

[[service]]
name = "MSiSCSI"
display_name = "Microsoft iSCSI Initiator Service"
start_type = "automatic"
state = "running"

[[file]]
kind = "mount"
path = 'C:\var\lib\kubelet\pods\1\volumes\kubernetes.io~csi\pv\mount'
disk = 1

[[file]]
kind = "symlink"
path = 'C:\var\lib\kubelet\plugins\link'
target = 'C:\var\lib\kubelet\pods\1'
"#;

pub(crate) const MOUNT: &str = r"C:\var\lib\kubelet\pods\1\volumes\kubernetes.io~csi\pv\mount";

/// A node whose mount manager has every volume at this path too.
pub(crate) struct MountedAt(pub(crate) &'static str);

impl Layer for MountedAt {
    fn volume_paths(&self, node: &dyn Os, volume: &U16Str) -> OsResult<Vec<U16String>> {
        let mut paths = node.volume_paths(volume)?;
        paths.push(U16String::from_str(self.0));
        Ok(paths)
    }
}

/// Collects the texts of the findings.
fn collected(report: Report) -> Report {
    for finding in &report.findings {
        let Finding {
            check,
            seen,
            advice,
            ..
        } = finding;
        let advice = if advice.is_empty() {
            String::new()
        } else {
            format!("\n-> {advice}")
        };
        texts::seen!(format!("{check}: {seen}{advice}"));
    }
    report
}

/// Returns the access to a file that only administrators may change, and all access for further
/// accounts.
pub(crate) fn file_access(accounts: &[&str]) -> SecurityDescriptor {
    const FULL: u32 = 0x1f_01ff;
    granting(accounts, FULL)
}

/// A node with its administration, and what is to be examined.
pub(crate) struct Patient {
    pub(crate) sim: Sim,
    pub(crate) system: SimulatedSystem,
    pub(crate) settings: Settings,
}

impl Patient {
    pub(crate) fn healthy() -> Self {
        Self::changed(|text| text)
    }

    /// Returns a healthy node whose description is changed.
    pub(crate) fn changed(change: impl FnOnce(String) -> String) -> Self {
        let sim = Sim::from_toml(&change(HEALTHY.to_owned())).expect("a valid description");
        sim.external()
            .mkdir_all(r"C:\etc\kubernetes\logs")
            .expect("a folder");
        let pipes: Vec<String> = ["csi-proxy-disk-v1", "csi-proxy-volume-v1"]
            .map(str::to_owned)
            .into();
        let mut system = SimulatedSystem::serving(&pipes);
        let command_line =
            format!(r"{PROGRAM} -windows-service -log_file=C:\etc\kubernetes\logs\csi-proxy.log");
        system.service = Some(ServiceRegistration {
            command_line,
            account: None,
            restarts: Ok(true),
        });
        let settings = Settings {
            node: Config::default(),
            pipes,
            excluded_groups: None,
            excluded_pipes: Vec::new(),
            accounts: Vec::new(),
            service: "csiproxy".to_owned(),
            is_in_container: false,
            log_file: Some(r"C:\etc\kubernetes\logs\csi-proxy.log".to_owned()),
            seen_disks: Vec::new(),
            show_names: false,
        };
        let patient = Self {
            sim,
            system,
            settings,
        };
        patient.install(PROGRAM);
        patient
    }

    /// Creates a program and its folder.
    pub(crate) fn install(&self, program: &str) {
        let (folder, _) = program.rsplit_once('\\').expect("an absolute path");
        self.sim.external().mkdir_all(folder).expect("a folder");
        self.sim.external().write(program, []).expect("a file");
    }

    /// Returns a healthy node on which a text of its description is replaced.
    pub(crate) fn with(from: &str, to: &str) -> Self {
        Self::changed(|text| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        })
    }

    pub(crate) fn os(&self) -> Arc<dyn Os> {
        self.sim.process()
    }

    pub(crate) fn examine(&self) -> Report {
        collected(examine(&self.os(), &self.system, &self.settings))
    }

    /// Examines the node with `layer` around it.
    pub(crate) fn examine_through(&self, layer: impl Layer) -> Report {
        let os: Arc<dyn Os> = Arc::new(Layered::around(self.os(), layer));
        collected(examine(&os, &self.system, &self.settings))
    }

    /// Returns the findings that are not [`State::Ok`].
    pub(crate) fn complaints(&self) -> Vec<Finding> {
        self.examine()
            .findings
            .into_iter()
            .filter(|finding| finding.state != State::Ok)
            .collect()
    }

    /// Returns the only finding that is not [`State::Ok`].
    pub(crate) fn complaint(&self) -> Finding {
        let mut complaints = self.complaints();
        assert_eq!(complaints.len(), 1, "{complaints:#?}");
        complaints.remove(0)
    }

    pub(crate) fn compare(&self) -> ProviderComparison {
        compare(&self.os(), &self.settings.node, false)
    }

    /// Maps a share of the server.
    pub(crate) fn map(&self, share: &str) {
        let node = Node::new(self.os(), Config::default());
        let remote = UncPath::parse(share).expect("a share");
        let local = None;
        node.run(&NewSmbGlobalMapping {
            remote,
            local,
            user: None,
            password: SecretText::default(),
        })
        .expect("a mapping");
    }
}
