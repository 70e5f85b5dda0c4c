//! What the OK of each operation promises: tests of promises that no other test holds.

use os::abi::ControlCode;
use os::{Access, NtPath, Open, Options, Os as _, U16String};
use storage_ops::ErrorKind;

use crate::setup::{link, map_at, mapped, node_on, path, refused};
use crate::{links, smb_states};

#[test]
fn a_link_of_the_other_kind_than_its_source_is_not_identical() {
    let sim = os_sim::node()
        .file(r"C:\var\lib\kubelet\plugins\x", b"content")
        .build();
    let (external, node) = (sim.external(), node_on(&sim));
    let source = path(r"\plugins\x").to_string();
    // The links were made when the source was of the other kind.
    node.run(&link(r"\plugins\x", r"\pods\file")).unwrap();
    external.remove(&source).unwrap();
    node.run(&link(r"\plugins\x", r"\pods\directory")).unwrap();
    // As long as the source is missing, either may be right.
    for target in [r"\pods\file", r"\pods\directory"] {
        node.run(&link(r"\plugins\x", target)).unwrap();
    }
    for (right, wrong, words) in [
        (r"\pods\directory", r"\pods\file", "a link for a file"),
        (r"\pods\file", r"\pods\directory", "a link for a directory"),
    ] {
        if right == r"\pods\directory" {
            external.mkdir(&source).unwrap();
        } else {
            external.remove(&source).unwrap();
            external.write(&source, b"content").unwrap();
        }
        node.run(&link(r"\plugins\x", right)).unwrap();
        let before = sim.snapshot();
        let error = refused(&node, &link(r"\plugins\x", wrong), ErrorKind::AlreadyExists);
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(sim.snapshot(), before);
    }
}

#[test]
fn a_link_for_a_file_at_the_local_path_is_refused_before_the_share_is_mapped() {
    const SHARE: &str = r"C:\var\lib\kubelet\plugins\share";
    const FILE: &str = r"C:\var\lib\kubelet\plugins\file";
    let sim = smb_states::sim();
    let (external, node) = (sim.external(), node_on(&sim));
    let request = |local| map_at(r"\\files\one", r"domain\user", "pw", local);
    node.run(&request(SHARE)).unwrap();
    // The same link as an administrator makes it with mklink and without /D.
    external.write(FILE, b"").unwrap();
    let mut data = [0; 1024];
    let how = Open::existing(Access::READ_ATTRIBUTES, Options::REPARSE_POINT);
    let link = NtPath::from_win32(&U16String::from_str(SHARE));
    let filled = sim
        .open(&link, &how)
        .unwrap()
        .control(ControlCode::FSCTL_GET_REPARSE_POINT, &[], &mut data)
        .unwrap();
    links::set_reparse_point(&sim, FILE, &data[..filled]);
    assert!(external.read_dir(SHARE).is_ok());
    assert!(external.read_dir(FILE).is_err());
    node.run(&smb_states::unmap(r"\\files\one")).unwrap();
    let error = refused(&node, &request(FILE), ErrorKind::AlreadyExists);
    assert!(error.to_string().contains("a link for a file"), "{error}");
    assert!(mapped(&sim).is_empty());
    node.run(&request(SHARE)).unwrap();
}
