//! Which drives are volumes. Others may be shares of servers, which are not opened where a server
//! that does not answer must not be waited for.

use std::sync::OnceLock;

use os::{Os, U16Str};

use crate::error::{OperationError, OperationResult};
use crate::types::HostPath;

/// The letters of the drives that are volumes, which are read when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct Drives(OnceLock<Letters>);

/// Letters, and the error of the first volume whose letter could not be read.
type Letters = (Vec<char>, Option<OperationError>);

impl Drives {
    /// Returns whether the drive `letter` is a volume, and not a share.
    pub(crate) fn is_of_volume(&self, os: &dyn Os, letter: char) -> OperationResult<bool> {
        let (letters, failed) = self.0.get_or_init(|| read(os));
        match failed {
            Some(error) if !letters.contains(&letter) => Err(error.clone()),
            _ => Ok(letters.contains(&letter)),
        }
    }
}

fn read(os: &dyn Os) -> Letters {
    let (mut letters, mut failed) = (Vec::new(), None);
    match os.volumes() {
        Err(code) => failed = Some(code.into()),
        Ok(volumes) => {
            for volume in volumes {
                match os.volume_paths(&volume) {
                    Ok(paths) => {
                        letters.extend(paths.iter().filter_map(|path| drive_letter(path)));
                    }
                    Err(code) => drop(failed.get_or_insert_with(|| code.into())),
                }
            }
        }
    }
    (letters, failed)
}

/// Returns the letter of a path that is the root directory of a drive.
fn drive_letter(path: &U16Str) -> Option<char> {
    let path = HostPath::parse(&path.to_string().ok()?).ok()?;
    path.is_drive_root().then(|| path.drive())
}
