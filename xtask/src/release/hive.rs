//! An empty registry hive, in the format "regf". Windows refuses to unpack an image for HostProcess
//! containers without five hives; newer builds also refuse empty files, as an issue of Microsoft's
//! base image says:
//! <https://github.com/microsoft/windows-host-process-containers-base-image/issues/14>. Nothing
//! reads the hives, since such a container has no registry of its own.

/// What is not zero in the file. A header, with its checksum at 508, and a block with three cells,
/// which follow their sizes; the size of a cell in use is negative.
const PARTS: [(usize, &[u8]); 14] = [
    // The numbers of the last write, begun and ended; the version 1.5; the root key; the size of
    // the blocks; in sectors.
    (0, b"regf\x01\0\0\0\x01\0\0\0"),
    (
        20,
        b"\x01\0\0\0\x05\0\0\0\0\0\0\0\x01\0\0\0\x20\0\0\0\0\x10\0\0\x01\0\0\0",
    ),
    (508, b"\x56\x75\x67\x66"),
    (0x1000, b"hbin\0\0\0\0\0\x10\0\0"),
    // The root, which cannot be deleted, with a name in ASCII; it has no parent, and neither keys
    // nor values.
    (0x1020, b"\xa8\xff\xff\xffnk\x2c\0"),
    (0x1034, b"\xff\xff\xff\xff"),
    (
        0x1040,
        b"\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff\x78\0\0\0\xff\xff\xff\xff",
    ),
    (0x106c, b"\x04\0\0\0ROOT"),
    // Its security descriptor: the next and the previous one, which are itself; who uses it; its
    // size; and after its header, everything is allowed to the system (S-1-5-18) and to
    // administrators (S-1-5-32-544), who own it.
    (
        0x1078,
        b"\x80\xff\xff\xffsk\0\0\x78\0\0\0\x78\0\0\0\x01\0\0\0\x64\0\0\0",
    ),
    (
        0x1090,
        b"\x01\0\x04\x80\x48\0\0\0\x58\0\0\0\0\0\0\0\x14\0\0\0\x02\0\x34\0\x02\0\0\0",
    ),
    (
        0x10ac,
        b"\0\x02\x14\0\x3f\0\x0f\0\x01\x01\0\0\0\0\0\x05\x12\0\0\0",
    ),
    (
        0x10c0,
        b"\0\x02\x18\0\x3f\0\x0f\0\x01\x02\0\0\0\0\0\x05\x20\0\0\0\x20\x02\0\0",
    ),
    (
        0x10d8,
        b"\x01\x02\0\0\0\0\0\x05\x20\0\0\0\x20\x02\0\0\x01\x01\0\0\0\0\0\x05\x12\0\0\0",
    ),
    // The free rest.
    (0x10f8, b"\x08\x0f\0\0"),
];

/// Returns the bytes of the hive's file.
pub(super) fn empty() -> Vec<u8> {
    let mut hive = vec![0; 0x2000];
    for (position, bytes) in PARTS {
        hive[position..position + bytes.len()].copy_from_slice(bytes);
    }
    hive
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use crate::{process, workspace};

    #[test]
    fn hivex_reads_the_hive_as_one_empty_key() {
        if process::find("hivexml").is_none() {
            println!("skipped: hivex_reads_the_hive_as_one_empty_key: hivexml is not installed");
            return;
        }
        let file = workspace::target().join("empty-hive");
        fs::create_dir_all(workspace::target()).expect("the target folder");
        fs::write(&file, super::empty()).expect("a file");
        let read = process::output(Command::new("hivexml").arg(&file)).expect("a hive");
        assert!(
            read.contains(r#"<node name="ROOT" root="1">"#) && read.matches("<node").count() == 1,
            "{read}"
        );
    }
}
