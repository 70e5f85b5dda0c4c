//! Finds the disk of the object of a call.

use crate::disks::Disk;
use crate::sim::Sim;
use crate::state::State;

impl Sim {
    /// Returns whether `object` is the disk `number`, a volume or partition on it, or a file on one
    /// of its volumes.
    ///
    /// `object` is the object of a primitive call: a path, or a WMI object path. Returns false for
    /// a WMI query.
    pub fn is_on_disk(&self, object: &str, number: u32) -> bool {
        self.with(|state| state.is_on_disk(&object.to_lowercase(), number))
    }
}

impl State {
    fn is_on_disk(&self, object: &str, number: u32) -> bool {
        let Some(disk) = self
            .device(number)
            .and_then(|device| self.disks.get(&device))
        else {
            return false;
        };
        let named = object.contains(&disk.instance)
            || object.ends_with(&format!(r"\physicaldrive{number}"));
        let is_of = |id| object.starts_with(&format!(r"{}\", Self::device_of(id).to_lowercase()));
        named
            || disk
                .volumes()
                .any(|volume| object.contains(&volume.id.to_string()) || is_of(volume.id))
            || self
                .disk_of_path(object)
                .is_some_and(|found| found.number == number)
    }

    /// Returns the disk with the volume that is mounted nearest above a path in lower case.
    fn disk_of_path(&self, path: &str) -> Option<&Disk> {
        let path = [r"\??\", r"\\?\"]
            .iter()
            .find_map(|prefix| path.strip_prefix(prefix))
            .unwrap_or(path);
        let is_below = |prefix: &String| {
            let rest = path.strip_prefix(&prefix.to_lowercase());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\\'))
        };
        let volumes = self.arrived_volumes().flat_map(|(disk, volume)| {
            let prefixes = self.dos_prefixes(volume.id).into_iter();
            prefixes.map(move |prefix| (disk, prefix))
        });
        let above = volumes.filter(|(_, prefix)| is_below(prefix));
        above
            .max_by_key(|(_, prefix)| prefix.len())
            .map(|(disk, _)| disk)
    }
}

#[cfg(test)]
mod tests {
    use crate::builder::node;
    use crate::state::State;

    #[test]
    fn an_object_is_on_the_disk_of_the_volume_mounted_nearest_above_it() {
        let mount = r"C:\var\lib\kubelet\mount";
        let sim = node()
            .disk(1 << 30)
            .partitioned()
            .formatted("NTFS")
            .mounted(mount)
            .build();
        let volume = sim.volume_on(1).expect("a volume").name();
        let system = sim.volume_on(0).expect("a volume").id;
        let by_device = format!(r"{}\var\lib\kubelet\mount\file", State::device_of(system));
        for (object, disk) in [
            (r"\??\C:\var\lib\kubelet\mount".to_owned(), 1),
            (r"\??\c:\VAR\lib\kubelet\mount\file".to_owned(), 1),
            (r"\??\C:\var\lib\kubelet\mounted".to_owned(), 0),
            (format!("{volume}file"), 1),
            // A link on the path of a device is not followed.
            (by_device, 0),
            (r"\??\PhysicalDrive1".to_owned(), 1),
            (r"\??\PhysicalDrive0".to_owned(), 0),
        ] {
            assert_eq!(
                [0, 1].map(|number| sim.is_on_disk(&object, number)),
                [disk == 0, disk == 1],
                "{object}"
            );
        }
        assert!(!sim.is_on_disk("SELECT * FROM MSFT_Disk WHERE Number = 1", 1));
    }
}
