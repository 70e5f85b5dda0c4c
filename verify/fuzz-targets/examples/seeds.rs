//! Writes the seeds that a simulated node can provide: `cargo run -p csi-proxy-fuzz-targets --example seeds`.
//!
//! They are valid answers, from which the fuzzer starts. The other seeds in the same folders were written by hand.

use std::path::{Path, PathBuf};
use std::{fs, io};

use os::abi::{ControlCode, FIRMWARE_SMBIOS, StoragePropertyQuery};
use os::{Access, FsInfo, NtPath, Open, Options, Os, U16Str, Uuid};
use os_sim::Sim;
use zerocopy::IntoBytes;

const QUERY: Open = Open::existing(Access::empty(), Options::empty());
const READ: Open = Open::existing(Access::GENERIC_READ, Options::empty());
const LINK: Open = Open::existing(Access::READ_DATA.union(Access::READ_ATTRIBUTES), Options::REPARSE_POINT);

fn main() -> io::Result<()> {
    let node = os_sim::node()
        .bios_serial("VMware-56 4d 4e 0e")
        .disk(1 << 30)
        .page83_ascii("Google  pvc-x")
        .disk(1 << 30)
        .partitioned()
        .formatted("NTFS")
        .mounted(r"C:\var\lib\kubelet\plugins\mounted")
        .file(r"C:\full\a\b", "b")
        .file(r"C:\full\c", "c")
        .symlink(r"C:\link", r"C:\full")
        .junction(r"C:\junction", r"C:\full")
        .disk(1 << 30)
        .mbr()
        .build();
    for disk in 1..=3 {
        let name = format!("disk-{disk}");
        for (target, property) in
            [("page83", StoragePropertyQuery::DEVICE_ID), ("device_descriptors", StoragePropertyQuery::DEVICE)]
        {
            let query = StoragePropertyQuery { property_id: property, ..StoragePropertyQuery::default() };
            let code = ControlCode::STORAGE_QUERY_PROPERTY;
            save(target, &name, &control(&node, &NtPath::disk(disk), &QUERY, code, query.as_bytes()))?;
        }
        let layout = control(&node, &NtPath::disk(disk), &READ, ControlCode::DISK_GET_DRIVE_LAYOUT_EX, &[]);
        save("drive_layouts", &name, &layout)?;
    }
    let volume = node.volume_on(2).expect("a volume").id;
    volume_seeds(&node, volume)?;
    for (name, path) in [
        ("link", r"\??\C:\link"),
        ("junction", r"\??\C:\junction"),
        ("mount", r"\??\C:\var\lib\kubelet\plugins\mounted"),
    ] {
        let code = ControlCode::FSCTL_GET_REPARSE_POINT;
        save("reparse_points", name, &control(&node, &nt(path), &LINK, code, &[]))?;
    }
    let mut listing = vec![0; 600];
    node.open(&nt(r"\??\C:\full"), &LINK).and_then(|full| full.list(true, &mut listing)).expect("names");
    save("listings", "full", &listing)?;
    let mut table = vec![0; 4096];
    let length = node.firmware_table(FIRMWARE_SMBIOS, 0, &mut table).expect("a table");
    save("smbios", "vmware", &table[..length])
}

fn volume_seeds(node: &Sim, volume: Uuid) -> io::Result<()> {
    let extents = control(node, &NtPath::volume(volume), &QUERY, ControlCode::VOLUME_GET_VOLUME_DISK_EXTENTS, &[]);
    save("extents", "one", &extents)?;
    let handle = node.open(&NtPath::volume(volume), &READ).expect("a device that opens");
    for (name, class) in [("ntfs", FsInfo::Attribute), ("size", FsInfo::FullSize)] {
        let mut answer = [0; 64];
        let length = handle.query_fs(class, &mut answer).expect("an answer");
        save("file_systems", name, &answer[..length])?;
    }
    Ok(())
}

fn nt(path: &str) -> NtPath {
    NtPath::from_win32(U16Str::from_slice(&path.encode_utf16().collect::<Vec<_>>()))
}

fn control(node: &Sim, path: &NtPath, how: &Open, code: ControlCode, input: &[u8]) -> Vec<u8> {
    let mut answer = vec![0; 16 * 1024];
    let handle = node.open(path, how).expect("a device that opens");
    let length = handle.control(code, input, &mut answer).expect("an answer");
    answer.truncate(length);
    answer
}

fn save(target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}
