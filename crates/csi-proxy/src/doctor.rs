//! The command `doctor`: examines the node and prints what it finds.
//!
//! The crate `doctor` makes the findings. Here are the command's flags, the settings of the daemon
//! that it examines, and the exit code.

mod flags;
mod running_daemon;

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use ::doctor::{
    Agreement, SeenDisk, Settings, State, compare, examine as examine_node, program_of,
};
use api::{GROUP_VERSIONS, Group};
use server::EndpointSpec;
use terminal_text::{escaped, escaped_json};

use crate::flags::help::Help;
use crate::flags::{FlagError, Flags, Program};
use crate::program::{CommandError, VERSION, is_broken_pipe, no_more};
use crate::serve::Backend;
use crate::{serve, service};

pub use ::doctor::System;
pub use flags::{CSI_PROXY_DOCTOR, DoctorFlags, EXAMINATION};

/// The exit code if a problem or difference was found.
const FOUND: u8 = 1;
/// The exit code if the node could not be examined.
const NOT_RUN: u8 = 2;

/// A command line of `doctor`.
#[derive(Clone, Debug)]
pub enum Doctor {
    /// Examine the node. The words are those of the command line, after the command.
    Examine(Vec<String>, Box<DoctorFlags>),
    /// Print the help of the command.
    Help,
}

impl Doctor {
    /// Parses a command line of `program`, without the name of the command.
    pub fn parse(program: &Program<DoctorFlags>, words: Vec<String>) -> Result<Self, CommandError> {
        match program.parse(words.iter().cloned()) {
            Ok(flags) => {
                no_more("doctor", flags.daemon.rest.iter().cloned())?;
                Ok(Self::Examine(words, Box::new(flags)))
            }
            Err(FlagError::Help) => Ok(Self::Help),
            Err(error) => Err(CommandError::Flags(error)),
        }
    }

    /// Runs the command on the node that `node` returns, writes the result to `out`, and returns
    /// the exit code: 0 if nothing is wrong, 1 for a problem or difference, 2 if the node could not
    /// be examined.
    pub fn run(
        self,
        program: &'static Program<DoctorFlags>,
        node: impl FnOnce(&DoctorFlags) -> Result<(Backend, Box<dyn System>), Box<dyn Error>>,
        mut out: impl Write,
    ) -> ExitCode {
        let run = || match self {
            Self::Help => write!(out, "{}", Help(program))
                .map(|()| ExitCode::SUCCESS)
                .map_err(Into::into),
            Self::Examine(words, flags) => {
                let (backend, system) = node(&flags)?;
                examine(program, &words, *flags, &backend, &*system, &mut out)
            }
        };
        match run() {
            Ok(code) => code,
            Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}: {error}", program.name);
                ExitCode::from(NOT_RUN)
            }
        }
    }
}

fn examine(
    program: &Program<DoctorFlags>,
    words: &[String],
    flags: DoctorFlags,
    backend: &Backend,
    system: &dyn System,
    out: &mut impl Write,
) -> Result<ExitCode, Box<dyn Error>> {
    let (flags, source, seen_disks) = with_flags_of_daemon(program, words, flags, system);
    let version = VERSION;
    let (text, json, is_good) = if flags.compare_provider {
        let comparison = compare(&backend.os, &flags.daemon.node, flags.show_names);
        let agrees = comparison.rows_of(Agreement::Different).next().is_none();
        (
            comparison.to_string(),
            comparison.to_json(&backend.name, version).to_string(),
            agrees,
        )
    } else {
        let settings = Settings {
            seen_disks,
            ..settings(&flags)
        };
        let mut report = examine_node(&backend.os, system, &settings);
        let checks = report.findings.len();
        let is_good = report.count(State::Problem) == 0;
        let json = format!("{:#}", report.to_json(&backend.name, version));
        if flags.explain {
            report.findings.retain(|finding| finding.state != State::Ok);
        }
        if report.findings.is_empty() && !flags.json {
            writeln!(out, "all is well: {checks} checks")?;
            return Ok(ExitCode::SUCCESS);
        }
        (report.to_string(), json, is_good)
    };
    if flags.json {
        writeln!(out, "{}", escaped_json(&json))?;
    } else {
        writeln!(
            out,
            "csi-proxy {version}, node: {}, flags: {}\n\n{text}",
            escaped(&backend.name),
            escaped(&source)
        )?;
    }
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FOUND)
    })
}

/// Adds the flags of the running daemon or, if it does not tell them, of the installed service. The
/// given flags override them. Ignores flags that cannot be parsed: they may be those of another
/// version. Returns whose flags these are, and the disks that the running daemon has seen, too.
fn with_flags_of_daemon(
    program: &Program<DoctorFlags>,
    words: &[String],
    flags: DoctorFlags,
    system: &dyn System,
) -> (DoctorFlags, String, Vec<SeenDisk>) {
    let parsed = |of_daemon: Vec<String>| {
        let all = of_daemon.into_iter().chain(words.iter().cloned());
        program.parse(all).ok()
    };
    let of_service = system.service(service::NAME).ok().and_then(|registered| {
        let (_, mut of_service) = program_and_flags(&registered.command_line);
        of_service.retain(|word| word.trim_start_matches('-') != "windows-service");
        Some((parsed(of_service)?, "of the service".to_owned()))
    });
    let (flags, source) = of_service.unwrap_or((flags, "as given".to_owned()));
    match running_daemon::read(&flags.daemon, &settings(&flags).pipes, system) {
        Some(running) => match parsed(running.flags) {
            Some(flags) => {
                let source = format!("of the running csi-proxy ({})", running.address);
                (flags, source, running.disks)
            }
            None => (flags, source, running.disks),
        },
        None => (flags, source, Vec::new()),
    }
}

/// Splits the command line of a service into its program, which may have blanks without quotation
/// marks, and the words after it.
pub(crate) fn program_and_flags(line: &str) -> (&str, Vec<String>) {
    let program = program_of(line);
    let (_, flags) = line.split_once(program).unwrap_or_default();
    (program, words_of(flags.trim_start_matches('"')))
}

/// Splits a text at blanks outside of quotation marks, as the C runtime does. Does not recognize
/// escaped quotation marks, which no flag of csi-proxy contains.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None;
    let mut is_quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_with(String::new);
            }
            ' ' | '\t' if !is_quoted => words.extend(word.take()),
            letter => word.get_or_insert_with(String::new).push(letter),
        }
    }
    words.extend(word);
    words
}

/// Returns what to examine.
fn settings(flags: &DoctorFlags) -> Settings {
    let Flags {
        node,
        api_groups,
        pipe_sids,
        groupless_pipes,
        log,
        ..
    } = &flags.daemon;
    let names = |groups: &[Group]| -> Vec<_> {
        EndpointSpec::of(groups, *groupless_pipes)
            .iter()
            .map(EndpointSpec::name)
            .collect()
    };
    let pipes = names(api_groups);
    let mut excluded_pipes = names(&Group::ALL);
    excluded_pipes.retain(|name| !pipes.contains(name));
    Settings {
        node: node.clone(),
        pipes,
        excluded_groups: serve::excluded(api_groups),
        excluded_pipes,
        accounts: pipe_sids.clone(),
        service: service::NAME.to_owned(),
        is_in_container: serve::is_in_host_process_container(),
        log_file: log.file.as_ref().map(|file| file.display().to_string()),
        seen_disks: Vec::new(),
        show_names: flags.show_names,
    }
}

/// Returns the names of all pipes that the daemon serves by default.
pub fn pipes() -> Vec<String> {
    GROUP_VERSIONS
        .iter()
        .map(|version| version.pipe().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use ::doctor::{Pipe, ServiceRegistration, System};
    use api::GROUP_VERSIONS;
    use os::{OsError, OsResult};

    use super::{
        CSI_PROXY_DOCTOR, Doctor, Help, program_and_flags, settings, with_flags_of_daemon, words_of,
    };

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// A system on which only the service, if any, can be read.
    struct Service(Option<ServiceRegistration>);

    impl System for Service {
        fn build(&self) -> OsResult<u32> {
            Err(OsError::ACCESS_DENIED)
        }

        fn pipe(&self, _name: &str) -> OsResult<Pipe> {
            Err(OsError::ACCESS_DENIED)
        }

        fn service(&self, _name: &str) -> OsResult<ServiceRegistration> {
            self.0.clone().ok_or(OsError::SERVICE_DOES_NOT_EXIST)
        }
    }

    #[test]
    fn the_flags_of_the_service_apply_unless_they_are_given() {
        let mut system = Service(None);
        let with = |system: &Service, line: &str| {
            let flags = CSI_PROXY_DOCTOR.parse(words(line)).unwrap();
            let words = words(line);
            settings(&with_flags_of_daemon(&CSI_PROXY_DOCTOR, &words, flags, system).0)
        };
        assert_eq!(
            (with(&system, "").log_file, with(&system, "").pipes.len()),
            (None, GROUP_VERSIONS.len())
        );
        let command_line = r#""C:\a b\csi-proxy.exe" -windows-service -kubelet-path=D:\kubelet -log_file "C:\my logs\x.log" -pipe-sid=S-1-5-7"#;
        let registered = |command_line: &str| {
            Some(ServiceRegistration {
                command_line: command_line.to_owned(),
                account: None,
                restarts: Ok(true),
            })
        };
        system.0 = registered(command_line);
        let of_service = with(&system, "-show-names");
        assert_eq!(of_service.node.kubelet_dir.to_string(), r"D:\kubelet");
        assert_eq!(of_service.log_file.as_deref(), Some(r"C:\my logs\x.log"));
        assert_eq!(
            (of_service.accounts, of_service.show_names),
            (vec!["S-1-5-7".to_owned()], true)
        );
        let given = with(&system, r"-kubelet-path=E:\kubelet -groupless-pipes");
        assert_eq!(given.node.kubelet_dir.to_string(), r"E:\kubelet");
        assert!(given.pipes.len() > GROUP_VERSIONS.len());
        system.0 =
            registered("csi-proxy.exe -windows-service -api-groups=disk,volume -groupless-pipes");
        let with_groups = with(&system, "");
        assert_eq!(
            with_groups.excluded_groups.as_deref(),
            Some("filesystem, iscsi, smb, system")
        );
        assert!(
            with_groups.pipes.iter().all(|pipe| !pipe.contains("smb"))
                && with_groups.pipes.len() > 11
        );
        let is_excluded = |name: &str| with_groups.excluded_pipes.iter().any(|pipe| pipe == name);
        assert!(
            is_excluded("csi-proxy-smb-v1")
                && !is_excluded("csi-proxy-disk-v1")
                && !is_excluded("csi-proxy-v1")
        );
        system.0 = registered("csi-proxy.exe -of-another-version");
        assert_eq!(
            with(&system, "").node.kubelet_dir.to_string(),
            r"C:\var\lib\kubelet"
        );
    }

    #[test]
    fn words_end_at_blanks_outside_of_quotation_marks() {
        assert_eq!(
            words_of(r#""C:\a b\c.exe"  -x="1 2" "" y"#),
            [r"C:\a b\c.exe", "-x=1 2", "", "y"]
        );
        assert!(words_of("  ").is_empty());
    }

    #[test]
    fn the_program_of_a_service_may_have_blanks_with_and_without_quotation_marks() {
        let program = r"C:\Program Files\a b\csi-proxy.exe";
        for line in [format!("\"{program}\" -v 5"), format!("{program} -v 5")] {
            assert_eq!(
                program_and_flags(&line),
                (program, vec!["-v".to_owned(), "5".to_owned()]),
                "{line}"
            );
        }
        assert_eq!(program_and_flags(""), ("", Vec::new()));
    }

    #[test]
    fn the_help_fits_a_terminal() {
        let text = anstream::adapter::strip_str(&Help(&CSI_PROXY_DOCTOR).to_string()).to_string();
        assert!(
            text.contains("-compare-provider")
                && text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn the_command_line_is_checked() {
        let parse = |line: &str| {
            Doctor::parse(&CSI_PROXY_DOCTOR, words(line)).map_err(|error| error.to_string())
        };
        assert!(matches!(parse("-help"), Ok(Doctor::Help)));
        for line in [
            "--compare-provider -o json",
            "-compare-provider -o=json -show-names",
            r"-o text -kubelet-path D:\k",
        ] {
            assert!(matches!(parse(line), Ok(Doctor::Examine(..))), "{line}");
        }
        assert_eq!(
            parse("-o yaml").unwrap_err(),
            "invalid value 'yaml' for flag -o: expected text or json"
        );
        assert_eq!(
            parse("now").unwrap_err(),
            "unexpected argument 'now' after 'doctor'"
        );
        assert_eq!(parse("-nonsense").unwrap_err(), "unknown flag -nonsense");
    }
}
