//! Parses the PowerShell that only Windows can run: the scripts of deploy/windows and
//! verify/windows, and the steps of the workflows.
//!
//! PowerShell itself is a .NET program and is not installed on Linux. tree-sitter's grammar takes
//! its place: it finds a line that PowerShell could not parse, but not a command or a parameter
//! that does not exist.

use std::fs;
use std::path::{Path, PathBuf};

use tree_sitter::{Node, Parser};
use yaml_rust2::{Yaml, YamlLoader};

/// The shells of a step whose script is PowerShell.
const SHELLS: [&str; 2] = ["pwsh", "powershell"];

/// Returns the files of a folder of this tree with an extension, sorted.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(folder);
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Returns the lines, counted from 1, that PowerShell cannot parse.
fn unparsable_lines(script: &str) -> Vec<usize> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_powershell::LANGUAGE.into())
        .expect("the grammar's version is supported");
    let tree = parser.parse(script, None).expect("there is no time limit");
    let mut lines = Vec::new();
    collect_errors(tree.root_node(), &mut lines);
    lines
}

fn collect_errors(node: Node<'_>, lines: &mut Vec<usize>) {
    if node.is_error() || node.is_missing() {
        lines.push(node.start_position().row + 1);
    } else if node.has_error() {
        node.children(&mut node.walk())
            .for_each(|child| collect_errors(child, lines));
    }
}

/// A step of a workflow with a script.
struct Step {
    name: String,
    shell: String,
    script: String,
}

/// Returns the steps with scripts of a workflow.
fn steps(workflow: &str) -> Vec<Step> {
    let documents = YamlLoader::load_from_str(workflow).expect("the workflow is YAML");
    let text = |yaml: &Yaml| yaml.as_str().map(str::to_owned);
    let mut found = Vec::new();
    for job in documents[0]["jobs"]
        .as_hash()
        .expect("a map of jobs")
        .values()
    {
        let default = text(&job["defaults"]["run"]["shell"]);
        // actionlint checks the scripts of other jobs with shellcheck. A job without steps runs
        // another workflow.
        let on_windows = !job["runs-on"]
            .as_str()
            .is_some_and(|system| system.starts_with("ubuntu-"));
        for step in job["steps"]
            .as_vec()
            .into_iter()
            .flatten()
            .filter(|_| on_windows)
        {
            let Some(script) = text(&step["run"]) else {
                continue;
            };
            let shell = text(&step["shell"])
                .or(default.clone())
                .expect("each step names its shell, or its job does");
            found.push(Step {
                name: text(&step["name"]).unwrap_or_else(|| script.clone()),
                shell,
                script,
            });
        }
    }
    found
}

#[test]
fn a_line_that_powershell_cannot_parse_is_found() {
    assert_eq!(
        unparsable_lines("$a = 1\nif ($a -eq 1) { Get-Service csiproxy }\n"),
        []
    );
    assert_ne!(
        unparsable_lines("$a = 1\nif ($a -eq 1 { Get-Service csiproxy }\n"),
        []
    );
    assert_ne!(unparsable_lines("$a = @(1, 2\n"), []);
    assert_ne!(unparsable_lines("throw \"a\n"), []);
}

#[test]
fn every_block_of_powershell_in_the_documentation_is_parsed() {
    let mut blocks = 0;
    for file in files("docs", "md") {
        for block in read(&file).split("```powershell\n").skip(1) {
            let script = block.split("```").next().unwrap_or_default();
            assert_eq!(
                unparsable_lines(script),
                [],
                "{}:\n{script}",
                file.display()
            );
            blocks += 1;
        }
    }
    assert!(blocks > 0, "no block found");
}

#[test]
fn every_script_is_parsed() {
    for (folder, extension) in [
        ("deploy/windows", "ps1"),
        ("deploy/windows", "psm1"),
        ("verify/windows", "ps1"),
    ] {
        assert!(!files(folder, extension).is_empty(), "{folder}");
        for file in files(folder, extension) {
            let script = read(&file);
            assert_eq!(unparsable_lines(&script), [], "{}", file.display());
            // Windows PowerShell reads a script without a byte order mark in the code page of the
            // system.
            assert!(script.is_ascii(), "{} is not ASCII", file.display());
        }
    }
}

#[test]
fn the_scripts_copy_a_program_in_one_function_which_checks_the_digest_of_the_copy() {
    let copies: Vec<String> = ["ps1", "psm1"]
        .iter()
        .flat_map(|extension| files("deploy/windows", extension))
        .flat_map(|file| {
            let lines: Vec<String> = read(&file).lines().map(str::to_owned).collect();
            lines
        })
        .filter(|line| line.contains("Copy-Item") || line.contains("::Copy("))
        // What is copied to a node is checked there, by upgrade.ps1.
        .filter(|line| !line.contains("-ToSession"))
        .collect();
    let [copy] = &copies[..] else {
        panic!("{copies:#?}")
    };
    assert!(copy.ends_with("$Target, $false)"), "{copy}");
    let module = read(&files("deploy/windows", "psm1")[0]);
    let (_, rest) = module.split_once(copy.as_str()).expect("the copy");
    let check = rest.find("Assert-Digest $Target");
    assert!(check.is_some() && check < rest.find("\n}"), "{rest}");
}

#[test]
fn the_scripts_know_the_pipes_of_every_group() {
    let module = read(&files("deploy/windows", "psm1")[0]);
    let (_, rest) = module
        .split_once("$PipeNames = '^csi-proxy-((")
        .expect("a pattern");
    let groups: Vec<&str> = rest
        .split(')')
        .next()
        .unwrap_or_default()
        .split('|')
        .collect();
    let proto = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/api/proto");
    let mut folders: Vec<String> = fs::read_dir(proto)
        .expect("the folder of the groups")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    folders.sort();
    assert_eq!(groups, folders);
}

#[test]
fn every_step_of_a_workflow_is_parsed_and_names_a_script_that_exists() {
    let mut parsed = 0;
    for file in files(".github/workflows", "yml") {
        let workflow = read(&file);
        // setup-go takes the contents of any other file for the version itself.
        let other = workflow
            .lines()
            .find(|line| line.contains("go-version-file:") && !line.contains("/go.mod"));
        assert_eq!(other, None, "{}", file.display());
        // actionlint checks scripts of bash.
        for Step {
            name,
            shell,
            script,
        } in steps(&workflow)
            .into_iter()
            .filter(|step| step.shell != "bash")
        {
            parsed += 1;
            assert!(
                SHELLS.contains(&shell.as_str()),
                "{name}: the shell {shell} is not PowerShell"
            );
            assert_eq!(unparsable_lines(&script), [], "{name}");
            let paths = script
                .split_whitespace()
                .map(|word| word.trim_start_matches(r".\").replace('\\', "/"));
            for path in paths.filter(|path| {
                Path::new(path)
                    .extension()
                    .is_some_and(|extension| extension == "ps1")
            }) {
                let exists = files("verify/windows", "ps1")
                    .iter()
                    .any(|file| file.ends_with(Path::new(&path)));
                assert!(exists, "{name}: {path} does not exist");
            }
        }
    }
    assert!(parsed > 10, "{parsed} steps");
}
