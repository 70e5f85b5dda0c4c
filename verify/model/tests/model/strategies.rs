//! The strategies that choose the next transition: a valid one for the current state, or a slightly
//! invalid one.

use std::rc::Rc;

use proptest::prelude::*;
use proptest::sample::select;

use crate::directory_tree::{Entry, Names, Target, all};
use crate::reference_model::{GIB, KUBELET, MIB, Model, SHARES, USERS, password};
use crate::transition::{Call, Event, Transition, VolumeName};

type Calls = BoxedStrategy<Call>;
type Choice<T> = fn(&Model) -> BoxedStrategy<T>;

/// Returns the strategy for the next transition.
pub(crate) fn transition(model: &Model) -> BoxedStrategy<Transition> {
    let model = Rc::new(model.clone());
    // The group is drawn first, so that only the strategies of that group are built.
    let groups = prop_oneof![
        6 => Just(disk as Choice<Call>),
        5 => Just(volume as Choice<Call>),
        5 => Just(mount as Choice<Call>),
        10 => Just(filesystem as Choice<Call>),
        4 => Just(smb as Choice<Call>),
    ];
    let of_group = Rc::clone(&model);
    let calls = groups
        .no_shrink()
        .prop_flat_map(move |choose| choose(&of_group));
    // Drivers use the newest version most.
    let version = prop_oneof![2 => Just(0_usize), 1 => 0..6_usize];
    prop_oneof![
        12 => (calls, version).prop_map(|(call, version)| Transition::Call(call, version)),
        1 => Just(()).prop_flat_map(move |()| event(&model)).prop_map(Transition::Event),
    ]
    .boxed()
}

fn number(model: &Model) -> BoxedStrategy<u32> {
    let known: Vec<u32> = model.disks.keys().copied().collect();
    prop_oneof![12 => select(known), 1 => select(vec![0, 99, u32::MAX])].boxed()
}

/// The number of a disk that is not the system disk.
fn hotpluggable(model: &Model) -> BoxedStrategy<u32> {
    let of = model.disks.iter().filter(|(_, disk)| disk.key != 0);
    let known: Vec<u32> = of.map(|(number, _)| *number).collect();
    if known.is_empty() {
        Just(99).boxed()
    } else {
        select(known).boxed()
    }
}

fn id(model: &Model) -> BoxedStrategy<VolumeName> {
    let present: Vec<VolumeName> = model
        .disks
        .values()
        .filter(|disk| disk.volume.is_some())
        .map(|disk| VolumeName::Known(disk.key))
        .collect();
    let any: Vec<VolumeName> = model
        .disks
        .values()
        .chain(&model.detached)
        .map(|disk| VolumeName::Known(disk.key))
        .collect();
    let wrong = vec![
        VolumeName::Unknown,
        VolumeName::Malformed(""),
        VolumeName::Malformed("-1"),
        VolumeName::Malformed(r"C:\"),
    ];
    prop_oneof![12 => select(present), 2 => select(any), 1 => select(wrong)].boxed()
}

fn disk(model: &Model) -> Calls {
    let names = vec![
        "pvc-1",
        "Google  pvc-1",
        "pvc-2",
        "600a",
        "pvc-4",
        "7",
        "late",
        "unknown",
    ];
    prop_oneof![
        1 => Just(Call::ListDiskLocations),
        1 => Just(Call::ListDiskIds),
        1 => select(names).prop_map(Call::GetDiskNumberByName),
        2 => number(model).prop_map(Call::GetDiskStats),
        2 => number(model).prop_map(Call::GetDiskState),
        3 => (number(model), prop::bool::weighted(0.7)).prop_map(|(disk, online)| Call::SetDiskState(disk, online)),
        3 => number(model).prop_map(Call::PartitionDisk),
        1 => Just(Call::Rescan),
    ]
    .boxed()
}

/// Sizes that differ from those of disks, so that it is never ambiguous whether a volume fits.
fn size() -> BoxedStrategy<i64> {
    let between = |step: u64| i64::try_from(step * GIB + 512 * MIB).expect("small");
    let sizes: Vec<i64> = (0..6).map(between).collect();
    prop_oneof![4 => Just(0), 4 => select(sizes), 1 => select(vec![-1, i64::MIN, i64::MAX, 1])]
        .boxed()
}

fn volume(model: &Model) -> Calls {
    let id = || id(model);
    prop_oneof![
        2 => (number(model), prop_oneof![4 => Just(0_u32), 1 => 0..4_u32])
            .prop_map(|(disk, part)| Call::ListVolumesOnDisk(disk, part)),
        2 => id().prop_map(Call::IsVolumeFormatted),
        3 => id().prop_map(Call::FormatVolume),
        1 => (number(model), size()).prop_map(|(disk, size)| Call::ResizeDisk(disk, size)),
        3 => (id(), size()).prop_map(|(id, size)| Call::ResizeVolume(id, size)),
        3 => id().prop_map(Call::GetVolumeStats),
        1 => id().prop_map(Call::GetDiskNumberFromVolumeId),
        1 => id().prop_map(Call::WriteVolumeCache),
    ]
    .boxed()
}

/// Calls that mount volumes and find mounted ones.
fn mount(model: &Model) -> Calls {
    let (id, at) = (|| id(model), || loose_path(model));
    prop_oneof![
        1 => (id(), at()).prop_map(|(id, at)| Call::MountVolume(id, at)),
        3 => (id(), mountable(model)).prop_map(|(id, at)| Call::MountVolume(id, at)),
        1 => (id(), at()).prop_map(|(id, at)| Call::UnmountVolume(id, at)),
        2 => mounted(model).prop_map(|(id, at)| Call::UnmountVolume(id, at)),
        3 => at().prop_map(Call::GetVolumeIdFromTargetPath),
        1 => at().prop_map(Call::GetClosestVolumeIdFromTargetPath),
    ]
    .boxed()
}

fn filesystem(model: &Model) -> Calls {
    let path = || strict_path(model);
    prop_oneof![
        2 => path().prop_map(Call::PathExists),
        3 => path().prop_map(Call::Mkdir),
        3 => (path(), any::<bool>()).prop_map(|(path, force)| Call::Rmdir(path, force)),
        1 => path().prop_map(Call::RmdirContents),
        3 => (path(), path()).prop_map(|(source, link)| Call::CreateSymlink { source, link }),
        1 => identical(model),
        3 => loose_path(model).prop_map(Call::IsSymlink),
    ]
    .boxed()
}

/// A call that creates an existing link again.
fn identical(model: &Model) -> Calls {
    let mut again = Vec::new();
    for (names, entry) in below(model) {
        if let Entry::Link(Target::Path(target)) = entry {
            again.push(Call::CreateSymlink {
                source: text(target),
                link: text(&names),
            });
        }
    }
    if again.is_empty() {
        strict_path(model).prop_map(Call::Mkdir).boxed()
    } else {
        select(again).boxed()
    }
}

fn remote() -> BoxedStrategy<String> {
    let share = select(SHARES.to_vec());
    let known = (share, 0..6_u8).prop_map(|(share, form)| match form {
        0 => format!("//files/{share}"),
        1 => format!(r"\\FILES\{}\", share.to_uppercase()),
        2 => format!(r"\\files\{share}\sub"),
        _ => format!(r"\\files\{share}"),
    });
    let wrong = [
        "",
        r"\\files",
        r"\\files\",
        r"\\files\none",
        r"\\unknown\one",
    ]
    .map(str::to_owned)
    .to_vec();
    prop_oneof![8 => known, 1 => select(wrong)].boxed()
}

fn smb(model: &Model) -> Calls {
    let passwords = model.passwords.clone();
    let local = prop_oneof![2 => Just(String::new()), 2 => strict_path(model)];
    let map = (
        remote(),
        local,
        select(USERS.to_vec()),
        prop::bool::weighted(0.85),
    );
    let map = map.prop_map(move |(remote, local, user, right)| {
        let password = if right {
            password(user, passwords[user])
        } else {
            password(user, 99)
        };
        Call::NewSmbGlobalMapping {
            remote,
            local,
            user,
            password,
        }
    });
    prop_oneof![4 => map, 1 => remote().prop_map(Call::RemoveSmbGlobalMapping)].boxed()
}

fn event(model: &Model) -> BoxedStrategy<Event> {
    prop_oneof![
        4 => hotpluggable(model).prop_map(Event::Grow),
        2 => hotpluggable(model).prop_map(Event::Detach),
        4 => any::<bool>().prop_map(|enumerated| Event::Attach { enumerated }),
        1 => any::<bool>().prop_map(|enumerated| Event::AttachNew { enumerated }),
        3 => Just(Event::RestartDaemon),
        3 => prop::bool::weighted(0.6).prop_map(Event::SmbReachable),
        1 => select(USERS.to_vec()).prop_map(Event::ChangePassword),
        3 => strict_path(model).prop_map(Event::MakeDirectory),
        3 => strict_path(model).prop_map(Event::WriteFile),
    ]
    .boxed()
}

/// Returns all entries below the kubelet directory.
fn below(model: &Model) -> Vec<(Names, &Entry)> {
    let mut found = all(&model.files);
    found.retain(|(names, _)| {
        names.len() > KUBELET.len() && names.iter().zip(KUBELET).all(|(name, known)| name == known)
    });
    found
}

fn text(names: &[String]) -> String {
    format!(r"C:\{}", names.join("\\"))
}

/// A path below the kubelet directory: an existing entry, a new one, or one behind a link.
fn names(model: &Model) -> BoxedStrategy<Names> {
    // Without `plugins` and `pods`.
    let entries: Vec<Names> = below(model)
        .into_iter()
        .map(|(names, _)| names)
        .filter(|names| names.len() > KUBELET.len() + 1)
        .collect();
    let directories: Vec<Names> = below(model)
        .into_iter()
        .filter(|(names, entry)| {
            matches!(entry, Entry::Directory(_)) && names.len() < KUBELET.len() + 4
        })
        .map(|(names, _)| names)
        .chain([KUBELET.map(str::to_owned).to_vec()])
        .collect();
    let base = || select(directories.clone());
    let fresh = || select(vec!["a", "b", "c", "d"]);
    let child = move |(mut names, name): (Names, &str)| {
        names.push(name.to_owned());
        names
    };
    let existing = if entries.is_empty() {
        base().boxed()
    } else {
        select(entries).boxed()
    };
    prop_oneof![
        8 => existing.clone(),
        6 => (base(), fresh()).prop_map(child),
        1 => ((base(), fresh()).prop_map(child), fresh()).prop_map(child),
        2 => (existing, fresh()).prop_map(child),
    ]
    .boxed()
}

const INVALID_PATHS: [&str; 11] = [
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

fn path(model: &Model, spell: impl Fn(Names, u8) -> String + 'static) -> BoxedStrategy<String> {
    let spelled = (names(model), 0..12_u8).prop_map(move |(names, form)| spell(names, form));
    let long = format!(r"C:\var\lib\kubelet\pods\{}", "x".repeat(260));
    let wrong = INVALID_PATHS
        .map(str::to_owned)
        .into_iter()
        .chain([long])
        .collect::<Vec<_>>();
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

/// A path for RPCs that refuse paths without a drive and with forward slashes; some of them are
/// such.
fn strict_path(model: &Model) -> BoxedStrategy<String> {
    path(model, |names, form| match form {
        2 if names.len() % 5 == 0 => text(&names)[2..].to_owned(),
        3 if names.len() % 5 == 0 => text(&names).replace('\\', "/"),
        _ => spelled(&names, form),
    })
}

/// A path for RPCs that accept paths without a drive and with forward slashes.
fn loose_path(model: &Model) -> BoxedStrategy<String> {
    path(model, |names, form| match form {
        2 | 3 => text(&names)[2..].to_owned(),
        4 => text(&names)[2..].replace('\\', "/"),
        5 => text(&names).replace('\\', "/"),
        _ => spelled(&names, form),
    })
}

/// An empty directory, on which a volume can be mounted.
fn mountable(model: &Model) -> BoxedStrategy<String> {
    let empty = |(names, entry): (Names, &Entry)| {
        matches!(entry, Entry::Directory(inner) if inner.is_empty()).then(|| text(&names))
    };
    let found: Vec<String> = below(model).into_iter().filter_map(empty).collect();
    if found.is_empty() {
        loose_path(model)
    } else {
        select(found).boxed()
    }
}

/// A mounted volume and its mount point.
fn mounted(model: &Model) -> BoxedStrategy<(VolumeName, String)> {
    let mut found = Vec::new();
    for (names, entry) in below(model) {
        if let Entry::Mount(key) = entry {
            found.push((VolumeName::Known(*key), text(&names)));
        }
    }
    if found.is_empty() {
        (id(model), loose_path(model)).boxed()
    } else {
        select(found).boxed()
    }
}
