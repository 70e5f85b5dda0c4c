//! A node that notes what is done outside of kubelet's directory, by where things are and not by what they are called.
//!
//! Where something is, its volume's name and its path on that volume say: a volume can have many paths.

use std::sync::{Arc, Mutex, PoisonError};

use faults::Layer;
use os::abi::ControlCode;
use os::{Access, Disposition, FileInfo, Handle, NtPath, Open, Options, Os, OsResult, PathForm, U16Str, U16String};
use os_sim::{Sim, VolumeView};

use crate::scenarios::{KUBELET, volume};

/// What was done outside, a line each.
#[derive(Clone)]
pub struct Trespasses {
    sim: Sim,
    noted: Arc<Mutex<Vec<String>>>,
    /// How the paths begin that are inside, in lower case.
    inside: Arc<Vec<String>>,
}

impl Trespasses {
    /// None yet on `sim`. Inside are kubelet's directory, and the volumes mounted at `mounted`.
    pub fn on(sim: &Sim, mounted: Option<&str>) -> Self {
        let below = KUBELET.strip_prefix(r"C:\").unwrap_or_default();
        let mut inside = vec![format!("{}{below}", volume(sim, 0))];
        let at = mounted.map(|path| format!(r"{path}\").to_lowercase());
        let is_mounted = |path: &String| Some(path.to_lowercase()) == at;
        inside.extend(
            sim.all_volumes().iter().filter(|volume| volume.paths.iter().any(is_mounted)).map(VolumeView::name),
        );
        Self {
            sim: sim.clone(),
            noted: Arc::default(),
            inside: Arc::new(inside.iter().map(|path| path.to_lowercase()).collect()),
        }
    }

    /// Those so far.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that `what` was done to the object behind `handle`, if that lies outside.
    fn note(&self, what: &str, handle: &dyn Handle) {
        // What lies on no volume, such as a disk, a share or something deleted, lies nowhere.
        let Ok(path) = handle.final_path(PathForm::VolumeGuid) else { return };
        let path = path.to_string_lossy();
        if !self.inside.iter().any(|inside| lies_in(&path.to_lowercase(), inside)) {
            self.line(format!("{what} {path}, which is outside"));
        }
    }

    /// Notes that Windows was told to do `what` at a path, if somebody could lead that path elsewhere just then: here
    /// the call is one instant, on Windows it is not.
    fn note_path(&self, what: &str, path: &U16Str) {
        let path = path.to_string_lossy();
        let below = path.strip_prefix(r"\\?\").unwrap_or(&path).strip_prefix(KUBELET);
        let Some(below) = below.and_then(|below| below.strip_prefix('\\')) else {
            return self.line(format!("{what} {path}, which is outside"));
        };
        let mut way = KUBELET.to_owned();
        for name in below.trim_end_matches('\\').split('\\') {
            way = format!(r"{way}\{name}");
            let rename = Open::existing(Access::DELETE, Options::REPARSE_POINT);
            if self.sim.open(&NtPath::from_win32(&U16String::from_str(&way)), &rename).is_ok() {
                self.line(format!("{what} {path}, while anybody could rename {way}"));
            }
        }
    }

    fn line(&self, line: String) {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

/// Whether a path is a directory or lies in it, by component.
fn lies_in(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('\\'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('\\'))
}

/// Looking at something's attributes, wherever a link leads, is what the queries are for. More is not.
fn only_looks(how: &Open) -> bool {
    how.disposition == Disposition::Open && Access::READ_ATTRIBUTES.contains(how.access)
}

impl Layer for Trespasses {
    fn open(&self, node: &dyn Os, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        let handle = node.open(path, how)?;
        if !only_looks(how) {
            self.note("opened by path", &*handle);
        }
        Ok(handle)
    }

    fn set_volume_mount_point(&self, node: &dyn Os, directory: &U16Str, volume: &U16Str) -> OsResult<()> {
        self.note_path("mounted a volume at", directory);
        node.set_volume_mount_point(directory, volume)
    }

    fn delete_volume_mount_point(&self, node: &dyn Os, directory: &U16Str) -> OsResult<()> {
        self.note_path("unmounted what is at", directory);
        node.delete_volume_mount_point(directory)
    }

    fn open_child(&self, parent: &dyn Handle, name: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        self.note("opened something in", parent);
        let child = parent.open_child(name, how)?;
        self.note("opened", &*child);
        Ok(child)
    }

    fn control(&self, handle: &dyn Handle, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize> {
        if code == ControlCode::FSCTL_SET_REPARSE_POINT {
            self.note("made a link of", handle);
        }
        handle.control(code, input, output)
    }

    fn set(&self, handle: &dyn Handle, class: FileInfo, input: &[u8]) -> OsResult<()> {
        self.note("changed", handle);
        handle.set(class, input)
    }

    fn list(&self, handle: &dyn Handle, restart: bool, output: &mut [u8]) -> OsResult<()> {
        self.note("listed", handle);
        handle.list(restart, output)
    }

    fn read(&self, handle: &dyn Handle, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        self.note("read", handle);
        handle.read(offset, output)
    }
}

#[cfg(test)]
mod tests {
    use super::lies_in;

    #[test]
    fn inside_is_told_by_component() {
        let kubelet = r"\\?\volume{1}\var\lib\kubelet";
        assert!(lies_in(kubelet, kubelet) && lies_in(&format!(r"{kubelet}\pods"), kubelet));
        assert!(!lies_in(&format!("{kubelet}-evil"), kubelet) && !lies_in(r"\\?\volume{1}\", kubelet));
        assert!(lies_in(r"\\?\volume{2}\x", r"\\?\volume{2}\"));
    }
}
