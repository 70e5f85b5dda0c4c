//! The flags of `doctor`: its own, and those of the daemon that it examines.

use std::path::PathBuf;

use crate::flags::table::switch;
use crate::flags::{Flag, Flags, Kind};
use crate::program::Program;

/// The values of all flags.
#[derive(Clone, Debug, Default)]
pub struct DoctorFlags {
    /// The flags of the daemon.
    pub daemon: Flags,
    /// Compare the two ways to read the node, instead of examining it.
    pub parity: bool,
    /// Print JSON.
    pub json: bool,
    /// Show names and serial numbers.
    pub show_names: bool,
    /// The file that describes the node, for `csi-proxy-sim`.
    pub node_file: Option<PathBuf>,
}

impl AsMut<Flags> for DoctorFlags {
    fn as_mut(&mut self) -> &mut Flags {
        &mut self.daemon
    }
}

const SECTION: &str = "Examination";

/// The flag `-parity`.
pub const PARITY: Flag<DoctorFlags> = Flag {
    name: "parity",
    kind: Kind::Switch,
    default: "false",
    help: "Read disks and volumes natively and through Windows' storage provider, and list the differences.",
    section: SECTION,
    set: |flags, text| switch(text).map(|on| flags.parity = on),
};

/// The flag `-o`.
pub const OUTPUT: Flag<DoctorFlags> = Flag {
    name: "o",
    kind: Kind::Value("FORMAT"),
    default: "text",
    help: "text or json.",
    section: SECTION,
    set: |flags, text| {
        flags.json = match text {
            "text" => false,
            "json" => true,
            _ => return Err("expected text or json".to_owned()),
        };
        Ok(())
    },
};

/// The flag `-show-names`.
pub const SHOW_NAMES: Flag<DoctorFlags> = Flag {
    name: "show-names",
    kind: Kind::Switch,
    default: "false",
    help: "Show serial numbers, share names, targets and accounts instead of names such as serial-1.",
    section: SECTION,
    set: |flags, text| switch(text).map(|on| flags.show_names = on),
};

/// The command `csi-proxy doctor`.
pub static CSI_PROXY_DOCTOR: Program<DoctorFlags> = Program {
    name: "csi-proxy doctor",
    about: "Examines this node for what keeps csi-proxy from working. Changes nothing.",
    commands: &[("[FLAGS]", "examine, with the flags of the service or these")],
    own_flags: &[PARITY, OUTPUT, SHOW_NAMES],
};
