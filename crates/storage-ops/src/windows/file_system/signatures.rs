//! Signatures of file systems on volumes that Windows reports as raw.
//!
//! Windows reports a volume as raw if none of its file systems can mount it. The volume may have the file system of
//! another operating system, may be encrypted, or may have an NTFS that is damaged or that was created for another
//! sector size. A driver formats a raw volume.
//!
//! In the same way, Windows reports a disk as one without a partition table if its GUID partition table was written for
//! another sector size, for instance before the disk was moved to another kind of virtual machine.

/// The number of bytes to read at once; a multiple of every sector size.
pub(crate) const BLOCK: usize = 4096;

/// The offsets at which to read.
pub(crate) const BLOCKS: [u64; 4] = [0, 4096, 32 * 1024, 64 * 1024];

/// The name of a file system or container, the offset of its signature on the volume, and the signature.
const SIGNATURES: &[(&str, u64, &[u8])] = &[
    ("NTFS", 3, b"NTFS    "),
    ("BitLocker", 3, b"-FVE-FS-"),
    ("ReFS", 3, b"ReFS\0\0\0\0"),
    ("exFAT", 3, b"EXFAT   "),
    ("FAT32", 82, b"FAT32   "),
    ("FAT16", 54, b"FAT16   "),
    ("FAT12", 54, b"FAT12   "),
    ("ext2, ext3 or ext4", 1080, b"\x53\xef"),
    ("XFS", 0, b"XFSB"),
    ("LUKS", 0, b"LUKS\xba\xbe"),
    ("LVM", 536, b"LVM2 001"),
    ("swap", 4086, b"SWAPSPACE2"),
    ("btrfs", 65600, b"_BHRfS_M"),
    ("F2FS", 1024, b"\x10\x20\xf5\xf2"),
    ("HFS+", 1024, b"H+\0\x04"),
    ("HFSX", 1024, b"HX\0\x05"),
    ("APFS", 32, b"NXSB"),
    ("bcache", 4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    ("JFS", 32768, b"JFS1"),
    ("ISO 9660", 32769, b"CD001"),
    ("UDF", 32769, b"BEA01"),
    ("ReiserFS", 65588, b"ReIsEr"),
    ("GFS2", 65536, b"\x01\x16\x19\x70"),
    ("Ceph BlueStore", 0, b"bluestore block device"),
    ("Oracle ASM", 32, b"ORCLDISK"),
    ("Linux RAID", 0, b"\xfc\x4e\x2b\xa9"),
    ("Linux RAID", 4096, b"\xfc\x4e\x2b\xa9"),
    // The header is in the second sector, which has 512 or 4096 bytes.
    ("a damaged GPT, or one for another sector size", 512, b"EFI PART"),
    ("a damaged GPT, or one for another sector size", 4096, b"EFI PART"),
    // The file system recognition structure, in the first sector of a file system that a later Windows may mount.
    ("a file system that identifies itself to Windows", 16, b"FSRS"),
];

/// Returns the name of the file system or container whose signature is in `block`, which begins at `offset` of the
/// volume.
pub(crate) fn find(offset: u64, block: &[u8]) -> Option<&'static str> {
    let has_signature = |at: u64, bytes: &[u8]| {
        let start = usize::try_from(at.checked_sub(offset)?).ok()?;
        Some(block.get(start..start.checked_add(bytes.len())?)? == bytes)
    };
    SIGNATURES.iter().find(|(_, at, bytes)| has_signature(*at, bytes) == Some(true)).map(|(name, ..)| *name)
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, BLOCKS, SIGNATURES, find};

    #[test]
    fn each_signature_is_found_in_the_blocks_that_are_read() {
        for (name, at, bytes) in SIGNATURES {
            let found = BLOCKS.iter().find_map(|offset| {
                let mut block = vec![0; BLOCK];
                let start = usize::try_from(at.checked_sub(*offset)?).ok()?;
                block.get_mut(start..start + bytes.len())?.copy_from_slice(bytes);
                find(*offset, &block)
            });
            assert_eq!(found, Some(*name));
        }
        assert_eq!(find(0, &[0; BLOCK]), None);
        assert_eq!(find(0, b"NTFS"), None, "a block may be shorter than a signature");
    }
}
