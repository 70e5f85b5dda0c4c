//! Preparation of the disks for tests on Windows: each check finds its disk as if no check had used it before.

/// Returns the diskpart script that turns a disk into one of a kind, such as `DISK_RAW` or `VOLUME_REFS`. The script
/// destroys all data on the disk. Returns `None` for a kind that diskpart cannot create.
pub fn diskpart_script(kind: &str, disk: u32) -> Option<String> {
    let rest: &[&str] = match kind {
        "DISK_RAW" | "DISK_FOURKN" => &[],
        "DISK_MBR" => &["convert mbr", "create partition primary"],
        "VOLUME_RAW" => &["convert gpt", "create partition primary"],
        "VOLUME_NTFS" | "VOLUME_NTFS4KN" => &["convert gpt", "create partition primary", "format fs=ntfs quick"],
        "VOLUME_HALF" => &["convert gpt", "create partition primary size=1024", "format fs=ntfs quick"],
        "VOLUME_FAT32" => &["convert gpt", "create partition primary", "format fs=fat32 quick"],
        "VOLUME_REFS" => &["convert gpt", "create partition primary", "format fs=refs quick"],
        _ => return None,
    };
    // An offline or read-only disk cannot be cleaned. The first lines fail where there is nothing to change.
    let first = ["attributes disk clear readonly noerr", "online disk noerr", "clean"];
    let lines = first.iter().chain(rest).fold(format!("select disk {disk}\n"), |script, line| script + line + "\n");
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::diskpart_script;

    #[test]
    fn a_disk_is_prepared_as_if_no_check_had_used_it() {
        let clean = "select disk 3\nattributes disk clear readonly noerr\nonline disk noerr\nclean\n";
        assert_eq!(diskpart_script("DISK_RAW", 3).as_deref(), Some(clean));
        let refs = format!("{clean}convert gpt\ncreate partition primary\nformat fs=refs quick\n");
        assert_eq!(diskpart_script("VOLUME_REFS", 3), Some(refs));
        assert_eq!(diskpart_script("DISK_NOPAGE83", 5), None);
    }
}
