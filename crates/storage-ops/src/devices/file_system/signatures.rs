//! Signatures of file systems on volumes that Windows reports as raw.
//!
//! Windows reports a volume as raw if none of its file systems can mount it. The volume may have
//! the file system of another operating system, may be encrypted, or may have an NTFS that is
//! damaged or that was created for another sector size. A driver formats a raw volume.
//!
//! In the same way, Windows reports a disk as one without a partition table if its GUID partition
//! table was written for another sector size, for instance before the disk was moved to another
//! kind of virtual machine, or if only the backup of the table, at the end of the disk, is intact.
//!
//! The offsets are those in util-linux (`libblkid/src/superblocks`); that of ZFS follows from the
//! label as OpenZFS writes it (`module/zfs/spa_config.c`). Storage Spaces has no signature here:
//! its data is in a partition whose type util-linux lists (`include/pt-gpt-partnames.h`), so that
//! such a disk has a GPT.

/// The number of bytes to read at once: a multiple of every size of a sector.
pub(crate) const BLOCK: usize = 4096;

/// The offsets at which to read.
pub(crate) const BLOCKS: [u64; 8] = [
    0,
    4096,
    8192,
    16 * 1024,
    32 * 1024,
    64 * 1024,
    1 << 20,
    2 << 20,
];

const MD: &[u8] = b"\xfc\x4e\x2b\xa9";

/// The first name in the list of a label of ZFS, with its length before it.
const ZFS: &[u8] = b"\0\0\0\x07version\0";

/// The offset of [`ZFS`] in a label.
const ZFS_NAME: u64 = 16404;

/// The name of a file system or container, the offset of its signature on the volume, and the
/// signature.
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
    (
        "bcache",
        4120,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
    ),
    ("JFS", 32768, b"JFS1"),
    ("ISO 9660", 32769, b"CD001"),
    ("UDF", 32769, b"BEA01"),
    ("ReiserFS", 65588, b"ReIsEr"),
    ("GFS2", 65536, b"\x01\x16\x19\x70"),
    ("Ceph BlueStore", 0, b"bluestore block device"),
    ("Oracle ASM", 32, b"ORCLDISK"),
    ("Linux RAID", 0, MD),
    ("Linux RAID", 4096, MD),
    (
        "bcachefs",
        4120,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    ("EROFS", 1024, b"\xe2\xe1\xf5\xe0"),
    ("NILFS2", 1030, b"\x34\x34"),
    // The superblock is in the third block, which has 512 to 4096 bytes.
    ("OCFS2", 1024, b"OCFSV2"),
    ("OCFS2", 2048, b"OCFSV2"),
    ("OCFS2", 4096, b"OCFSV2"),
    ("OCFS2", 8192, b"OCFSV2"),
    ("squashfs", 0, b"hsqs"),
    ("squashfs", 0, b"sqsh"),
    ("VMFS", 1 << 20, b"\x0d\xd0\x01\xc0"),
    ("VMFS", 2 << 20, b"\x5e\xf1\xab\x2f"),
    ("ZFS", ZFS_NAME, ZFS),
    // The header is in the second sector, which has 512 or 4096 bytes.
    (
        "a damaged GPT, or one for another sector size",
        512,
        b"EFI PART",
    ),
    (
        "a damaged GPT, or one for another sector size",
        4096,
        b"EFI PART",
    ),
    // The file system recognition structure, in the first sector of a file system that a later
    // Windows may mount.
    (
        "a file system that identifies itself to Windows",
        16,
        b"FSRS",
    ),
];

/// A signature near the end of a disk: its name, the multiple to which the size of the disk is
/// rounded down, the distance of the signature from there, and the signature.
const AT_END: &[(&str, u64, u64, &[u8])] = &[
    ("a backup GPT", 512, 512, b"EFI PART"),
    ("a backup GPT", 4096, 4096, b"EFI PART"),
    // Versions 1.0 and 0.90, and the latter of a big-endian computer.
    ("Linux RAID", 4096, 8192, MD),
    ("Linux RAID", 65536, 65536, MD),
    ("Linux RAID", 65536, 65536, b"\xa9\x2b\x4e\xfc"),
    // The third of four labels.
    ("ZFS", 256 << 10, (512 << 10) - ZFS_NAME, ZFS),
];

/// Returns the signatures near the end of a disk of `size` bytes: the name, the offset and the
/// signature.
pub(crate) fn at_end(size: u64) -> impl Iterator<Item = (&'static str, u64, &'static [u8])> {
    let at = move |multiple: u64, back: u64| (size / multiple * multiple).checked_sub(back);
    AT_END
        .iter()
        .filter_map(move |(name, multiple, back, bytes)| {
            Some((*name, at(*multiple, *back)?, *bytes))
        })
}

/// Returns the name of the file system or container whose signature is in `block`, which begins at
/// `offset` of the volume.
pub(crate) fn find(offset: u64, block: &[u8]) -> Option<&'static str> {
    SIGNATURES
        .iter()
        .find(|(_, at, bytes)| has_at(block, offset, *at, bytes))
        .map(|(name, ..)| *name)
}

/// Returns whether `block`, which begins at `offset`, has `bytes` at the offset `at`.
pub(crate) fn has_at(block: &[u8], offset: u64, at: u64, bytes: &[u8]) -> bool {
    let start = at
        .checked_sub(offset)
        .and_then(|start| usize::try_from(start).ok());
    start
        .and_then(|start| block.get(start..))
        .is_some_and(|rest| rest.starts_with(bytes))
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, BLOCKS, SIGNATURES, at_end, find};

    #[test]
    fn each_signature_is_found_in_the_blocks_that_are_read() {
        for (name, at, bytes) in SIGNATURES {
            let found = BLOCKS.iter().find_map(|offset| {
                let mut block = vec![0; BLOCK];
                let start = usize::try_from(at.checked_sub(*offset)?).ok()?;
                block
                    .get_mut(start..start + bytes.len())?
                    .copy_from_slice(bytes);
                find(*offset, &block)
            });
            assert_eq!(found, Some(*name));
        }
        assert_eq!(find(0, &[0; BLOCK]), None);
        assert_eq!(
            find(0, b"NTFS"),
            None,
            "a block may be shorter than a signature"
        );
    }

    fn places(size: u64) -> Vec<u64> {
        at_end(size).map(|(_, at, _)| at).collect::<Vec<_>>()
    }

    #[test]
    fn signatures_at_the_end_are_where_their_programs_write_them() {
        const GIB: u64 = 1 << 30;
        let [gpt, gpt_4k, md, md_old] = [512, 4096, 8192, 65536].map(|back| GIB - back);
        let zfs = GIB - (512 << 10) + (16 << 10) + 20;
        assert_eq!(places(GIB), [gpt, gpt_4k, md, md_old, md_old, zfs]);
        // Only the backup table of 512-byte sectors is in the last sector.
        assert_eq!(
            places(GIB + 1536),
            [GIB + 1024, gpt_4k, md, md_old, md_old, zfs]
        );
        assert_eq!(places(4096), [3584, 0]);
    }
}
