//! Rules of this source tree that neither rustc nor clippy knows.
//!
//! They run as `cargo xtask lint` and, so that nobody can forget them, as a test of this crate.

use std::fs;

use crate::{Outcome, workspace};

mod crate_deps;
mod source;

/// Prints what breaks a rule; true when nothing does.
pub(crate) fn run() -> Outcome {
    let breaches = breaches()?;
    for breach in &breaches {
        println!("{breach}");
    }
    println!("lint: {} breaches", breaches.len());
    Ok(breaches.is_empty())
}

/// Everything in this tree that breaks a rule, one line each.
fn breaches() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let metadata = workspace::metadata()?;
    let mut breaches = crate_deps::breaches(&crate_deps::of(&metadata));
    let root = workspace::root();
    for file in source::files(&root)? {
        let text = fs::read_to_string(root.join(&file))?;
        breaches.extend(source::breaches(&file, &text));
    }
    Ok(breaches)
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_tree_keeps_its_rules() {
        let breaches = super::breaches().expect("cargo metadata and the sources");
        assert!(breaches.is_empty(), "{}", breaches.join("\n"));
    }
}
