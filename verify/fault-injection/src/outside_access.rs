//! A layer that records calls on objects outside kubelet's directory, and mounts volumes there if an
//! attacker leads it there.
//!
//! An object is identified by the name of its volume and its path on that volume. The path by which
//! it was opened does not identify it: a volume can have many paths, and a link can lead anywhere.

use std::sync::{Arc, Mutex};

use faults::Layer;
use os::abi::ControlCode;
use os::{
    Access, Disposition, FileInfo, Handle, NtPath, Open, Options, Os, OsResult, PathForm, U16Str,
    U16String,
};
use os_sim::{Sim, VolumeView};

use crate::scenarios::nested::MOVED;
use crate::scenarios::{KUBELET, volume};

/// Records the calls on objects outside, one line each.
#[derive(Clone)]
pub struct OutsideAccess {
    sim: Sim,
    recorded: Arc<Mutex<Vec<String>>>,
    /// The paths at which a volume was mounted through a link. The operation has to unmount it.
    mounted: Arc<Mutex<Vec<U16String>>>,
    /// The directories that are inside, in lower case.
    inside: Arc<Vec<String>>,
}

impl OutsideAccess {
    /// Starts without records. Kubelet's directory, the directory to which its `pods` may have been
    /// moved, and the volumes mounted at `mounted` are inside.
    pub fn on(sim: &Sim, mounted: Option<&str>) -> Self {
        let on_drive = |path: &str| {
            format!(
                "{}{}",
                volume(sim, 0),
                path.strip_prefix(r"C:\").unwrap_or_default()
            )
        };
        let mut inside = vec![on_drive(KUBELET), on_drive(MOVED)];
        let at = mounted.map(|path| format!(r"{path}\").to_lowercase());
        let is_mounted = |path: &String| Some(path.to_lowercase()) == at;
        inside.extend(
            sim.all_volumes()
                .iter()
                .filter(|volume| volume.paths.iter().any(is_mounted))
                .map(VolumeView::name),
        );
        Self {
            sim: sim.clone(),
            recorded: Arc::default(),
            mounted: Arc::default(),
            inside: Arc::new(inside.iter().map(|path| path.to_lowercase()).collect()),
        }
    }

    /// Takes the records so far.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *os::lock(&self.recorded))
    }

    /// Records that `what` was done to the object of `handle`, if the object is outside.
    fn record(&self, what: &str, handle: &dyn Handle) {
        if let Some(path) = self.outside_path(handle) {
            self.push(format!("{what} {path}, which is outside"));
        }
    }

    /// Returns whether the object of `handle` is inside.
    fn is_inside(&self, handle: &dyn Handle) -> bool {
        self.outside_path(handle).is_none()
    }

    /// Returns the path of the object of `handle`, if it is outside.
    fn outside_path(&self, handle: &dyn Handle) -> Option<String> {
        // A disk, a share or a deleted file has no path on a volume and is not checked.
        let path = handle
            .final_path(PathForm::VolumeGuid)
            .ok()?
            .to_string_lossy();
        let is_inside = self
            .inside
            .iter()
            .any(|inside| is_inside(&path.to_lowercase(), inside));
        (!is_inside && !path.contains(r"}\$Extend\$Deleted\")).then_some(path)
    }

    /// Records that Windows was called to do `what` at a path, if the path is outside or an
    /// attacker could redirect it at that time. In the simulation the call is atomic, on Windows it
    /// is not.
    fn record_path(&self, what: &str, path: &U16Str) {
        let path = path.to_string_lossy();
        let below = path
            .strip_prefix(r"\\?\")
            .unwrap_or(&path)
            .strip_prefix(KUBELET);
        let Some(below) = below.and_then(|below| below.strip_prefix('\\')) else {
            return self.push(format!("{what} {path}, which is outside"));
        };
        let mut prefix = KUBELET.to_owned();
        for name in below.trim_end_matches('\\').split('\\') {
            prefix = format!(r"{prefix}\{name}");
            let options = Options::REPARSE_POINT | Options::COMPLETE_IF_OPLOCKED;
            let rename = Open::existing(Access::DELETE, options);
            if self
                .sim
                .open(&NtPath::from_win32(&U16String::from_str(&prefix)), &rename)
                .is_ok()
            {
                self.push(format!(
                    "{what} {path}, while any process could rename {prefix}"
                ));
            }
        }
    }

    /// Returns the target of a link to a directory, as the path of a mount.
    fn link_target(&self, directory: &U16Str) -> Option<U16String> {
        let path = directory.to_string_lossy();
        let target = self.sim.external().read_link(path.trim_end_matches('\\'));
        let target = target.ok().filter(|target| target.starts_with("C:"))?;
        Some(U16String::from_str(&format!(r"{target}\")))
    }

    fn push(&self, line: String) {
        os::lock(&self.recorded).push(line);
    }
}

/// Returns whether a path is `directory` or inside of it, compared by component.
fn is_inside(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('\\'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\\'))
}

/// Returns whether an open only reads attributes. A query may read the attributes of the target of
/// any link.
fn only_reads_attributes(how: &Open) -> bool {
    how.disposition == Disposition::Open && Access::READ_ATTRIBUTES.contains(how.access)
}

impl Layer for OutsideAccess {
    fn open(&self, node: &dyn Os, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        let handle = node.open(path, how)?;
        if !only_reads_attributes(how) {
            self.record("opened by path", &*handle);
        }
        Ok(handle)
    }

    /// Follows a link that has replaced the directory. The simulated node refuses the link, and no
    /// document says what Windows does.
    fn set_volume_mount_point(
        &self,
        node: &dyn Os,
        directory: &U16Str,
        volume: &U16Str,
    ) -> OsResult<()> {
        self.record_path("mounted a volume at", directory);
        let Some(target) = self.link_target(directory) else {
            return node.set_volume_mount_point(directory, volume);
        };
        node.set_volume_mount_point(&target, volume)?;
        os::lock(&self.mounted).push(target);
        Ok(())
    }

    fn delete_volume_mount_point(&self, node: &dyn Os, directory: &U16Str) -> OsResult<()> {
        let mounted = os::lock(&self.mounted);
        if !mounted.iter().any(|mounted| **mounted == *directory) {
            self.record_path("unmounted the volume at", directory);
        }
        drop(mounted);
        node.delete_volume_mount_point(directory)
    }

    fn open_child(
        &self,
        parent: &dyn Handle,
        name: &U16Str,
        how: &Open,
    ) -> OsResult<Box<dyn Handle>> {
        self.record("opened a child of", parent);
        let child = parent.open_child(name, how)?;
        self.record("opened", &*child);
        Ok(child)
    }

    fn open_below(
        &self,
        parent: &dyn Handle,
        path: &U16Str,
        how: &Open,
    ) -> OsResult<Box<dyn Handle>> {
        // Relative to a drive, only a query may open a path.
        let is_query = !self.is_inside(parent) && only_reads_attributes(how);
        let found = parent.open_below(path, how)?;
        if !is_query {
            self.record("opened", &*found);
        }
        Ok(found)
    }

    fn control(
        &self,
        handle: &dyn Handle,
        code: ControlCode,
        input: &[u8],
        output: &mut [u8],
    ) -> OsResult<usize> {
        if code == ControlCode::FSCTL_SET_REPARSE_POINT {
            self.record("converted to a link", handle);
        }
        handle.control(code, input, output)
    }

    fn set(&self, handle: &dyn Handle, class: FileInfo, input: &[u8]) -> OsResult<()> {
        self.record("changed", handle);
        handle.set(class, input)
    }

    fn list(&self, handle: &dyn Handle, restart: bool, output: &mut [u8]) -> OsResult<()> {
        self.record("listed", handle);
        handle.list(restart, output)
    }

    fn read(&self, handle: &dyn Handle, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        self.record("read", handle);
        handle.read(offset, output)
    }
}

#[cfg(test)]
mod tests {
    use super::is_inside;

    #[test]
    fn paths_are_compared_by_component() {
        let kubelet = r"\\?\volume{1}\var\lib\kubelet";
        assert!(is_inside(kubelet, kubelet) && is_inside(&format!(r"{kubelet}\pods"), kubelet));
        assert!(
            !is_inside(&format!("{kubelet}-evil"), kubelet)
                && !is_inside(r"\\?\volume{1}\", kubelet)
        );
        assert!(is_inside(r"\\?\volume{2}\x", r"\\?\volume{2}\"));
    }
}
