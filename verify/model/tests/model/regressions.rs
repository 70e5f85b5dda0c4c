//! Sequences that once showed a defect, or something that the model did not know, replayed.

use crate::reference_model::{Model, password};
use crate::system_under_test::SystemUnderTest;
use crate::transition::{Call, Event, Id, Transition};

fn replay(steps: impl IntoIterator<Item = Transition>) {
    let mut node = Model::new();
    let mut served = SystemUnderTest::new();
    served.agree(&node);
    for step in steps {
        node = node.step(&step);
        served.take(&node, &step);
    }
    served.audit(&node);
    served.stop();
}

/// A call in its newest version.
fn call(call: Call) -> Transition {
    Transition::Call(call, 0)
}

/// A path in kubelet's directory for plugins.
fn plugins(below: &str) -> String {
    format!(r"C:\var\lib\kubelet\plugins\{below}")
}

fn map(local: &str) -> Transition {
    let (remote, password) = (r"\\files\one".to_owned(), password("anna", 0));
    call(Call::NewSmbGlobalMapping { remote, local: local.to_owned(), user: "anna", password })
}

fn link(source: &str, link: &str) -> Transition {
    call(Call::CreateSymlink { source: plugins(source), link: plugins(link) })
}

#[test]
fn a_retry_during_an_outage_does_not_remove_a_mapping() {
    replay([map(""), Event::Network(false).into(), map(""), map(""), Event::Network(true).into(), map("")]);
}

#[test]
fn a_look_during_an_outage_does_not_cost_a_mapping_either() {
    let look = call(Call::IsSymlink(plugins("d")));
    replay([map(&plugins("d")), Event::Network(false).into(), look, map("")]);
}

#[test]
fn a_link_to_a_file_is_not_taken_for_a_directory() {
    replay([Event::File(plugins("d")).into(), link("d", r"a\l"), call(Call::Mkdir(plugins(r"a\l")))]);
}

#[test]
fn something_in_the_way_of_a_link_is_told_though_its_source_is_out_of_reach() {
    let forget = call(Call::RemoveSmbGlobalMapping(r"\\files\one".to_owned()));
    replay([map(&plugins("d")), forget, link(r"d\x", "a"), link(r"d\x", r"a\new")]);
}

#[test]
fn a_link_can_lead_to_what_a_volume_will_have_once_it_is_formatted() {
    let mount = call(Call::MountVolume(Id::Of(3), plugins("b")));
    replay([mount, link(r"b\later", r"a\l"), call(Call::FormatVolume(Id::Of(3)))]);
}

#[test]
fn a_link_to_a_link_is_one_whatever_that_leads_to() {
    replay([link("gone", r"a\x"), link(r"a\x", r"a\y"), call(Call::IsSymlink(plugins(r"a\y")))]);
}

#[test]
fn a_disk_that_grew_behind_its_table_is_filled_by_growing_its_volume() {
    let volume = || Id::Of(7);
    let fill = call(Call::ResizeVolume(volume(), 0));
    let steps = [Event::Grow(7).into(), call(Call::PartitionDisk(7)), call(Call::FormatVolume(volume()))];
    replay(steps.clone());
    replay(steps.into_iter().chain([fill]));
}
