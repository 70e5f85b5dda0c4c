//! How the costs of calls grow with the node: not at all, or with each disk, volume or entry by what that object must cost.
//! This is a test program by itself because it counts the allocations of its whole process.

use std::error::Error;

use call_costs::call::Call;
use call_costs::counts::{Cost, Rounds, of};
use call_costs::growth::{Added, Shape, Step, of_deletion, steps, with_disks, with_volumes};

/// By how much the averages of costs that do not grow may differ for each call: a tree in which something is looked up may
/// move an entry to another node of it, and a task that the call before woke may end late.
const ALLOCATIONS: f64 = 2.5;
const BYTES: f64 = 768.0;

/// The connections that are open besides those that make the calls.
const CONNECTIONS: usize = 256;

/// Returns how `many` differs from what it should be: as much as `few`, and what `objects` further objects add.
fn differences(step: &Step, few: Cost, many: Cost, objects: &[(u32, Added)]) -> Vec<String> {
    let sum = |figure: fn(&Added) -> u32| objects.iter().map(|(count, added)| f64::from(count * figure(added))).sum();
    let calls: f64 = sum(|added| added.calls);
    let allocations: f64 = sum(|added| added.allocations);
    let made = f64::from(u32::try_from(step.calls.len()).unwrap_or(u32::MAX));
    let (spare, bytes) = (made * ALLOCATIONS, made * BYTES);
    let most_bytes = if allocations > 0.0 { f64::MAX } else { bytes };
    let added = [
        ("primitive calls", few.primitives, many.primitives, calls, calls),
        ("WMI calls", few.wmi, many.wmi, 0.0, 0.0),
        ("allocations", few.allocations, many.allocations, -spare, allocations + spare),
        ("bytes allocated", few.bytes, many.bytes, -bytes, most_bytes),
    ];
    let wrong = added.into_iter().filter(|(_, few, many, least, most)| !(*least..=*most).contains(&(many - few)));
    wrong.map(|(what, few, many, ..)| format!("{}: {few} {what}, then {many}", step.calls[0].name)).collect()
}

/// One test, since tests that run at the same time would count each other's allocations.
#[test]
fn costs_grow_with_nothing_or_with_each_disk_volume_and_entry() -> Result<(), Box<dyn Error>> {
    check_nodes()?;
    check_deletion()
}

fn check_nodes() -> Result<(), Box<dyn Error>> {
    let steps = steps()?;
    let calls: Vec<&[Call]> = steps.iter().map(|step| &step.calls[..]).collect();
    let one = of(&with_disks(1), &calls, Rounds::FEW, 0)?;
    let disks = of(&with_disks(16), &calls, Rounds::FEW, 0)?;
    let volumes = of(&with_volumes(10)?, &calls, Rounds::FEW, 0)?;
    let connections = of(&with_disks(1), &calls, Rounds::FEW, CONNECTIONS)?;
    let mut found = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        println!("{}: {:?}, {:?}, {:?}", step.calls[0].name, one[at], disks[at], volumes[at]);
        if (one[at].primitives - f64::from(step.primitives)).abs() > 0.0 {
            found.push(format!(
                "{}: {} primitive calls, not {}",
                step.calls[0].name, one[at].primitives, step.primitives
            ));
        }
        found.extend(differences(step, one[at], disks[at], &[(15, step.per_disk)]));
        // The volumes are on one further disk.
        found.extend(differences(step, one[at], volumes[at], &[(1, step.per_disk), (9, step.per_volume)]));
        found.extend(differences(step, one[at], connections[at], &[]));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

/// The costs of removing an entry do not grow with the tree.
fn check_deletion() -> Result<(), Box<dyn Error>> {
    // The simulator walks up from each directory to the root, so nested trees are small.
    for (shape, sizes, allocations) in
        [(Shape::Flat, [1000, 4000], 2.2), (Shape::Tens, [1000, 4000], 3.0), (Shape::Nested, [100, 400], 8.0)]
    {
        let [few, many] = [of_deletion(shape, sizes[0])?, of_deletion(shape, sizes[1])?];
        println!("{shape:?}: {few:?}, {many:?}");
        let grows = many.primitives > few.primitives || many.allocations > few.allocations || many.bytes > few.bytes;
        assert!(!grows && many.allocations <= allocations, "{shape:?}: {few:?}, {many:?} in a larger tree");
    }
    Ok(())
}
