//! A node that notes what is done outside of kubelet's directory, by where things are and not by what they are called.
//!
//! Where something is, its volume's name and its path on that volume say: a volume can have many paths.

use std::sync::{Arc, Mutex, PoisonError};

use os::abi::ControlCode;
use os::{
    Access, Clock, Disposition, FileInfo, FsInfo, Handle, NtPath, Open, Options, Os, OsResult, PathForm, Service,
    ServiceAccess, U16Str, U16String, Uuid, Wmi,
};

use os_sim::{Sim, VolumeView};

use crate::forward::forward_the_rest;
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

/// The node, watched.
pub struct Watched {
    inner: Arc<dyn Os>,
    trespasses: Trespasses,
}

impl Watched {
    /// Notes in `trespasses` what is done on `inner`.
    pub fn new(inner: Arc<dyn Os>, trespasses: &Trespasses) -> Self {
        Self { inner, trespasses: trespasses.clone() }
    }
}

/// Looking at something's attributes, wherever a link leads, is what the queries are for. More is not.
fn only_looks(how: &Open) -> bool {
    how.disposition == Disposition::Open && Access::READ_ATTRIBUTES.contains(how.access)
}

struct WatchedHandle {
    inner: Box<dyn Handle>,
    trespasses: Trespasses,
}

impl Handle for WatchedHandle {
    fn open_child(&self, name: &U16Str, how: &Open) -> OsResult<Box<dyn Handle>> {
        self.trespasses.note("opened something in", &*self.inner);
        let inner = self.inner.open_child(name, how)?;
        self.trespasses.note("opened", &*inner);
        Ok(Box::new(Self { inner, trespasses: self.trespasses.clone() }))
    }

    fn control(&self, code: ControlCode, input: &[u8], output: &mut [u8]) -> OsResult<usize> {
        if code == ControlCode::FSCTL_SET_REPARSE_POINT {
            self.trespasses.note("made a link of", &*self.inner);
        }
        self.inner.control(code, input, output)
    }

    fn query(&self, class: FileInfo, output: &mut [u8]) -> OsResult<()> {
        self.inner.query(class, output)
    }

    fn set(&self, class: FileInfo, input: &[u8]) -> OsResult<()> {
        self.trespasses.note("changed", &*self.inner);
        self.inner.set(class, input)
    }

    fn query_fs(&self, class: FsInfo, output: &mut [u8]) -> OsResult<usize> {
        self.inner.query_fs(class, output)
    }

    fn list(&self, restart: bool, output: &mut [u8]) -> OsResult<()> {
        self.trespasses.note("listed", &*self.inner);
        self.inner.list(restart, output)
    }

    fn final_path(&self, form: PathForm) -> OsResult<U16String> {
        self.inner.final_path(form)
    }

    fn read(&self, offset: u64, output: &mut [u8]) -> OsResult<usize> {
        self.trespasses.note("read", &*self.inner);
        self.inner.read(offset, output)
    }

    fn flush(&self) -> OsResult<()> {
        self.inner.flush()
    }
}

impl Os for Watched {
    fn open(&self, path: &NtPath, how: &Open) -> OsResult<Box<dyn Handle>> {
        let inner = self.inner.open(path, how)?;
        if !only_looks(how) {
            self.trespasses.note("opened by path", &*inner);
        }
        Ok(Box::new(WatchedHandle { inner, trespasses: self.trespasses.clone() }))
    }

    fn set_volume_mount_point(&self, directory: &U16Str, volume: &U16Str) -> OsResult<()> {
        self.trespasses.note_path("mounted a volume at", directory);
        self.inner.set_volume_mount_point(directory, volume)
    }

    fn delete_volume_mount_point(&self, directory: &U16Str) -> OsResult<()> {
        self.trespasses.note_path("unmounted what is at", directory);
        self.inner.delete_volume_mount_point(directory)
    }

    fn wmi(&self) -> &dyn Wmi {
        self.inner.wmi()
    }

    fn clock(&self) -> &dyn Clock {
        self.inner.clock()
    }

    forward_the_rest!();
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
