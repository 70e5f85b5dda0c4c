//! The calls of Windows that a call makes are those in `docs/call-costs.md`, and its allocations
//! are bounded. This is a test program by itself because it counts the allocations of its whole
//! process.

use std::fmt::Write as _;
use std::{env, fs};

use call_costs::call::{self, Call};
use call_costs::counts::{Cost, Rounds, of};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/call-costs.md");

/// The head of the table.
const HEAD: &str = "| call | primitive calls | WMI calls | writes |\n|---|--:|--:|--:|\n";
/// The most allocations of `PathExists`, 20 % more than were counted in November 2026.
const MOST_ALLOCATIONS: f64 = 23.0;
/// The most bytes of these allocations, 20 % more than were counted. A copy of the response's
/// buffer, or a buffer of a fixed size, adds more.
const MOST_BYTES: f64 = 4700.0;

#[test]
fn the_calls_of_windows_are_those_of_the_page_and_allocations_are_bounded() {
    let mut table = HEAD.to_owned();
    for call in Call::all().expect("the calls") {
        let steps = [std::slice::from_ref(&call)];
        let costs = of(&call::node(), &steps, Rounds::EXACT, 0).expect("the call is answered");
        let Cost {
            primitives,
            wmi,
            writes,
            allocations,
            bytes,
        } = costs[0];
        let name = call.name;
        // An average of calls that is not a whole number differs from the page. A write may fall
        // into the round before or after.
        writeln!(table, "| {name} | {primitives} | {wmi} | {writes:.0} |").expect("a row");
        println!("{name}: {allocations} allocations, {bytes} bytes");
        if call == Call::path_exists() {
            assert!(
                allocations <= MOST_ALLOCATIONS && bytes <= MOST_BYTES,
                "{allocations} allocations of {bytes} bytes"
            );
        }
    }
    let page = fs::read_to_string(PAGE)
        .expect("the page")
        .replace("\r\n", "\n");
    let (_, rest) = page.split_once(HEAD).expect("the table");
    let end = rest.find("\n\n").map_or(rest.len(), |end| end + 1);
    let renewed = page.replace(&[HEAD, &rest[..end]].concat(), &table);
    if env::var_os("BLESS").is_some() {
        fs::write(PAGE, &renewed).expect("the page is written");
    } else {
        assert!(
            page == renewed,
            "`cargo xtask bless` writes this table:\n{table}"
        );
    }
}
