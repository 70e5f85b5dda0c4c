//! The calls of the disk group.

use tonic::Code;

use super::{Expected, NOT_FOUND};
use crate::messages::Payload;
use crate::reference_model::{Layout, Model, Volume, size_of};

impl Model {
    pub(super) fn list_disk_locations(&self) -> Expected {
        let shown = self.disks.iter().filter(|(_, disk)| disk.enumerated);
        Expected::Locations(
            shown
                .filter_map(|(number, disk)| Some((*number, disk.location.clone()?)))
                .collect(),
        )
    }

    pub(super) fn list_disk_ids(&self) -> Expected {
        let shown = self.disks.iter().filter(|(_, disk)| disk.enumerated);
        let ids = shown.map(|(number, disk)| {
            (
                *number,
                disk.ids
                    .as_ref()
                    .map(|(page, serial)| [(*page).to_owned(), serial.clone()]),
            )
        });
        Expected::Ids(ids.collect())
    }

    pub(super) fn get_disk_number_by_name(&self, name: &str) -> Expected {
        let has_name = |page: &str| page == name || page.split_whitespace().last() == Some(name);
        let shown = self.disks.iter().filter(|(_, disk)| disk.enumerated);
        let mut found =
            shown.filter(|(_, disk)| disk.ids.as_ref().is_some_and(|(page, _)| has_name(page)));
        match (found.next(), found.next()) {
            (Some((number, _)), None) => Expected::Returns(Payload::Number((*number).into())),
            (None, _) => Expected::fails(&[Code::NotFound]),
            _ => Expected::fails(&[Code::FailedPrecondition]),
        }
    }

    pub(super) fn get_disk_stats(&self, number: u32) -> Expected {
        match self.disk(number) {
            Some(disk) => Expected::Returns(Payload::Number(disk.size)),
            None => Expected::fails(NOT_FOUND),
        }
    }

    pub(super) fn get_disk_state(&self, number: u32) -> Expected {
        match self.disk(number) {
            Some(disk) => Expected::bool(disk.online),
            None => Expected::fails(NOT_FOUND),
        }
    }

    pub(super) fn set_disk_state(&mut self, number: u32, online: bool) -> Expected {
        if self.disk(number).is_none() {
            return Expected::fails(NOT_FOUND);
        }
        if number == 0 && !online {
            return Expected::fails(&[Code::PermissionDenied, Code::FailedPrecondition]);
        }
        let disk = self.disks.get_mut(&number).expect("the disk exists");
        disk.online = online;
        disk.read_only &= !online;
        Expected::nothing()
    }

    pub(super) fn partition_disk(&mut self, number: u32) -> Expected {
        if self.disk(number).is_none() {
            return Expected::fails(NOT_FOUND);
        }
        let size_generation = self.next_size_generation();
        let may_be_second_path = self.has_identifier_of_another(number);
        let disk = self.disks.get_mut(&number).expect("the disk exists");
        if disk.volume.is_some() && !may_be_second_path {
            (disk.online, disk.read_only) = (true, false);
        }
        if matches!(disk.layout, Layout::Raw | Layout::Reserved) {
            // An existing table ends where the disk ended when it was created; only resizing the
            // volume extends it.
            let extent = if disk.layout == Layout::Raw {
                disk.size
            } else {
                size_of(disk.key)
            };
            (disk.online, disk.read_only, disk.layout) = (true, false, Layout::Gpt);
            disk.volume = Some(Volume {
                extent,
                size_generation,
                file_system: None,
            });
        }
        Expected::nothing()
    }

    /// Whether another disk has the page 83 identifier of a disk or, without one, its serial number.
    fn has_identifier_of_another(&self, number: u32) -> bool {
        let identifier = |number: u32| {
            let (page, serial) = self.disk(number)?.ids.as_ref()?;
            Some(if page.is_empty() {
                serial.as_str()
            } else {
                page
            })
        };
        let own = identifier(number);
        let mut others = self.disks.keys().filter(|other| **other != number);
        own.is_some() && others.any(|other| identifier(*other) == own)
    }

    pub(super) fn rescan(&mut self) -> Expected {
        self.disks
            .values_mut()
            .for_each(|disk| disk.enumerated = true);
        Expected::nothing()
    }

    pub(super) fn list_volumes_on_disk(&self, number: u32, part: u32) -> Expected {
        let Some(disk) = self.disk(number) else {
            return Expected::fails(NOT_FOUND);
        };
        // With GPT the reserved partition is the first one.
        let own = if disk.layout == Layout::Mbr { 1 } else { 2 };
        if disk.volume.is_none() && part == 0 {
            Expected::Volumes(Vec::new())
        } else if disk.online && disk.volume.is_some() && (part == 0 || part == own) {
            Expected::Volumes(vec![disk.key])
        } else {
            Expected::fails(&[Code::NotFound, Code::FailedPrecondition])
        }
    }
}
