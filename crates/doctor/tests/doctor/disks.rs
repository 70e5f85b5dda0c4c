//! Disks that share an identifier, and volumes that cannot use their whole disk.

use doctor::State;

use crate::setup::Patient;

#[test]
fn disks_with_one_identifier_and_volumes_with_a_limit_are_warnings() {
    const SECOND: &str = "[[disk]]\nsize = '1 GiB'\n";
    let by_page83 = "page83 = { ascii = 'lun' }\n";
    let by_serial = "page83 = 'none'\nserial = 'lun'\n";
    for (keys, words) in [
        (
            format!("{by_page83}{SECOND}{by_page83}"),
            ["disks 2 and 3 have one identifier", ""],
        ),
        (
            format!("{by_serial}{SECOND}{by_serial}"),
            ["disks 2 and 3 have one identifier", ""],
        ),
        (
            "content = 'mbr'\ngrown_to = '3 TiB'".to_owned(),
            ["disk 2 has 3298534883328", "describe 2199023255552"],
        ),
        (
            "content = 'partitioned'\nfile_system = 'NTFS'\ngrown_to = '20 TiB'".to_owned(),
            ["cannot grow beyond 17592186040320", "4294967295 clusters"],
        ),
    ] {
        let server = "[[smb_server]]";
        let disk = format!("[[disk]]\nsize = \"1 GiB\"\nnumber = 2\n{keys}\n\n{server}");
        let finding = Patient::with(server, &disk).complaint();
        assert_eq!((finding.state, finding.check), (State::Warning, "Disks"));
        for word in words {
            assert!(finding.seen.contains(word), "{finding:#?}");
        }
    }
}
