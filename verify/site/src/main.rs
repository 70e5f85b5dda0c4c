//! Writes the sources of the site to a folder, from which mdBook makes the site. `cargo xtask site`
//! runs it.

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;

#[derive(Parser)]
#[command(
    name = "site",
    about = "Writes the sources of the documentation site, for mdBook"
)]
struct Arguments {
    /// The folder to write
    folder: PathBuf,
}

fn main() -> Result<(), Box<dyn Error>> {
    site::write(&Arguments::parse().folder)
}
