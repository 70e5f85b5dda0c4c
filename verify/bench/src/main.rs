//! Races csi-proxy against other servers that answer PathExists.
//!
//! On Linux, csi-proxy-sim races against minimal servers of grpc-go (`go/server`) and tonic ([`serve`]). Under Wine,
//! csi-proxy.exe races against the csi-proxy written in Go. `cargo xtask bench` builds the programs and starts the race.
//!
//! All servers are measured right after each other, round by round, each time in another order. Other load on the machine
//! therefore affects all of them, and only ratios within one round are compared.

use std::error::Error;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

mod counters;
mod load;
mod race;
mod serve;

#[derive(Parser)]
#[command(name = "csi-proxy-bench", about = "Races csi-proxy against other servers")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure all servers, and print a table
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
        Command::Race(options) => race::run(&options),
        Command::Load(options) => load::run(options).await,
        Command::Serve { socket_folder, root } => serve::run(socket_folder, root).await,
    }
}
