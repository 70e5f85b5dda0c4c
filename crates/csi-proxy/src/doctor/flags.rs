//! The flags of `doctor`: those of the command, and those of the daemon that it examines.

use std::path::PathBuf;

use crate::flags::table::{either, switch};
use crate::flags::{Flag, FlagKind, Flags, Program, Section};

/// The values of all flags.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct DoctorFlags {
    /// The flags of the daemon.
    pub daemon: Flags,
    /// Compare the two ways to read the node, instead of examining it.
    pub compare_provider: bool,
    /// Print JSON.
    pub json: bool,
    /// Show names and serial numbers.
    pub show_names: bool,
    /// Show only what is not as it should be.
    pub explain: bool,
    /// The file that describes the node, for `csi-proxy-sim`.
    pub node_file: Option<PathBuf>,
}

impl AsMut<Flags> for DoctorFlags {
    fn as_mut(&mut self) -> &mut Flags {
        &mut self.daemon
    }
}

/// The flags of the command itself.
pub const EXAMINATION: Section<DoctorFlags> = Section {
    title: "Examination",
    flags: &[
        Flag {
            name: "compare-provider",
            kind: FlagKind::Switch,
            default: "false",
            help: "Read disks and volumes natively and through Windows' storage provider. List the \
                   differences.",
            set: |flags, text| switch(text).map(|on| flags.compare_provider = on),
        },
        Flag {
            name: "o",
            kind: FlagKind::Value("FORMAT"),
            default: "text",
            help: "Format of the output: text or json.",
            set: |flags, text| either(text, "text", "json").map(|is_json| flags.json = is_json),
        },
        Flag {
            name: "show-names",
            kind: FlagKind::Switch,
            default: "false",
            help: "Show serial numbers, share names, targets and accounts. Default: replace each \
                   by a name such as serial-1.",
            set: |flags, text| switch(text).map(|on| flags.show_names = on),
        },
        Flag {
            name: "x",
            kind: FlagKind::Switch,
            default: "false",
            help: "Show only what is not as it should be, and one line if all is well.",
            set: |flags, text| switch(text).map(|on| flags.explain = on),
        },
    ],
};

/// The command `csi-proxy doctor`.
pub static CSI_PROXY_DOCTOR: Program<DoctorFlags> = Program {
    name: "csi-proxy doctor",
    about: "Examines this node for problems of csi-proxy, and changes nothing.",
    commands: &[("[FLAGS]", "examine; FLAGS override those of the daemon")],
    own_flags: &[EXAMINATION],
};
