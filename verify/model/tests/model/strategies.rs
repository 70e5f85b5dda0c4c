//! Which step comes next: one that makes sense on the node as it is, or is slightly wrong.

use std::rc::Rc;

use proptest::prelude::*;
use proptest::sample::select;

use crate::directory_tree::{Entry, Names, Target, all};
use crate::reference_model::{CHAP, GIB, KUBELET, MIB, MUTUAL, Model, PLAIN, PORTAL, SHARES, USERS, password};
use crate::transition::{Call, Event, Id, Transition};

type Calls = BoxedStrategy<Call>;
type Choice<T> = fn(&Model) -> BoxedStrategy<T>;

/// The next step on a node.
pub(crate) fn step(node: &Model) -> BoxedStrategy<Transition> {
    let node = Rc::new(node.clone());
    // The group is drawn first, so that only its choices need to be laid out.
    let groups = prop_oneof![
        6 => Just(disk as Choice<Call>),
        5 => Just(volume as Choice<Call>),
        5 => Just(mount as Choice<Call>),
        10 => Just(filesystem as Choice<Call>),
        4 => Just(smb as Choice<Call>),
        2 => Just(system as Choice<Call>),
        3 => Just(iscsi as Choice<Call>),
    ];
    let of_group = Rc::clone(&node);
    let calls = groups.no_shrink().prop_flat_map(move |choose| choose(&of_group));
    // The newest version is what drivers use most.
    let version = prop_oneof![2 => Just(0_usize), 1 => 0..6_usize];
    prop_oneof![
        12 => (calls, version).prop_map(|(call, version)| Transition::Call(call, version)),
        1 => Just(()).prop_flat_map(move |()| event(&node)).prop_map(Transition::Event),
    ]
    .boxed()
}

fn number(node: &Model) -> BoxedStrategy<u32> {
    let known: Vec<u32> = node.disks.keys().copied().collect();
    prop_oneof![12 => select(known), 1 => select(vec![0, 99, u32::MAX])].boxed()
}

/// The number of a disk whose coming and going no iSCSI target decides.
fn movable(node: &Model) -> BoxedStrategy<u32> {
    let of = node.disks.iter().filter(|(_, disk)| disk.key != 0 && !(20..30).contains(&disk.key));
    let known: Vec<u32> = of.map(|(number, _)| *number).collect();
    if known.is_empty() { Just(99).boxed() } else { select(known).boxed() }
}

fn id(node: &Model) -> BoxedStrategy<Id> {
    let present: Vec<Id> =
        node.disks.values().filter(|disk| disk.volume.is_some()).map(|disk| Id::Of(disk.key)).collect();
    let any: Vec<Id> = node.disks.values().chain(&node.drawer).map(|disk| Id::Of(disk.key)).collect();
    let wrong = vec![Id::Nobody, Id::Text(""), Id::Text("-1"), Id::Text(r"C:\")];
    prop_oneof![12 => select(present), 2 => select(any), 1 => select(wrong)].boxed()
}

fn disk(node: &Model) -> Calls {
    let names = vec!["pvc-1", "Google  pvc-1", "pvc-2", "600a", "pvc-4", "7", "late", "nobody"];
    prop_oneof![
        1 => Just(Call::ListDiskLocations),
        1 => Just(Call::ListDiskIds),
        1 => select(names).prop_map(Call::GetDiskNumberByName),
        2 => number(node).prop_map(Call::GetDiskStats),
        2 => number(node).prop_map(Call::GetDiskState),
        3 => (number(node), prop::bool::weighted(0.7)).prop_map(|(disk, online)| Call::SetDiskState(disk, online)),
        3 => number(node).prop_map(Call::PartitionDisk),
        1 => Just(Call::Rescan),
    ]
    .boxed()
}

/// Sizes that are not those of disks, so that what there is room for is never in doubt.
fn size() -> BoxedStrategy<i64> {
    let between = |step: u64| i64::try_from(step * GIB + 512 * MIB).expect("small");
    let sizes: Vec<i64> = (0..6).map(between).collect();
    prop_oneof![4 => Just(0), 4 => select(sizes), 1 => select(vec![-1, i64::MIN, i64::MAX, 1])].boxed()
}

fn volume(node: &Model) -> Calls {
    let id = || id(node);
    prop_oneof![
        2 => (number(node), prop_oneof![4 => Just(0_u32), 1 => 0..4_u32])
            .prop_map(|(disk, part)| Call::ListVolumesOnDisk(disk, part)),
        2 => id().prop_map(Call::IsVolumeFormatted),
        3 => id().prop_map(Call::FormatVolume),
        1 => (number(node), size()).prop_map(|(disk, size)| Call::ResizeDisk(disk, size)),
        3 => (id(), size()).prop_map(|(id, size)| Call::ResizeVolume(id, size)),
        3 => id().prop_map(Call::GetVolumeStats),
        1 => id().prop_map(Call::GetDiskNumberFromVolumeId),
        1 => id().prop_map(Call::WriteVolumeCache),
    ]
    .boxed()
}

/// Volumes in their places.
fn mount(node: &Model) -> Calls {
    let (id, at) = (|| id(node), || loose_path(node));
    prop_oneof![
        1 => (id(), at()).prop_map(|(id, at)| Call::MountVolume(id, at)),
        3 => (id(), mountable(node)).prop_map(|(id, at)| Call::MountVolume(id, at)),
        1 => (id(), at()).prop_map(|(id, at)| Call::UnmountVolume(id, at)),
        2 => mounted(node).prop_map(|(id, at)| Call::UnmountVolume(id, at)),
        3 => at().prop_map(Call::GetVolumeIdFromTargetPath),
        1 => at().prop_map(Call::GetClosestVolumeIdFromTargetPath),
    ]
    .boxed()
}

fn filesystem(node: &Model) -> Calls {
    let path = || strict_path(node);
    prop_oneof![
        2 => path().prop_map(Call::PathExists),
        3 => path().prop_map(Call::Mkdir),
        3 => (path(), any::<bool>()).prop_map(|(path, force)| Call::Rmdir(path, force)),
        1 => path().prop_map(Call::RmdirContents),
        3 => (path(), path()).prop_map(|(source, link)| Call::CreateSymlink { source, link }),
        1 => identical(node),
        3 => loose_path(node).prop_map(Call::IsSymlink),
    ]
    .boxed()
}

/// The link that is there, once more.
fn identical(node: &Model) -> Calls {
    let mut again = Vec::new();
    for (names, entry) in below(node) {
        if let Entry::Link(Target::Path(target)) = entry {
            again.push(Call::CreateSymlink { source: text(target), link: text(&names) });
        }
    }
    if again.is_empty() { strict_path(node).prop_map(Call::Mkdir).boxed() } else { select(again).boxed() }
}

fn remote() -> BoxedStrategy<String> {
    let share = select(SHARES.to_vec());
    let known = (share, 0..6_u8).prop_map(|(share, form)| match form {
        0 => format!("//files/{share}"),
        1 => format!(r"\\FILES\{}\", share.to_uppercase()),
        2 => format!(r"\\files\{share}\sub"),
        _ => format!(r"\\files\{share}"),
    });
    let wrong = ["", r"\\files", r"\\files\", r"\\files\none", r"\\nobody\one"].map(str::to_owned).to_vec();
    prop_oneof![8 => known, 1 => select(wrong)].boxed()
}

fn smb(node: &Model) -> Calls {
    let passwords = node.passwords.clone();
    let local = prop_oneof![2 => Just(String::new()), 2 => strict_path(node)];
    let map = (remote(), local, select(USERS.to_vec()), prop::bool::weighted(0.85));
    let map = map.prop_map(move |(remote, local, user, right)| {
        let password = if right { password(user, passwords[user]) } else { password(user, 99) };
        Call::NewSmbGlobalMapping { remote, local, user, password }
    });
    prop_oneof![4 => map, 1 => remote().prop_map(Call::RemoveSmbGlobalMapping)].boxed()
}

fn system(_: &Model) -> Calls {
    let service = || select(vec!["base", "middle", "top", "off", "nobody"]);
    prop_oneof![
        1 => Just(Call::GetBiosSerialNumber),
        3 => service().prop_map(Call::GetService),
        3 => service().prop_map(Call::StartService),
        3 => (service(), any::<bool>()).prop_map(|(name, force)| Call::StopService(name, force)),
    ]
    .boxed()
}

fn iscsi(_: &Model) -> Calls {
    let portal = || prop_oneof![9 => Just(PORTAL), 1 => Just("10.0.0.99")];
    let iqn = || prop_oneof![6 => select(vec![PLAIN, CHAP, MUTUAL]), 1 => Just("iqn.2026-01.io.k8s.csi:nobody")];
    let login = prop_oneof![
        3 => Just((PLAIN, "NONE", "")),
        2 => Just((CHAP, "ONE_WAY_CHAP", "secret-secret")),
        2 => Just((MUTUAL, "MUTUAL_CHAP", "secret-secret")),
        2 => (
            iqn(),
            select(vec!["NONE", "ONE_WAY_CHAP", "MUTUAL_CHAP"]),
            select(vec!["secret-secret", "wrong-wrong-1"]),
        ),
    ];
    prop_oneof![
        1 => Just(Call::ListTargetPortals),
        4 => portal().prop_map(Call::AddTargetPortal),
        1 => portal().prop_map(Call::DiscoverTargetPortal),
        1 => portal().prop_map(Call::RemoveTargetPortal),
        5 => login.prop_map(|(iqn, method, secret)| Call::ConnectTarget { iqn, method, secret }),
        2 => iqn().prop_map(Call::DisconnectTarget),
        3 => iqn().prop_map(Call::GetTargetDisks),
        1 => select(vec!["mutual-secret", "wrong-wrong-1", "short"]).prop_map(Call::SetMutualChapSecret),
    ]
    .boxed()
}

fn event(node: &Model) -> BoxedStrategy<Event> {
    prop_oneof![
        4 => movable(node).prop_map(Event::Grow),
        2 => movable(node).prop_map(Event::Detach),
        4 => any::<bool>().prop_map(|noticed| Event::Attach { noticed }),
        1 => any::<bool>().prop_map(|noticed| Event::Another { noticed }),
        3 => Just(Event::Restart),
        3 => prop::bool::weighted(0.6).prop_map(Event::Network),
        1 => select(USERS.to_vec()).prop_map(Event::Rotate),
        3 => strict_path(node).prop_map(Event::Directory),
        3 => strict_path(node).prop_map(Event::File),
    ]
    .boxed()
}

/// All below kubelet's directory.
fn below(node: &Model) -> Vec<(Names, &Entry)> {
    let mut found = all(&node.files);
    found.retain(|(names, _)| {
        names.len() > KUBELET.len() && names.iter().zip(KUBELET).all(|(name, known)| name == known)
    });
    found
}

fn text(names: &[String]) -> String {
    format!(r"C:\{}", names.join("\\"))
}

/// A path in a working directory, mostly: something there, something that could be, something behind a link.
fn names(node: &Model) -> BoxedStrategy<Names> {
    // Without the two that everything else is in.
    let entries: Vec<Names> =
        below(node).into_iter().map(|(names, _)| names).filter(|names| names.len() > KUBELET.len() + 1).collect();
    let directories: Vec<Names> = below(node)
        .into_iter()
        .filter(|(names, entry)| matches!(entry, Entry::Directory(_)) && names.len() < KUBELET.len() + 4)
        .map(|(names, _)| names)
        .chain([KUBELET.map(str::to_owned).to_vec()])
        .collect();
    let base = || select(directories.clone());
    let fresh = || select(vec!["a", "b", "c", "d"]);
    let child = move |(mut names, name): (Names, &str)| {
        names.push(name.to_owned());
        names
    };
    let there = if entries.is_empty() { base().boxed() } else { select(entries).boxed() };
    prop_oneof![
        8 => there.clone(),
        6 => (base(), fresh()).prop_map(child),
        1 => ((base(), fresh()).prop_map(child), fresh()).prop_map(child),
        2 => (there, fresh()).prop_map(child),
    ]
    .boxed()
}

const WRONG: [&str; 11] = [
    "",
    r"pods\a",
    r"C:\outside\precious",
    r"C:\var\lib\kubelet-evil",
    r"C:\var\lib\kubelet-evil\a",
    r"C:\var\lib\kubelet\pods\..\..\..\..\outside",
    r"C:\var\lib\kubelet\pods\a:b",
    r"C:\var\lib\kubelet\pods\a*b",
    r"\\files\one\sub",
    r"C:\var\lib",
    r"C:\var\lib\kubelet",
];

fn mostly(node: &Model, spell: impl Fn(Names, u8) -> String + 'static) -> BoxedStrategy<String> {
    let spelled = (names(node), 0..12_u8).prop_map(move |(names, form)| spell(names, form));
    let long = format!(r"C:\var\lib\kubelet\pods\{}", "x".repeat(260));
    let wrong = WRONG.map(str::to_owned).into_iter().chain([long]).collect::<Vec<_>>();
    prop_oneof![15 => spelled, 1 => select(wrong)].boxed()
}

fn spelled(names: &[String], form: u8) -> String {
    let plain = text(names);
    match form {
        0 => plain.to_uppercase(),
        1 => plain.replace("C:", "c:"),
        _ => plain,
    }
}

/// A path as it must be, now and then without a drive or with slashes, which must be refused.
fn strict_path(node: &Model) -> BoxedStrategy<String> {
    mostly(node, |names, form| match form {
        2 if names.len() % 5 == 0 => text(&names)[2..].to_owned(),
        3 if names.len() % 5 == 0 => text(&names).replace('\\', "/"),
        _ => spelled(&names, form),
    })
}

/// A path as some drivers write it.
fn loose_path(node: &Model) -> BoxedStrategy<String> {
    mostly(node, |names, form| match form {
        2 | 3 => text(&names)[2..].to_owned(),
        4 => text(&names)[2..].replace('\\', "/"),
        5 => text(&names).replace('\\', "/"),
        _ => spelled(&names, form),
    })
}

/// Where something can be mounted.
fn mountable(node: &Model) -> BoxedStrategy<String> {
    let empty = |(names, entry): (Names, &Entry)| {
        matches!(entry, Entry::Directory(inner) if inner.is_empty()).then(|| text(&names))
    };
    let found: Vec<String> = below(node).into_iter().filter_map(empty).collect();
    if found.is_empty() { loose_path(node) } else { select(found).boxed() }
}

/// What is mounted where.
fn mounted(node: &Model) -> BoxedStrategy<(Id, String)> {
    let mut found = Vec::new();
    for (names, entry) in below(node) {
        if let Entry::Mount(key) = entry {
            found.push((Id::Of(*key), text(&names)));
        }
    }
    if found.is_empty() { (id(node), loose_path(node)).boxed() } else { select(found).boxed() }
}
