//! The costs of calls, except instructions, are those in `docs/call-costs.md`.
//!
//! `BLESS=1 cargo test -p csi-proxy-call-costs` writes them to the page. This is a test program by
//! itself because it counts the allocations of its whole process.

use std::{env, fs};

use call_costs::call::{self, Call};
use call_costs::counts::{Cost, Rounds, of};
use call_costs::table;

#[test]
fn the_costs_of_calls_are_those_of_the_page() {
    let page = table::page().expect("the page");
    let bless = env::var_os("BLESS").is_some();
    if let Some(why) = table::why_incomparable(&page) {
        assert!(
            !bless,
            "{why}; write the version of this compiler into the page first"
        );
        println!("skipped: the_costs_of_calls_are_those_of_the_page: {why}");
        return;
    }
    let row = |call: Call| {
        let costs = of(
            &call::node(),
            &[std::slice::from_ref(&call)],
            Rounds::EXACT,
            0,
        )
        .expect("the call is answered");
        let Cost {
            primitives,
            wmi,
            writes,
            allocations,
            bytes,
        } = costs[0];
        (
            call.name.to_owned(),
            vec![primitives, wmi, writes, allocations, bytes],
        )
    };
    let rows: Vec<_> = Call::all()
        .expect("the calls")
        .into_iter()
        .map(row)
        .collect();
    if bless {
        let page = table::COUNTS.replaced(&page, &rows).expect("a table");
        return fs::write(table::file(), page).expect("the page is written");
    }
    let differences = table::COUNTS.differences(&page, &rows).expect("a table");
    assert!(
        differences.is_empty(),
        "renew docs/call-costs.md with `BLESS=1 cargo test -p csi-proxy-call-costs`:\n{}",
        differences.join("\n")
    );
}
