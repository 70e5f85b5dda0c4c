//! Tests that names of shares are compared as Windows compares them.

use os::OsError;
use storage_ops::{RemoveSmbGlobalMapping, UncPath};

use crate::setup::{failing_on, map, mapped, node_on, probed};

/// `backup`, with the Kelvin sign for the k. Unicode's lower case of the sign is k.
const KELVIN: &str = "\\\\files\\bac\u{212a}up";

#[test]
fn contract_28_a_request_for_a_share_with_a_kelvin_sign_leaves_the_mapping_of_the_one_with_a_k() {
    let sim = os_sim::node()
        .smb_server("files")
        .share("backup")
        .user("one", "pw")
        .user("other", "pw")
        .build();
    node_on(&sim)
        .run(&map(r"\\files\backup", r"FILES\one", "pw"))
        .unwrap();
    let before = sim.snapshot();
    // The server has no share of that name.
    let missing = failing_on(
        "open",
        |object| object.contains('\u{212a}'),
        OsError::BAD_NET_NAME,
    );
    let node = probed(&sim, missing);
    node.run(&RemoveSmbGlobalMapping {
        remote: UncPath::parse(KELVIN).unwrap(),
    })
    .unwrap_err();
    let _ = node.run(&map(KELVIN, r"FILES\other", "pw"));
    assert!(mapped(&sim).contains(&r"\\files\backup".to_owned()));
    assert_eq!(sim.snapshot(), before);
}
