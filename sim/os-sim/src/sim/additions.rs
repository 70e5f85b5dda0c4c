//! Adding objects to a node while it runs.

use crate::description::{Description, DescriptionError, FileDescription};
use crate::iscsi::{Portal, PortalAddress};
use crate::sim::Sim;
use crate::state::State;

impl Description {
    /// Parses what is to be added to a running node: a node file without the keys of the node itself.
    pub fn addition_from_toml(text: &str) -> Result<Self, DescriptionError> {
        let description = Self::parse(text)?;
        let table: toml::Table = text.parse().unwrap_or_default();
        match ["bios_serial", "no_automount", "timing", "smb_mapping"].into_iter().find(|key| table.contains_key(*key))
        {
            None => Ok(description),
            Some(key) => Err(DescriptionError(format!("{key} cannot be added to a running node"))),
        }
    }
}

impl Sim {
    /// Adds the objects of a description to the node, all or none of them, and returns the numbers of its disks.
    ///
    /// A disk is plugged in. If disks are not `detected`, Windows shows them after the next rescan. The description's
    /// timing and BIOS serial number are ignored.
    pub fn add(&self, description: &Description, detected: bool) -> Result<Vec<u32>, DescriptionError> {
        self.with(|state| {
            let before = state.objects();
            let added = state.add(description, detected);
            if added.is_err() {
                state.restore(before);
            }
            added
        })
    }
}

impl State {
    fn add(&mut self, description: &Description, detected: bool) -> Result<Vec<u32>, DescriptionError> {
        self.check_new(description)?;
        let disks = description.disks.iter().map(|disk| self.attach(disk, detected)).collect::<Result<_, _>>()?;
        let (servers, targets) = (self.smb.servers.len(), self.iscsi.targets.len());
        self.services.services.extend_from_slice(&description.services);
        self.smb.servers.extend_from_slice(&description.smb_servers);
        self.make_share_trees(servers);
        self.iscsi.portals.extend_from_slice(&description.iscsi_portals);
        self.iscsi.targets.extend_from_slice(&description.iscsi_targets);
        self.assign_lun_ids(targets);
        description.files.iter().try_for_each(|file| self.add_described_file(file))?;
        Ok(disks)
    }

    /// Checks that the node has none of the objects that have a name.
    fn check_new(&self, description: &Description) -> Result<(), DescriptionError> {
        let same = |left: &str, right: &str| left.eq_ignore_ascii_case(right);
        let taken = |what: &str, name: &str| Err(DescriptionError(format!("the node already has the {what} {name}")));
        for service in &description.services {
            if self.services.services.iter().any(|known| same(&known.name, &service.name)) {
                return taken("service", &service.name);
            }
        }
        for server in &description.smb_servers {
            if self.smb.servers.iter().any(|known| same(&known.host, &server.host)) {
                return taken("SMB server", &server.host);
            }
        }
        for portal in &description.iscsi_portals {
            let is_it = |known: &Portal| same(&known.address, &portal.address);
            if self.iscsi.portals.iter().any(|known| is_it(known) && known.port == portal.port) {
                return taken("iSCSI portal", &format!("{}:{}", portal.address, portal.port));
            }
        }
        for target in &description.iscsi_targets {
            if self.iscsi.targets.iter().any(|known| known.collides_with(target)) {
                return taken("iSCSI target", &target.iqn);
            }
            let known = || self.iscsi.portals.iter().chain(&description.iscsi_portals);
            let is_known =
                |at: &PortalAddress| known().any(|portal| portal.address == at.address && portal.port == at.port);
            if let Some(portal) = target.portals.iter().find(|portal| !is_known(portal)) {
                let PortalAddress { address, port } = portal;
                return Err(DescriptionError(format!("no iSCSI portal has the address {address}, port {port}")));
            }
        }
        match description.files.iter().find(|file| matches!(file, FileDescription::Mount { .. })) {
            None => Ok(()),
            Some(mount) => Err(DescriptionError(format!(
                "cannot mount a volume at {} of a running node: use the RPC MountVolume",
                mount.path()
            ))),
        }
    }
}
