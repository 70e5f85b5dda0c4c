//! Races csi-proxy against other servers that answer PathExists.
//!
//! On Linux, csi-proxy-sim races against minimal servers of grpc-go (`go/server`) and tonic
//! ([`serve`]). Under Wine, csi-proxy.exe races against the csi-proxy written in Go.
//! `cargo xtask bench` builds the programs and starts the race.
//!
//! All servers are measured right after each other, round by round, each time in another order.
//! Other load on the machine therefore affects all of them, and only ratios within one round are
//! compared. What they are is in the table of docs/performance.md, which the race writes if the
//! tree is that of a commit and the machine is idle.

use std::error::Error;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

mod circumstances;
mod counters;
mod cycles;
mod load;
mod race;
mod serve;
mod table;

#[derive(Parser)]
#[command(
    name = "csi-proxy-bench",
    about = "Races csi-proxy against other servers"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure all servers, print a table of ratios, and write it to the pages
    Race(Box<race::Options>),
    /// Call PathExists again and again, and print how long the calls took
    Load(load::Options),
    /// Serve PathExists with tonic alone
    Serve {
        /// Folder for the sockets; created if missing
        #[arg(long)]
        socket_folder: PathBuf,
        /// Folder that represents C:\var\lib\kubelet
        #[arg(long)]
        root: PathBuf,
    },
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    match Arguments::parse().command {
        Command::Race(options) => race::run(&options).await,
        Command::Load(options) => load::run(options).await,
        Command::Serve {
            socket_folder,
            root,
        } => serve::run(socket_folder, root).await,
    }
}
