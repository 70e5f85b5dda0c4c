//! Writes the sources of the site to the folder in the first argument, from which mdBook makes the site. `cargo xtask docs`
//! runs it.

use std::env;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).ok_or("usage: site FOLDER")?;
    site::write(Path::new(&folder))
}
