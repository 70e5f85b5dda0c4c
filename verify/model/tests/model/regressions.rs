//! Sequences that once found a defect of csi-proxy or a gap in the model.

use crate::reference_model::{Model, USERS, password};
use crate::system_under_test::SystemUnderTest;
use crate::transition::{Call, Event, Transition, VolumeName};

fn replay(transitions: impl IntoIterator<Item = Transition>) {
    let mut model = Model::new();
    let mut system = SystemUnderTest::new();
    system.check_state(&model);
    for transition in transitions {
        model = model.apply(&transition);
        system.apply(&model, &transition);
    }
    system.check_all_reads(&model);
    system.stop();
}

/// A call in its newest version.
fn call(call: Call) -> Transition {
    Transition::Call(call, 0)
}

/// A path in the plugin directory.
fn plugins(below: &str) -> String {
    format!(r"C:\var\lib\kubelet\plugins\{below}")
}

fn map(local: &str) -> Transition {
    let (remote, password) = (r"\\files\one".to_owned(), password(USERS[0], 0));
    call(Call::NewSmbGlobalMapping {
        remote,
        local: local.to_owned(),
        user: USERS[0],
        password,
    })
}

fn link(source: &str, link: &str) -> Transition {
    call(Call::CreateSymlink {
        source: plugins(source),
        link: plugins(link),
    })
}

#[test]
fn reads_and_retries_during_an_outage_do_not_remove_a_mapping() {
    let (read, outage) = (call(Call::IsSymlink(plugins("d"))), |is_over| {
        Event::SmbReachable(is_over).into()
    });
    replay([
        map(&plugins("d")),
        outage(false),
        read,
        map(""),
        map(""),
        outage(true),
        map(""),
    ]);
}

#[test]
fn a_link_to_a_file_is_not_treated_as_a_directory() {
    replay([
        Event::WriteFile(plugins("d")).into(),
        link("d", r"a\l"),
        call(Call::Mkdir(plugins(r"a\l"))),
    ]);
}

#[test]
fn an_occupied_link_path_is_reported_although_the_source_is_unreachable() {
    let remove = call(Call::RemoveSmbGlobalMapping(r"\\files\one".to_owned()));
    replay([
        map(&plugins("d")),
        remove,
        link(r"d\x", "a"),
        link(r"d\x", r"a\new"),
    ]);
}

#[test]
fn a_link_may_point_into_a_volume_that_is_not_formatted_yet() {
    let mount = call(Call::MountVolume(VolumeName::Known(3), plugins("b")));
    replay([
        mount,
        link(r"b\later", r"a\l"),
        call(Call::FormatVolume(VolumeName::Known(3))),
    ]);
}

#[test]
fn a_link_to_a_dangling_link_is_a_link() {
    replay([
        link("missing", r"a\x"),
        link(r"a\x", r"a\y"),
        call(Call::IsSymlink(plugins(r"a\y"))),
    ]);
}

#[test]
fn a_disk_that_was_never_enumerated_can_be_detached_and_attached_again() {
    let hidden = || Event::AttachNew { enumerated: false }.into();
    let again = Event::Attach { enumerated: true }.into();
    replay([hidden(), hidden(), Event::Detach(9).into(), again]);
}

#[test]
fn resizing_uses_the_space_by_which_a_disk_grew_after_partitioning() {
    let volume = || VolumeName::Known(7);
    let fill = call(Call::ResizeVolume(volume(), 0));
    let transitions = [
        Event::Grow(7).into(),
        call(Call::PartitionDisk(7)),
        call(Call::FormatVolume(volume())),
    ];
    replay(transitions.clone());
    replay(transitions.into_iter().chain([fill]));
}
