//! How the costs of calls grow with the node: not at all, or with each disk, volume or entry by as much as each of them
//! must cost. `docs/growth.md` has larger sizes. This is a test binary by itself because it counts the allocations of its
//! whole process.

use std::error::Error;

use call_costs::growth::deletion::{self, Shape};
use call_costs::growth::node::{Added, Step, steps, with_disks, with_volumes};
use call_costs::growth::page::{self, DISKS, VOLUMES, primitive_calls};
use call_costs::growth::{Cost, costs};

/// By how much the averages of costs that do not grow may differ for each call: a tree in which something is looked up may
/// move an entry to another node of it, and a task that the call before woke may end late.
const ALLOCATIONS: f64 = 2.5;
const BYTES: f64 = 768.0;

/// Returns how `many` differs from what it should be: as much as `few`, and what `objects` further ones add.
fn differences(step: &Step, few: Cost, many: Cost, objects: &[(u32, Added)]) -> Vec<String> {
    let sum = |figure: fn(&Added) -> u32| objects.iter().map(|(count, added)| f64::from(count * figure(added))).sum();
    let (calls, allocations): (f64, f64) = (sum(|added| added.calls), sum(|added| added.allocations));
    let made = f64::from(u32::try_from(step.calls.len()).unwrap_or(u32::MAX));
    let (spare, bytes) = (made * ALLOCATIONS, made * BYTES);
    let added = [
        ("primitive calls", few.primitives, many.primitives, calls, calls),
        ("WMI calls", few.wmi, many.wmi, 0.0, 0.0),
        ("allocations", few.allocations, many.allocations, -spare, allocations + spare),
        ("bytes allocated", few.bytes, many.bytes, -bytes, if allocations > 0.0 { f64::MAX } else { bytes }),
    ];
    let wrong = added.into_iter().filter(|(_, few, many, least, most)| !(*least..=*most).contains(&(many - few)));
    wrong.map(|(what, few, many, ..)| format!("{}: {few} {what}, then {many}", step.name)).collect()
}

fn on_nodes() -> Result<Vec<String>, Box<dyn Error>> {
    let (steps, page) = (steps()?, page::read()?);
    let mut found = Vec::new();
    let mut of_page = |sizes: &[usize], size: usize, costs: &[Cost]| {
        for (step, cost) in steps.iter().zip(costs) {
            let (counted, listed) = (cost.primitives.to_string(), primitive_calls(&page, sizes, step.name, size));
            if listed.as_ref() != Some(&counted) {
                found.push(format!("{}: {counted} primitive calls, docs/growth.md has {listed:?}", step.name));
            }
        }
    };
    let disks = [DISKS[0], DISKS[2]];
    let [few, many] = [costs(&with_disks(disks[0]), &steps, 0)?, costs(&with_disks(disks[1]), &steps, 0)?];
    of_page(&DISKS, disks[0], &few);
    of_page(&DISKS, disks[1], &many);
    let volumes = [VOLUMES[0], VOLUMES[1]];
    let [one, ten] = [costs(&with_volumes(volumes[0])?, &steps, 0)?, costs(&with_volumes(volumes[1])?, &steps, 0)?];
    of_page(&VOLUMES, volumes[1], &ten);
    let connected = costs(&with_disks(disks[0]), &steps, 256)?;
    for (at, step) in steps.iter().enumerate() {
        println!("{}: {:?}, {:?}, {:?}", step.name, few[at], many[at], ten[at]);
        found.extend(differences(step, few[at], many[at], &[(15, step.per_disk)]));
        // The volumes are on one further disk.
        found.extend(differences(step, one[at], ten[at], &[(1, step.per_disk), (9, step.per_volume)]));
        found.extend(differences(step, few[at], connected[at], &[]));
    }
    Ok(found)
}

fn of_deletion() -> Result<Vec<String>, Box<dyn Error>> {
    let mut found = Vec::new();
    for (shape, sizes, allocations) in [
        (Shape::Flat, [1000, 4000], 2.2),
        (Shape::Tens, [1000, 4000], 3.0),
        // The simulator walks up from each directory to the root.
        (Shape::Nested, [100, 400], 8.0),
    ] {
        let [few, many] = [deletion::cost(shape, sizes[0])?, deletion::cost(shape, sizes[1])?];
        println!("{shape:?}: {few:?}, {many:?}");
        let grows = many.primitives > few.primitives || many.allocations > few.allocations || many.bytes > few.bytes;
        if grows || many.allocations > allocations {
            found.push(format!("{}: {few:?} for each of {} entries, {many:?} of {}", shape.name(), sizes[0], sizes[1]));
        }
    }
    Ok(found)
}

#[test]
fn costs_grow_with_nothing_or_with_each_disk_volume_and_entry() {
    let mut found = on_nodes().expect("the calls succeed");
    found.extend(of_deletion().expect("the calls succeed"));
    assert!(found.is_empty(), "{}", found.join("\n"));
}
