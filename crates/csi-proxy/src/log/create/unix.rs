//! A log file that only its owner can read.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;

/// Makes a file that these options create readable and writable for its owner alone.
pub(crate) fn for_owner_only(options: &mut OpenOptions) {
    options.mode(0o600);
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_its_owner_can_read_a_new_log_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("csi-proxy.log");
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        super::for_owner_only(&mut options);
        options.open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
