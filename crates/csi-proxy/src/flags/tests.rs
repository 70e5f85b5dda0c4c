//! Each flag in each spelling, and invalid command lines.

use std::time::Duration;

use super::{Flag, FlagError, FlagKind, Flags, TABLE, flags_of};
use crate::program::CSI_PROXY;
use tracing::Level;

fn parse(line: &[&str]) -> Result<Flags, FlagError> {
    CSI_PROXY.parse(line.iter().map(|&text| text.to_owned()))
}

fn parsed(line: &[&str]) -> Flags {
    parse(line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

/// All flags of the daemon.
fn all() -> impl Iterator<Item = &'static Flag> {
    flags_of(CSI_PROXY.own_flags).chain(flags_of(&TABLE))
}

/// A value that each flag can have.
fn sample(name: &str) -> &'static str {
    match name {
        "kubelet-path"
        | "working-dir"
        | "node-path"
        | "format-again"
        | "kubelet-csi-plugins-path"
        | "kubelet-pod-path" => r"D:\kubelet",
        "api-groups" => "disk,volume",
        "services" => "MSiSCSI",
        "smb-servers" => "files.example.com",
        "iscsi-portals" => "10.0.0.5",
        "format-file-system" => "ReFS",
        "format-allocation-unit" => "65536",
        "pipe-sid" | "format-writer-sid" => "S-1-5-93-2-1",
        "stderrthreshold" => "warning",
        "logging-format" => "json",
        "max-connections" | "drain" | "v" | "log_file_max_size" => "7",
        _ => "some/where",
    }
}

#[test]
fn every_flag_can_be_written_in_every_way_that_go_allows() {
    for flag in all() {
        let name = flag.name;
        let (value, apart) = match flag.kind {
            FlagKind::Switch => ("false", None),
            FlagKind::Value(_) | FlagKind::Values(_) => (
                sample(name),
                Some([format!("-{name}"), sample(name).to_owned()]),
            ),
        };
        let one = format!("{:?}", parsed(&[&format!("-{name}={value}")]));
        assert_eq!(
            format!("{:?}", parsed(&[&format!("--{name}={value}")])),
            one
        );
        if let Some(apart) = apart {
            assert_eq!(
                format!("{:?}", CSI_PROXY.parse(apart).unwrap()),
                one,
                "-{name} {value}"
            );
        }
        assert!(
            flag.kind == FlagKind::Switch || one != format!("{:?}", CSI_PROXY.defaults()),
            "-{name} changes nothing"
        );
    }
}

#[test]
fn every_switch_can_be_turned_on_and_off() {
    for flag in all().filter(|flag| flag.kind == FlagKind::Switch) {
        let name = flag.name;
        let bare = format!("{:?}", parsed(&[&format!("-{name}")]));
        assert_eq!(bare, format!("{:?}", parsed(&[&format!("--{name}=1")])));
        assert!(
            matches!(
                parse(&[&format!("-{name}=perhaps")]),
                Err(FlagError::BadValue(..))
            ),
            "-{name}"
        );
        if !flag.default.is_empty() {
            assert_ne!(
                bare,
                format!("{:?}", parsed(&[&format!("-{name}=F")])),
                "-{name} changes nothing"
            );
        }
    }
}

#[test]
fn the_command_line_of_an_installation_keeps_its_meaning() {
    let flags = parsed(&[
        "-windows-service",
        r"-log_file=\etc\kubernetes\logs\csi-proxy.log",
        "-logtostderr=false",
        "-v=5",
        "-working-dir",
        r"C:\csi",
        r"--working-dir=D:\more",
        r"-kubelet-path=D:\var\lib\kubelet",
        "-require-privacy=false",
        "-metrics-bind-address",
        ":8888",
        "-metrics-bind-address=,10.0.0.7:9818,localhost:9819",
    ]);
    assert!(flags.windows_service && !flags.log.to_stderr && !flags.node.require_privacy);
    assert_eq!(
        flags.log.file.unwrap().to_str(),
        Some(r"\etc\kubernetes\logs\csi-proxy.log")
    );
    assert_eq!(flags.log.verbosity, 5);
    assert_eq!(
        flags
            .node
            .working_dirs
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        [r"C:\csi", r"D:\more"]
    );
    assert_eq!(flags.node.kubelet_dir.to_string(), r"D:\var\lib\kubelet");
    assert_eq!(
        flags.metrics_addresses,
        [":8888", "10.0.0.7:9818", "localhost:9819"]
    );
}

#[test]
fn without_flags_the_defaults_of_the_table_hold() {
    let flags = parsed(&[]);
    let upstream = storage_ops::Config::default();
    assert_eq!(format!("{:?}", flags.node), format!("{upstream:?}"));
    assert!(flags.log.to_stderr && !flags.windows_service);
    assert_eq!(flags.api_groups, api::Group::ALL);
    let node = &flags.node;
    assert!(
        node.services.is_none() && node.smb_servers.is_none() && node.iscsi_portals.is_none(),
        "all are allowed"
    );
    assert_eq!(
        (flags.log.verbosity, flags.log.megabytes, flags.drain),
        (0, 1800, Duration::from_secs(30))
    );
    let limits = server::Limits::default();
    assert_eq!(flags.max_connections, limits.connections);
}

#[test]
fn klog_names_the_format_of_its_lines_too() {
    for (name, is_json) in [("text", false), ("klog", false), ("json", true)] {
        assert_eq!(
            parsed(&["-logging-format", name]).log.is_json,
            is_json,
            "{name}"
        );
    }
}

#[test]
fn the_folder_of_the_log_has_an_effect_where_it_has_one_in_klog() {
    let file = |line: &[&str]| parsed(line).log.file.map(|file| file.display().to_string());
    assert_eq!(
        file(&["-log_dir=logs"]),
        None,
        "the log is written to standard error"
    );
    assert_eq!(
        file(&["-log_dir=logs", "-alsologtostderr"]),
        None,
        "it is not written to a file"
    );
    assert_eq!(
        parsed(&["-log_dir=logs"]).without_effect,
        ["log_dir"],
        "the log says so"
    );
    assert!(
        parsed(&["-log_dir=logs", "-logtostderr=false"])
            .without_effect
            .is_empty()
    );
    for line in [
        &["-log_dir=logs", "-logtostderr=false"][..],
        &["-log_dir=logs", "-logtostderr=false", "-alsologtostderr"],
    ] {
        let named = file(line).unwrap();
        assert!(
            named.starts_with("logs") && named.ends_with("csi-proxy.log"),
            "{named}"
        );
    }
    assert_eq!(
        file(&["-log_dir=logs", "-log_file=x.log", "-logtostderr=false"]).as_deref(),
        Some("x.log")
    );
    for (text, severity) in [
        ("INFO", Some(Level::INFO)),
        ("warning", Some(Level::WARN)),
        ("2", Some(Level::ERROR)),
        ("FATAL", None),
    ] {
        assert_eq!(
            parsed(&[&format!("-stderrthreshold={text}")])
                .log
                .stderr_threshold,
            severity
        );
    }
    assert!(parse(&["-stderrthreshold=4"]).is_err() && parse(&["-logging-format=xml"]).is_err());
}

#[test]
fn the_last_of_two_values_wins_and_a_switch_takes_no_value_after_a_blank() {
    assert_eq!(parsed(&["-v=1", "-v", "4"]).log.verbosity, 4);
    let flags = parsed(&["-logtostderr", "false", "-v=5"]);
    assert!(flags.log.to_stderr);
    assert_eq!(
        (flags.rest, flags.log.verbosity),
        (vec!["false".to_owned(), "-v=5".to_owned()], 0)
    );
    assert_eq!(parsed(&["--", "-v=5"]).rest, ["-v=5"]);
}

#[test]
fn an_invalid_command_line_is_refused_in_one_sentence() {
    for (line, sentence) in [
        (&["-nonsense"][..], "unknown flag -nonsense"),
        (
            &["-kubelet_path=x"],
            "unknown flag -kubelet_path: did you mean -kubelet-path?",
        ),
        (&["-v"], "flag -v needs a value"),
        (
            &["-v=much"],
            "invalid value 'much' for flag -v: expected a whole number",
        ),
        (
            &["-require-privacy=yes"],
            "invalid value 'yes' for flag -require-privacy: expected true or false",
        ),
        (&["---v=1"], "'---v=1' is not a valid flag"),
        (&["-=1"], "'-=1' is not a valid flag"),
        (
            &["-format-file-system=FAT32"],
            "invalid value 'FAT32' for flag -format-file-system: expected NTFS or ReFS",
        ),
        (
            &["-format-allocation-unit=5000"],
            "invalid value '5000' for flag -format-allocation-unit: NTFS has no allocation units \
             of 5000 bytes",
        ),
        (
            &["-format-allocation-unit=8192", "-format-file-system=ReFS"],
            "invalid value '8192' for flag -format-allocation-unit: ReFS has no allocation units \
             of 8192 bytes",
        ),
        (
            &["-format-writer-sid=Users"],
            "invalid value 'Users' for flag -format-writer-sid: expected a SID, such as \
             S-1-5-93-2-2",
        ),
        (
            &["-node=x"],
            "unknown flag -node: csi-proxy-sim serves a simulated node",
        ),
        (
            &["-socket-folder=x"],
            "unknown flag -socket-folder: csi-proxy-sim serves a simulated node",
        ),
    ] {
        assert_eq!(parse(line).unwrap_err().to_string(), sentence);
    }
    // A limit that would leave nothing to serve.
    for value in ["0", "-1", "many"] {
        let sentence = format!(
            "invalid value '{value}' for flag -max-connections: expected a whole number of at \
             least 1"
        );
        assert_eq!(
            parse(&[&format!("-max-connections={value}")])
                .unwrap_err()
                .to_string(),
            sentence
        );
    }
    assert_eq!(parsed(&["-drain=0"]).drain, Duration::ZERO);
    let path = parse(&["-kubelet-path=kubelet"]).unwrap_err().to_string();
    assert!(
        path.ends_with("the path \"kubelet\" is not an absolute path on a drive"),
        "{path}"
    );
    assert_eq!(parse(&["-help"]).unwrap_err(), FlagError::Help);
}

#[test]
fn the_flags_that_were_given_read_as_a_command_line() {
    let given = |flags: &[&str]| parsed(flags).shown.command_line();
    assert_eq!(
        given(&["-v", "2", "-logtostderr=false"]),
        "-v=2 -logtostderr=false"
    );
    let folder = r"C:\Program Files\csi";
    assert_eq!(
        given(&["-log_dir", folder, "-v=2"]),
        format!("'-log_dir={folder}' -v=2")
    );
    assert_eq!(given(&["-services=a, it's"]), "'-services=a, it''s'");
    assert_eq!(given(&[]), "");
}

#[test]
fn a_list_has_items_separated_by_commas_and_is_empty_if_it_is_none() {
    let node = parsed(&[
        "-services=MSiSCSI, csi driver",
        "-smb-servers",
        "a,b@8443",
        "-iscsi-portals=none",
    ])
    .node;
    assert_eq!(
        node.services
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["MSiSCSI", "csi driver"]
    );
    assert_eq!(
        (
            node.smb_servers.unwrap().len(),
            node.iscsi_portals.unwrap().len()
        ),
        (2, 0)
    );
    assert_eq!(
        parsed(&["-api-groups=volume, disk"]).api_groups,
        [api::Group::Volume, api::Group::Disk]
    );
}

#[test]
fn an_invalid_list_is_refused_so_that_no_list_means_less_or_more_than_it_says() {
    let groups = "disk, filesystem, iscsi, smb, system, volume";
    let no_list = "expected a list separated by commas, or 'none'";
    for (flag, value, why) in [
        (
            "api-groups",
            "disk,nvme",
            format!("'nvme' is not one of {groups}"),
        ),
        (
            "api-groups",
            "Disk",
            format!("'Disk' is not one of {groups}"),
        ),
        ("api-groups", "", format!("'' is not one of {groups}")),
        (
            "api-groups",
            "none",
            format!("'none' is not one of {groups}"),
        ),
        ("services", "", no_list.to_owned()),
        (
            "services",
            "a,,b",
            "\"\" is not a valid service name".to_owned(),
        ),
        (
            "services",
            "a,b/c",
            "\"b/c\" is not a valid service name".to_owned(),
        ),
        ("smb-servers", "", no_list.to_owned()),
        (
            "smb-servers",
            r"\\files\share",
            r#""\\files\share" is not the name of an SMB server"#.to_owned(),
        ),
        ("iscsi-portals", "", no_list.to_owned()),
        (
            "iscsi-portals",
            "10.0.0.5:x",
            "\"10.0.0.5:x\" is not an address[:port], such as 10.0.0.5, 10.0.0.0/24 or \
             [fd00::1]:3260"
                .to_owned(),
        ),
    ] {
        let refused = parse(&[&format!("-{flag}={value}")])
            .unwrap_err()
            .to_string();
        assert_eq!(
            refused,
            format!("invalid value '{value}' for flag -{flag}: {why}")
        );
    }
}

#[test]
fn every_flag_has_a_unique_name_and_a_help_text_if_it_has_an_effect() {
    for (at, flag) in all().enumerate() {
        assert!(
            all().take(at).all(|other| other.name != flag.name),
            "{} twice",
            flag.name
        );
    }
    for section in &TABLE {
        let is_silent = section.title == super::table::WITHOUT_EFFECT;
        assert!(
            section
                .flags
                .iter()
                .all(|flag| flag.help.is_empty() == is_silent),
            "{}",
            section.title
        );
    }
}
