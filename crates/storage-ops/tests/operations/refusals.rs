//! Tests of what the log has of a refusal beside the line of the failed call, which a flood of
//! other failures can hide.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use os::OsError;
use os_sim::Sim;
use storage_ops::{Config, ErrorKind::FailedPrecondition, Mkdir, Node, Rmdir};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::setup::{contents, has_code, map, mkdir, mount, ntfs, path, refused, says, volume_on};

/// A log that notes the statement and the text of each line, except those for debugging.
#[derive(Default)]
pub(crate) struct Log(Mutex<Vec<(Identifier, String)>>);

impl Log {
    /// Returns how many lines contain these words.
    pub(crate) fn with(&self, words: &str) -> usize {
        self.0
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, text)| text.contains(words))
            .count()
    }
}

/// The values of a line.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{field}={value:?} ").expect("a String takes any text");
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0
            .lock()
            .unwrap()
            .push((event.metadata().callsite(), text.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn each_kind_of_refusal_has_a_line_and_a_statement_of_its_own() {
    let server = os_sim::node()
        .smb_server("files")
        .share("one")
        .user("anna", "right-secret");
    let sim: Sim = server.build();
    sim.external()
        .symlink(r"C:\var\lib\kubelet\pods\out", r"C:\Windows")
        .unwrap();
    let node = Node::new(
        sim.process(),
        Config::default().with(|c| c.refuse_other_smb_passwords = true),
    );
    node.run(&map(r"\\files\one", r"FILES\anna", "right-secret"))
        .unwrap();
    let warnings = Arc::new(Log::default());
    tracing::subscriber::with_default(Arc::clone(&warnings), || {
        refused(
            &node,
            &map(r"\\files\one", r"FILES\anna", "wrong-secret"),
            FailedPrecondition,
        );
        refused(
            &node,
            &map(r"\\files\one", r"FILES\thief", "wrong-secret"),
            FailedPrecondition,
        );
        let (path, context) = (path(r"\pods\out\a\b"), None);
        refused(
            &node,
            &Mkdir {
                path: path.clone(),
                context,
            },
            FailedPrecondition,
        );
        refused(
            &node,
            &Rmdir {
                path,
                context,
                force: false,
            },
            FailedPrecondition,
        );
    });
    assert_eq!(node.links_refused(), 2);
    let warnings = warnings.0.lock().unwrap();
    let texts: Vec<&str> = warnings.iter().map(|(_, text)| text.as_str()).collect();
    let [password, user, mkdir, rmdir] = warnings.as_slice() else {
        panic!("{texts:#?}")
    };
    for (warning, words) in [
        (password, ["refused another password", r"files\one", "anna"]),
        (user, ["refused another user", r"files\one", "thief"]),
        (mkdir, ["refused a link", "path", r"pods\out\a\b"]),
        (rmdir, ["refused a link", "path", r"pods\out\a\b"]),
    ] {
        let text = warning.1.replace(r"\\", r"\").replace(r"\\", r"\");
        assert!(words.iter().all(|word| text.contains(word)), "{texts:#?}");
        assert!(!warning.1.contains("secret"), "{texts:#?}");
    }
    assert!(password.0 != user.0 && password.0 != mkdir.0 && user.0 != mkdir.0);
}

#[test]
fn a_link_at_the_end_of_a_path_is_refused_like_one_on_the_way() {
    let sim = ntfs().build();
    sim.external()
        .symlink(r"C:\var\lib\kubelet\pods\out", r"C:\outside")
        .unwrap();
    let node = Node::new(sim.process(), Config::default());
    let volume = volume_on(&node, 1);
    let contents = refused(&node, &contents(r"\pods\out"), FailedPrecondition);
    let mount = refused(&node, &mount(volume, r"\pods\out"), FailedPrecondition);
    let way = refused(&node, &mkdir(r"\pods\out\a"), FailedPrecondition);
    for error in [&contents, &mount, &way] {
        has_code(error, OsError::REPARSE_POINT_ENCOUNTERED);
        says(error, ": out is a link and is not followed: ");
    }
    assert_eq!(node.links_refused(), 3);
}

/// Why a call that the Go program carries out is refused.
enum Refusal {
    /// A deployed driver makes the call. The error names the flag that allows it.
    Flag(&'static str),
    /// The call would endanger the node itself.
    Node,
    /// The call would cross a boundary between containers or tenants.
    Boundary,
    /// The call would endanger data.
    Data,
    /// No deployed driver makes the call: the sequences in sim/csi-proxy-sim/drivers run without it.
    NoDriver,
}

/// The refusals in the tables of differences of docs/design.md, by the first words of their rows.
const REFUSALS: &[(&str, Refusal)] = &[
    ("a request without `target_portal`", Refusal::Node),
    ("FormatVolume, MountVolume, ResizeVolume", Refusal::Node),
    ("`containment`", Refusal::Boundary),
    ("`name-ends`", Refusal::Boundary),
    ("`device-names`", Refusal::Boundary),
    ("`characters`", Refusal::NoDriver),
    ("`IsSymlink-paths`", Refusal::NoDriver),
    ("`context`", Refusal::NoDriver),
    ("`working-directory`", Refusal::Data),
    ("`final-separator`", Refusal::Data),
    ("`dots-in-names`", Refusal::Boundary),
    ("`length`", Refusal::NoDriver),
    (
        "links in a path, below a working directory",
        Refusal::Flag("-working-dir"),
    ),
    ("Mkdir of a link", Refusal::NoDriver),
    ("RmdirContents of a link", Refusal::Boundary),
    (
        "RmdirContents of a volume that is also mounted",
        Refusal::Data,
    ),
    ("disk numbers as text", Refusal::Data),
    ("GetDiskNumberByName |", Refusal::Data),
    (
        "GetDiskNumberByName, while a disk cannot be read",
        Refusal::Data,
    ),
    ("PartitionDisk of a disk with an MBR", Refusal::Data),
    ("PartitionDisk of a disk with a file system", Refusal::Data),
    (
        "ListVolumesOnDisk, a partition without a volume",
        Refusal::Data,
    ),
    (
        "ListVolumesOnDisk, an offline disk with partitions",
        Refusal::Data,
    ),
    ("IsVolumeFormatted of an unreadable volume", Refusal::Data),
    ("FormatVolume of a volume", Refusal::Flag("-format-again")),
    ("paths | not checked", Refusal::Flag("-working-dir")),
    (
        "UnmountVolume where another volume is mounted",
        Refusal::Data,
    ),
    ("UnmountVolume where nothing is mounted", Refusal::Data),
    (
        "GetVolumeIDFromTargetPath of a link to a plain directory",
        Refusal::Node,
    ),
    ("a share of the node itself without a user", Refusal::Node),
    ("a user of blanks", Refusal::Boundary),
    ("a semicolon in a server", Refusal::Boundary),
    (
        "a second user on a mapped share",
        Refusal::Flag("-share-smb-mappings"),
    ),
    (
        "another password for a mapped share",
        Refusal::Flag("-refuse-other-smb-passwords"),
    ),
    ("remote paths that do not begin", Refusal::NoDriver),
    ("ports above 65535", Refusal::Boundary),
    ("addresses and target names", Refusal::Boundary),
    (
        "AddTargetPortal of a portal that does not answer",
        Refusal::NoDriver,
    ),
    ("ConnectTarget of a name with a session", Refusal::Boundary),
    ("DisconnectTarget of a name with sessions", Refusal::Data),
    ("DisconnectTarget while a volume", Refusal::Data),
    ("StartService of a paused service", Refusal::NoDriver),
];

#[test]
fn each_refusal_of_a_call_that_the_go_program_carries_out_has_a_flag_or_protects_something() {
    let page = include_str!("../../../../docs/design.md");
    let texts = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/texts.txt");
    let texts = std::fs::read_to_string(texts).unwrap_or_default();
    let (_, differences) = page
        .split_once("## Differences from the Go program")
        .expect("the section exists");
    let rows: Vec<&str> = differences
        .lines()
        .filter(|row| {
            let cells: Vec<&str> = row.split(" | ").collect();
            let ours = cells[cells.len().saturating_sub(2)];
            row.starts_with("| ")
                && ["refuses", "an error", "fails"]
                    .iter()
                    .any(|word| ours.contains(word))
        })
        .collect();
    for row in &rows {
        let known = REFUSALS.iter().any(|(words, _)| row.contains(words));
        assert!(known, "say why this is refused, or give it a flag: {row}");
    }
    for (words, why) in REFUSALS {
        assert!(
            differences
                .lines()
                .any(|row| row.starts_with("| ") && row.contains(words)),
            "docs/design.md has no row {words:?}"
        );
        if let Refusal::Flag(flag) = why {
            assert!(
                // Other tests are writing the texts.
                std::env::var_os("BLESS").is_some()
                    || texts.lines().any(|text| text.contains(flag)),
                "no error names {flag}"
            );
        }
    }
}
