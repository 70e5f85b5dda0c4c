//! Adding objects to a node while it runs.

use std::collections::BTreeSet;

use crate::description::{Description, DescriptionError, FileDescription};
use crate::sim::Sim;
use crate::state::State;

impl Description {
    /// Parses a node file whose objects are to be added to a running node. Refuses the keys of the
    /// node itself.
    pub fn addition_from_toml(text: &str) -> Result<Self, DescriptionError> {
        let description = Self::parse(text)?;
        let table: toml::Table = text.parse().unwrap_or_default();
        match ["bios_serial", "no_automount", "timing", "smb_mapping"]
            .into_iter()
            .find(|key| table.contains_key(*key))
        {
            None => Ok(description),
            Some(key) => Err(DescriptionError(format!(
                "{key} cannot be added to a running node"
            ))),
        }
    }

    /// Returns the names that no two objects of a node may share, regardless of case.
    fn names(&self) -> Vec<String> {
        let services = self
            .services
            .iter()
            .map(|service| format!("service {}", service.name));
        let servers = self
            .smb_servers
            .iter()
            .map(|server| format!("SMB server {}", server.host));
        let portals = self
            .iscsi_portals
            .iter()
            .map(|at| format!("iSCSI portal {}:{}", at.address, at.port));
        let targets = self.iscsi_targets.iter().flat_map(|target| {
            target
                .portals
                .iter()
                .map(|at| format!("iSCSI target {} at {}:{}", target.iqn, at.address, at.port))
        });
        services
            .chain(servers)
            .chain(portals)
            .chain(targets)
            .collect()
    }
}

impl Sim {
    /// Adds the objects of a description to the node and returns the numbers of the new disks. Adds
    /// nothing if it fails.
    ///
    /// Plugs each disk in. If disks are not `detected`, Windows shows them after the next rescan.
    /// Ignores the timing and the BIOS serial number of the description.
    pub fn add(
        &self,
        description: &Description,
        detected: bool,
    ) -> Result<Vec<u32>, DescriptionError> {
        self.with(|state| {
            let before = state.clone();
            let added = state.add(description, detected);
            if added.is_err() {
                *state = before;
            }
            added
        })
    }
}

impl State {
    fn add(
        &mut self,
        description: &Description,
        detected: bool,
    ) -> Result<Vec<u32>, DescriptionError> {
        self.check_new(description)?;
        let disks = description
            .disks
            .iter()
            .map(|disk| self.attach(disk, detected))
            .collect::<Result<_, _>>()?;
        let servers = self.smb.servers.len();
        let targets = self.iscsi.targets.len();
        self.services
            .services
            .extend_from_slice(&description.services);
        self.smb.servers.extend_from_slice(&description.smb_servers);
        self.make_share_trees(servers);
        self.iscsi
            .portals
            .extend_from_slice(&description.iscsi_portals);
        self.iscsi
            .targets
            .extend_from_slice(&description.iscsi_targets);
        self.assign_lun_ids(targets);
        description
            .files
            .iter()
            .try_for_each(|file| self.add_described_file(file))?;
        Ok(disks)
    }

    /// Checks that the node does not have an object of the same name, that it has the portals of
    /// new targets, and that no volume is to be mounted.
    fn check_new(&self, description: &Description) -> Result<(), DescriptionError> {
        let known = Description {
            services: self.services.services.clone(),
            smb_servers: self.smb.servers.clone(),
            iscsi_portals: self.iscsi.portals.clone(),
            iscsi_targets: self.iscsi.targets.clone(),
            ..Description::default()
        };
        let names: BTreeSet<String> = known
            .names()
            .iter()
            .map(|name| name.to_lowercase())
            .collect();
        if let Some(name) = description
            .names()
            .iter()
            .find(|name| names.contains(&name.to_lowercase()))
        {
            return Err(DescriptionError(format!("the node already has the {name}")));
        }
        let targets = Description {
            iscsi_portals: [known.iscsi_portals, description.iscsi_portals.clone()].concat(),
            iscsi_targets: description.iscsi_targets.clone(),
            ..Description::default()
        };
        targets.check_portals("")?;
        match description
            .files
            .iter()
            .find(|file| matches!(file, FileDescription::Mount { .. }))
        {
            None => Ok(()),
            Some(mount) => Err(DescriptionError(format!(
                "cannot mount a volume at {} of a running node: use the RPC MountVolume",
                mount.path()
            ))),
        }
    }
}
