//! The pages of the site: their links, and the commands, files and names in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use csi_proxy_client::{Error, ErrorKind};
use yaml_rust2::YamlLoader;

fn pages() -> BTreeMap<String, String> {
    site::pages().unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the lines of a page that are no code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines()
        .zip(1..)
        .map(|(line, number)| (number, line))
        .filter(move |(_, line)| {
            let is_fence = line.starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence && !line.starts_with("    ")
        })
}

/// Returns the blocks of code of a page, each with its language, and the indented lines as a block
/// without one.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = vec![(String::new(), String::new())];
    let mut is_fenced = false;
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            is_fenced = !is_fenced;
            if is_fenced {
                blocks.push((language.to_owned(), String::new()));
            }
        } else if is_fenced {
            let (_, block) = blocks.last_mut().expect("a block");
            block.extend([line, "\n"]);
        } else if let Some(code) = line.strip_prefix("    ") {
            blocks[0].1.extend([code, "\n"]);
        }
    }
    blocks
}

/// Returns the identifiers that mdBook gives the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text).filter(|(_, line)| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let plain = heading.split("](").next().unwrap_or_default();
        let anchor: String = plain
            .chars()
            .filter_map(|letter| match letter {
                ' ' => Some('-'),
                letter => {
                    (letter.is_alphanumeric() || matches!(letter, '-' | '_')).then_some(letter)
                }
            })
            .collect();
        let taken = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone())
            .chain(taken)
            .find(|anchor| !anchors.contains(anchor));
        anchors.extend(free);
    }
    anchors
}

fn has_extension(name: &str, wanted: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension == wanted)
}

#[test]
fn every_link_leads_to_a_page_and_a_heading() {
    let pages = pages();
    let mut broken = Vec::new();
    for (name, text) in &pages {
        for (number, line) in prose(text) {
            for target in line
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split_once(')'))
                .map(|(target, _)| target)
            {
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                let page = if file.is_empty() {
                    Some(text)
                } else {
                    pages.get(file)
                };
                let is_picture =
                    has_extension(file, "svg") && site::root().join("docs").join(file).is_file();
                let leads =
                    page.is_some_and(|page| anchor.is_empty() || anchors(page).contains(anchor));
                if !target.contains("://") && !is_picture && !leads {
                    broken.push(format!("{name}:{number}: {target}"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_page_of_the_documentation_is_in_the_table_of_contents() {
    let pages = pages();
    for entry in fs::read_dir(site::root().join("docs")).expect("the folder") {
        let name = entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned();
        if has_extension(&name, "md") {
            assert!(
                pages.contains_key(&name),
                "docs/SUMMARY.md has no link to {name}"
            );
        }
    }
    for page in pages.keys().filter(|name| *name != "SUMMARY.md") {
        let entries = pages["SUMMARY.md"].matches(&format!("]({page})")).count();
        assert_eq!(entries, 1, "{page} in the table of contents");
    }
}

const KINDS: [ErrorKind; 12] = [
    ErrorKind::InvalidArgument,
    ErrorKind::NotFound,
    ErrorKind::AlreadyExists,
    ErrorKind::FailedPrecondition,
    ErrorKind::PermissionDenied,
    ErrorKind::Aborted,
    ErrorKind::DeadlineExceeded,
    ErrorKind::Unavailable,
    ErrorKind::ResourceExhausted,
    ErrorKind::Cancelled,
    ErrorKind::Internal,
    ErrorKind::Unimplemented,
];

#[test]
fn each_kind_of_error_has_its_cause_diagnosis_and_remedy_and_the_rule_names_those_to_repeat() {
    let pages = pages();
    let rule = pages["driver-development.md"]
        .lines()
        .find(|line| line.starts_with("- Repeat a call that failed with "));
    for kind in KINDS {
        // The pages spell the codes as grpc-go does.
        let code = format!("{kind:?}").replace("Cancelled", "Canceled");
        let row = pages["troubleshoot.md"]
            .lines()
            .find(|line| line.starts_with(&format!("| {code} |")));
        let cells: Vec<_> = row
            .unwrap_or_else(|| panic!("no row for {code}"))
            .split('|')
            .map(str::trim)
            .collect();
        let [_, _, cause, diagnosis, remedy, may_still_run, _] = cells[..] else {
            panic!("{cells:?}")
        };
        assert!(
            !cause.is_empty() && !diagnosis.is_empty() && !remedy.is_empty(),
            "{code}"
        );
        let is_retryable = Error::new(kind, "X", "").is_retryable();
        assert_eq!(
            [
                may_still_run == "yes",
                rule.expect("a rule").contains(&code)
            ],
            [is_retryable; 2],
            "{code}"
        );
    }
}

#[test]
fn every_metric_that_a_page_names_exists() {
    let pages = pages();
    // A test of csi-proxy compares the rows of this table with the program.
    let rows = pages["metrics.md"]
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let is_metric = |kind: &str| {
        ["counter | ", "gauge | ", "histogram | ", "summary | "]
            .iter()
            .any(|own| kind.starts_with(own))
    };
    let known: BTreeSet<&str> = rows
        .filter(|(_, kind)| is_metric(kind))
        .map(|(name, _)| name)
        .collect();
    assert!(known.len() >= 10, "{known:?}");
    for (page, text) in pages.iter().filter(|(name, _)| *name != "performance.md") {
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let names = words.filter(|word| {
            word.starts_with("grpc_server_")
                || (word.starts_with("csi_proxy_") && word.matches('_').count() > 1)
        });
        for name in names.filter(|name| !name.ends_with('_')) {
            let of_histogram = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix));
            let is_known =
                known.contains(name) || of_histogram.is_some_and(|name| known.contains(name));
            assert!(is_known || is_package(name), "{page} names {name}");
        }
    }
}

#[test]
fn node_stage_volume_has_the_calls_of_the_driver_in_their_order() {
    let page = &pages()["channels.md"];
    let steps = page
        .lines()
        .filter(|line| line.starts_with(|letter: char| letter.is_ascii_digit()));
    let spans = steps.flat_map(|line| line.split('`').skip(1).step_by(2));
    let described: Vec<&str> = spans.filter(|span| span.split('/').count() == 3).collect();

    let file = site::root().join("sim/csi-proxy-sim/drivers/09-aws-ebs.json");
    let driver: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(file).expect("the driver's calls")).expect("JSON");
    let phase = &driver["phases"][0];
    assert_eq!(phase["name"], "NodeStageVolume");
    let calls = phase["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .filter_map(|step| step["call"].as_str());
    assert_eq!(described, calls.collect::<Vec<_>>());
}

#[test]
fn the_readme_installs_with_the_commands_of_the_documentation() {
    let readme = fs::read_to_string(site::root().join("README.md")).expect("the README");
    let page = &pages()["install.md"];
    let section = readme
        .split("## Install on a node\n")
        .nth(1)
        .expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let commands: Vec<&str> = section
        .lines()
        .filter(|line| line.starts_with("    "))
        .collect();
    assert!(commands.len() >= 5, "{commands:?}");
    assert!(
        page.contains(&commands.join("\n")),
        "docs/install.md has other commands than:\n{commands:#?}"
    );
}

/// Returns whether a word is the name of a package in code.
fn is_package(word: &str) -> bool {
    ["csi_proxy_client", "csi_proxy_sim", "csi_proxy_storage"]
        .iter()
        .any(|package| word.starts_with(package))
}

/// Separates the words of a command as a shell does, as far as quotation marks go. What follows
/// `>`, `|` or `#` is not part of it.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in command.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '>' | '|' | '#' if !is_quoted => break,
            ' ' if !is_quoted => words.push(String::new()),
            letter => words.last_mut().expect("a word").push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_command_line_of_the_programs_in_a_block_of_code_can_be_parsed() {
    let (mut daemon, mut simulator) = (0, 0);
    for (page, text) in pages() {
        for (_, block) in blocks(&text) {
            for line in block.lines() {
                let of_daemon = line
                    .split_once("csi-proxy.exe ")
                    .and_then(|(before, command)| {
                        match before.split_once("binPath") {
                            // The command line of a service stands in quotation marks.
                            Some(_) => command.split('"').next(),
                            None => (!before.contains(' ')).then_some(command),
                        }
                    });
                if let Some(command) = of_daemon {
                    daemon += 1;
                    let parsed = csi_proxy::command::Command::parse(words(command));
                    assert!(parsed.is_ok(), "{page}: {line}: {parsed:?}");
                }
                if let Some(command) = line
                    .strip_prefix("cargo sim")
                    .or_else(|| line.strip_prefix("csi-proxy-sim "))
                {
                    simulator += 1;
                    let parsed = csi_proxy_sim::command::Command::parse(words(command));
                    assert!(parsed.is_ok(), "{page}: {line}: {parsed:?}");
                }
            }
        }
    }
    assert!(
        daemon > 10 && simulator > 3,
        "{daemon} and {simulator} command lines"
    );
}

/// Returns whether a shell can parse a script.
fn is_script(text: &str) -> bool {
    let mut shell = Command::new("sh")
        .arg("-n")
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    shell
        .stdin
        .take()
        .expect("a pipe")
        .write_all(text.as_bytes())
        .expect("it reads");
    shell.wait().expect("an end").success()
}

#[test]
fn every_block_of_code_is_in_its_language() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    // Tests of other packages run these sources.
    let sources = [
        "examples/node-plugin-go/firstcall/main.go",
        "sim/simtest/example/driver_test.go",
        "sim/csi-proxy-sim/tests/rust_driver.rs",
    ];
    let source = |path: &str| {
        fs::read_to_string(site::root().join(path))
            .expect(path)
            .replace("\r\n", "\n")
    };
    // A test of this tree does not take the program of the variable CSI_PROXY_SIM.
    let own_program = "Node::start_program(Path::new(env!(\"CARGO_BIN_EXE_csi-proxy-sim\")), DISK, \
                       &flags)\n        .await\n        .expect(\"a node\")";
    let sources = sources.map(source).concat().replace(
        own_program,
        "Node::start(DISK, &flags).await.expect(\"a node\")",
    );
    for (page, text) in pages() {
        for (language, block) in blocks(&text) {
            match language.as_str() {
                "sh" => assert!(
                    std::env::consts::OS == "windows" || is_script(&block),
                    "{page}:\n{block}"
                ),
                "yaml" => drop(
                    YamlLoader::load_from_str(&block)
                        .unwrap_or_else(|error| panic!("{page}: {error}")),
                ),
                "toml" => drop(
                    os_sim::Sim::from_toml(&block)
                        .unwrap_or_else(|error| panic!("{page}: {error}")),
                ),
                "json" => drop(serde_json::from_str::<serde_json::Value>(&block).expect(&page)),
                // Without a language are command prompts and pictures. PowerShell is parsed by a
                // test of xtask, and the Rust of the client's README is compiled with that crate.
                "" | "powershell" | "rust,no_run" | "text" => {}
                "rust" if page == "crates-client.md" => {}
                "go" | "rust" => assert!(sources.contains(&block), "{page}:\n{block}"),
                other => panic!("{page}: no test reads {other:?}"),
            }
            *counts.entry(language).or_default() += 1;
        }
    }
    assert!(
        ["sh", "toml", "powershell", "go"]
            .iter()
            .all(|language| counts.contains_key(*language)),
        "{counts:?}"
    );
}
