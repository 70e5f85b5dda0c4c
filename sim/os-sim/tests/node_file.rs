//! Node files: what a node is written as and created from.

use std::collections::BTreeSet;

use os_sim::{Description, Sim};

fn created(file: &str) -> Sim {
    Sim::from_toml(file).unwrap_or_else(|error| panic!("{error}:\n{file}"))
}

/// Asserts that a node that is created from the node file of `sim` is equal to it, and returns that
/// file.
fn assert_survives(sim: &Sim) -> String {
    let file = sim.node_file();
    let again = created(&file);
    let difference = sim.snapshot().difference(&again.snapshot());
    assert_eq!(difference, "", "{file}");
    let volumes = |sim: &Sim| {
        sim.all_volumes()
            .into_iter()
            .map(|volume| (volume.disk, volume.id))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        volumes(&again)[1..],
        volumes(sim)[1..],
        "the volumes have new GUIDs"
    );
    assert_eq!(again.node_file(), file);
    file
}

#[test]
fn the_built_in_node_is_written_and_created_again() {
    assert_survives(&Sim::default_node());
    assert_survives(&created(Sim::default_node_file()));
}

#[test]
fn every_kind_of_disk_is_written_and_created_again() {
    let gib = 1 << 30;
    let sim = os_sim::node()
        .disk(gib)
        .mbr()
        .formatted("NTFS")
        .disk(gib)
        .gpt()
        .disk(gib)
        .superfloppy()
        .formatted("FAT32")
        .disk(gib)
        .formatted("ext4")
        .disk(gib)
        .partitioned()
        .bitlocker_locked()
        .disk(gib)
        .partitioned()
        .unmountable()
        .disk(gib)
        .partitioned()
        .formatted("NTFS")
        .grown_to(2 * gib)
        .file_system_of(gib / 2)
        .disk(gib)
        .offline()
        .read_only()
        .sector_size(4096)
        .no_page83()
        .serial("")
        .build();
    assert_survives(&sim);
}

#[test]
fn a_recovery_partition_and_a_drive_letter_are_written_and_created_again() {
    for content in ["partitioned", "mbr"] {
        let disk = format!(
            "[[disk]]\nsize = '10 GiB'\ngrown_to = '20 GiB'\ncontent = '{content}'\n\
             file_system = 'NTFS'\nrecovery_partition = '500 MiB'\nletter = 'D'\n"
        );
        let sim = created(&disk);
        let partitions = sim.disk(1).expect("the disk").partitions;
        let [.., data, recovery] = &partitions[..] else {
            panic!("{partitions:?}")
        };
        assert_eq!(
            (data.offset + data.length, recovery.length),
            (recovery.offset, 500 << 20)
        );
        sim.external().write(r"D:\data", "x").expect("a file");
        let file = assert_survives(&sim);
        assert!(!file.contains("# Left out"), "{file}");
        assert_eq!(created(&file).external().read(r"D:\data").unwrap(), b"x");
    }
    for (keys, reason) in [
        ("letter = 'D'", "letter needs a volume"),
        (
            "recovery_partition = '1 MiB'",
            "recovery_partition needs a volume",
        ),
        ("content = 'mbr'\nletter = 'C'", "letter is one of D to Z"),
        (
            "content = 'mbr'\nrecovery_partition = '600 MiB'",
            "a disk twice as large",
        ),
    ] {
        let error = Description::from_toml(&format!("[[disk]]\nsize = '1 GiB'\n{keys}\n"));
        let error = error.expect_err(keys).to_string();
        assert!(error.contains(reason), "{error}");
    }
    let lettered = "[[disk]]\nsize = '1 GiB'\ncontent = 'mbr'\nletter = 'D'\n";
    let error = Sim::from_toml(&lettered.repeat(2)).expect_err("one letter for two volumes");
    assert!(error.to_string().contains("the letter D too"), "{error}");
}

#[test]
fn files_links_and_mount_points_are_written_and_created_again() {
    let sim = os_sim::node()
        .disk(1 << 30)
        .partitioned()
        .formatted("NTFS")
        .dir(r"C:\csi\empty")
        .file(r"C:\csi\text", "line 1\n\"line\" 2\n")
        .file(r"C:\csi\bytes", [0, 159, 146, 150])
        .symlink(r"C:\csi\link", r"C:\csi\empty")
        .junction(r"C:\csi\junction", r"C:\csi\empty")
        .mounted(r"C:\var\lib\kubelet\mount")
        .build();
    sim.external()
        .write(r"C:\var\lib\kubelet\mount\data", "on the volume")
        .expect("a file");
    let file = assert_survives(&sim);
    let again = created(&file);
    assert_eq!(
        again
            .external()
            .read(r"C:\var\lib\kubelet\mount\data")
            .expect("a file"),
        b"on the volume"
    );
    assert_eq!(
        again.external().read(r"C:\csi\bytes").expect("a file"),
        [0, 159, 146, 150]
    );
}

#[test]
fn what_a_node_file_leaves_out_is_a_comment_in_it() {
    let file = os_sim::node().disk(1 << 30).build();
    file.unplug_disk(1).expect("the disk");
    assert!(
        file.node_file()
            .contains("# Left out: an unplugged disk, which had the number 1.")
    );
}

#[test]
fn a_mapping_is_written_and_created_again_if_it_survives_a_restart() {
    let server = "[[smb_server]]\nhost = \"files\"\nshares = [{ name = \"share\" }]\n\
                  users = [{ name = \"user\", password = \"old\" }]\n";
    let mapping = |remote: &str, user: &str| {
        format!("{server}[[smb_mapping]]\nremote = '{remote}'\nuser = '{user}'\n")
    };
    let sim = created(&mapping(r"\\Files\share", r"files\user"));
    let file = assert_survives(&sim);
    assert!(file.contains("[[smb_mapping]]\n"), "{file}");
    assert!(sim.rotate_smb_password("files", "user", "new"));
    let file = sim.node_file();
    assert!(
        file.contains(r"# Left out: the SMB mapping of \\Files\share.")
            && !file.contains("[[smb_mapping]]"),
        "{file}"
    );

    for (remote, user) in [
        (r"\\files\other", r"files\user"),
        (r"\\other\share", r"files\user"),
        (r"\\files\share", r"files\x"),
    ] {
        let refused = Description::from_toml(&mapping(remote, user))
            .expect_err(remote)
            .to_string();
        assert!(
            refused.contains("smb_mapping 1: no smb_server has the share and the user of "),
            "{refused}"
        );
    }
}

#[test]
fn a_fast_node_waits_for_nothing() {
    let sim = Sim::default_node().fast();
    let file = sim.node_file();
    let spans = file
        .lines()
        .skip_while(|line| *line != "[timing]")
        .skip(1)
        .take_while(|line| !line.is_empty());
    assert!(
        spans.clone().count() > 5 && spans.clone().all(|line| line.ends_with("\"0s\"")),
        "{file}"
    );
    let waits = file
        .lines()
        .filter(|line| line.contains("_takes"))
        .filter(|line| !line.ends_with("\"0s\""));
    assert_eq!(waits.count(), 0, "{file}");
}

#[test]
fn a_description_does_not_print_its_passwords_and_secrets() {
    let server = "[[smb_server]]\nhost = 'h'\nusers = [{ name = 'u', password = 'hunter2' }]\n";
    let target = "[[iscsi_portal]]\naddress = 'p'\n[[iscsi_target]]\niqn = 'iqn'\nportals = \
                  [{ address = 'p' }]\n";
    let chap =
        "chap = { type = 'mutual', user = 'u', secret = 'hunter2', target_secret = 'hunter2' }\n";
    let description = Description::from_toml(&format!("{server}{target}{chap}"))
        .expect("the description is valid");
    assert!(!format!("{description:?}").contains("hunter2"));
}

/// Returns the keys that the parser accepts in the place of the key `no_such_key` of a node file.
fn accepted(file: &str) -> BTreeSet<String> {
    let error = Description::from_toml(file)
        .expect_err("an unknown key")
        .to_string();
    let (_, expected) = error
        .split_once("expected ")
        .unwrap_or_else(|| panic!("{error}"));
    expected
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_reference_has_every_key_that_the_parser_accepts_and_no_other() {
    let reference = include_str!("../../csi-proxy-sim/node-file.md");
    let disk = "[[disk]]\nsize = 1\n";
    let target = "[[iscsi_target]]\niqn = \"a\"\n";
    for (section, file) in [
        ("The node", "no_such_key = 1\n".to_owned()),
        ("`[timing]`", "[timing]\nno_such_key = 1\n".to_owned()),
        ("`[[disk]]`", format!("{disk}no_such_key = 1\n")),
        (
            "`spans` of a disk",
            format!("{disk}spans = [{{ no_such_key = 1 }}]\n"),
        ),
        ("`[[service]]`", "[[service]]\nno_such_key = 1\n".to_owned()),
        (
            "`[[smb_server]]`",
            "[[smb_server]]\nno_such_key = 1\n".to_owned(),
        ),
        (
            "`shares` of a server",
            "[[smb_server]]\nshares = [{ no_such_key = 1 }]\n".to_owned(),
        ),
        (
            "`users` of a server",
            "[[smb_server]]\nusers = [{ no_such_key = 1 }]\n".to_owned(),
        ),
        (
            "`[[smb_mapping]]`",
            "[[smb_mapping]]\nno_such_key = 1\n".to_owned(),
        ),
        (
            "`[[iscsi_portal]]`",
            "[[iscsi_portal]]\nno_such_key = 1\n".to_owned(),
        ),
        ("`[[iscsi_target]]`", format!("{target}no_such_key = 1\n")),
        (
            "`portals` of a target",
            format!("{target}portals = [{{ no_such_key = 1 }}]\n"),
        ),
        (
            "`luns` of a target",
            format!("{target}luns = [{{ no_such_key = 1 }}]\n"),
        ),
    ] {
        let text = reference
            .split(&format!("## {section}\n"))
            .nth(1)
            .unwrap_or_else(|| panic!("no section {section}"));
        let rows = text
            .lines()
            .take_while(|line| !line.starts_with("## "))
            .filter_map(|line| line.strip_prefix("| `"));
        let documented: BTreeSet<String> = rows
            .filter_map(|row| Some(row.split_once('`')?.0.to_owned()))
            .collect();
        assert_eq!(documented, accepted(&file), "{section}");
    }
}

#[test]
fn what_does_not_fit_together_is_refused_with_the_object() {
    let volume = "[[disk]]\nsize = \"1 GiB\"\ncontent = \"partitioned\"\n\
                  volume_id = \"12345678-1234-1234-1234-123456789abc\"\n";
    for (file, reason) in [
        (
            "[[disk]]\nsize = -5\n".to_owned(),
            "line 2: use a number that is not negative, or a text",
        ),
        (
            volume.repeat(2),
            "disk 2: another volume has the volume_id 12345678",
        ),
        (
            "[[disk]]\nsize = \"1 GiB\"\ncopy_of = 7\n".to_owned(),
            "disk 1: copy_of 7: no such disk",
        ),
        (
            format!("{volume}[[disk]]\nsize = \"1 MiB\"\ncopy_of = 1\n"),
            "the size must be",
        ),
        (
            format!("{volume}[[disk]]\nsize = \"8 MiB\"\ncopy_of = 1\n"),
            "copy_of 1: the original is larger",
        ),
        (
            "[[disk]]\nsize = \"1 GiB\"\n[[file]]\nkind = \"mount\"\npath = 'C:\\a'\ndisk = 1\n"
                .to_owned(),
            r"disk 1, which is to be mounted at C:\a, has no volume",
        ),
    ] {
        let error = Sim::from_toml(&file).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn the_node_files_of_the_reference_are_valid() {
    let reference = include_str!("../../csi-proxy-sim/node-file.md");
    let blocks: Vec<&str> = reference
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        created(block);
    }
}
