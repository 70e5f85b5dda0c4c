//! The demonstration: seven CSI drivers at work on a simulated node.
//!
//! The server is the real one, with all group-versions on sockets of their own. Each driver is played call by call, in
//! its own order and with its quirks, over real gRPC connections; what a driver does itself in its container goes
//! through the simulated node's side door. After each step the node is looked at: what is mounted where, what was
//! formatted how often, where links lead, how large things are. The tests play the same plays.

mod aws_ebs;
mod azuredisk;
mod azuredisk_beta;
mod azurefile_beta;
mod beta;
mod call;
mod daemon;
mod driver;
mod gce_pd;
mod gce_pd_beta;
mod longhorn;
mod screen;
mod smb;
mod summary;
mod v1;
mod vsphere;

use std::cell::RefCell;
use std::error::Error;
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::time::Instant;

use api::GROUP_VERSIONS;
use faults::Counts;

pub use daemon::Daemon;
pub use driver::{Difference, Driver, Outcome, Tally};
pub use screen::Screen;

type Playing<'a> = Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// What one driver does in the life of a volume.
pub struct Play {
    /// The driver.
    pub name: &'static str,
    /// What is particular about it.
    pub about: &'static str,
    calls: for<'a> fn(&'a Driver<'a>) -> Playing<'a>,
}

/// All plays. azurefile leaves its mapping behind, with which smb's credentials would be refused: smb comes first.
pub static PLAYS: [Play; 10] = [
    Play {
        name: "azuredisk",
        about: "finds its disk by LUN alone, and unstages by removing the mount point",
        calls: |driver| Box::pin(azuredisk::play(driver)),
    },
    Play {
        name: "azuredisk beta",
        about: "the versions before v1",
        calls: |driver| Box::pin(azuredisk_beta::play(driver)),
    },
    Play {
        name: "smb",
        about: "stages a share as a link, and removes the mapping that the link names",
        calls: |driver| Box::pin(smb::play_smb(driver)),
    },
    Play {
        name: "azurefile",
        about: "as smb, but leaves the mapping",
        calls: |driver| Box::pin(smb::play_azurefile(driver)),
    },
    Play {
        name: "azurefile beta",
        about: "the versions before v1, on the mapping that is there",
        calls: |driver| Box::pin(azurefile_beta::play(driver)),
    },
    Play {
        name: "gce-pd",
        about: "finds its disk by page 83, sends paths without a drive, leaves the disk offline",
        calls: |driver| Box::pin(gce_pd::play(driver)),
    },
    Play {
        name: "gce-pd beta",
        about: "the versions before v1, with an NVMe disk",
        calls: |driver| Box::pin(gce_pd_beta::play(driver)),
    },
    Play {
        name: "aws-ebs",
        about: "finds its disk by serial number, and reads the text of an error",
        calls: |driver| Box::pin(aws_ebs::play(driver)),
    },
    Play {
        name: "vsphere",
        about: "finds its disk by the whole of page 83, and makes a directory that is there",
        calls: |driver| Box::pin(vsphere::play(driver)),
    },
    Play {
        name: "longhorn",
        about: "an iSCSI target, whose disk comes and goes with the session",
        calls: |driver| Box::pin(longhorn::play(driver)),
    },
];

/// A play that was played.
pub struct Played {
    /// The driver.
    pub name: &'static str,
    /// What it came to.
    pub tally: Tally,
    /// What the daemon called of the node meanwhile.
    pub cost: Counts,
}

impl Play {
    /// Plays it, and looks at what it left behind.
    pub async fn play(&'static self, daemon: &Daemon, screen: &RefCell<Screen>) -> Played {
        let (calls, disks) = (daemon.counts(), daemon.sim().disks());
        let driver = Driver::new(daemon, screen);
        if let Err(difference) = (self.calls)(&driver).await {
            driver.differ(&format!("the play ends here: {difference}"));
        }
        let cost = daemon.counts() - &calls;
        driver.phase("Afterwards");
        driver.must_have_left_alone(&disks);
        Played { name: self.name, tally: driver.finish(), cost }
    }
}

/// Plays all to `out`, and says whether everything was as it should be.
pub fn show(out: impl Write + Send + 'static) -> Result<bool, Box<dyn Error>> {
    csi_proxy::serve::runtime()?.block_on(run(Screen::new(out)))
}

/// Plays all, and says whether everything was as it should be.
pub async fn run(screen: Screen) -> Result<bool, Box<dyn Error>> {
    let begun = Instant::now();
    let daemon = Daemon::start().await?;
    let screen = RefCell::new(screen);
    let rpcs: usize = GROUP_VERSIONS.iter().map(|row| row.rpcs.len()).sum();
    let up = format!("{} group-versions, {rpcs} RPCs", GROUP_VERSIONS.len());
    screen.borrow_mut().heading("csi-proxy", "on a simulated Windows node")?;
    screen.borrow_mut().say(&format!("  {up}, each on its socket in {}", daemon.folder().display()))?;
    screen
        .borrow_mut()
        .say(&format!("  all accept connections, {} after the start", screen::milliseconds(daemon.start)))?;

    screen.borrow_mut().columns()?;

    let mut played = Vec::with_capacity(PLAYS.len());
    for play in &PLAYS {
        screen.borrow_mut().heading(play.name, play.about)?;
        played.push(play.play(&daemon, &screen).await);
    }
    let unfinished = daemon.stop().await?;
    let mut screen = screen.into_inner();
    summary::show(&mut screen, &played, unfinished, begun.elapsed())
}
