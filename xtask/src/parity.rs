//! `cargo xtask parity`: compares this program with the csi-proxy written in Go, by random calls of the file system RPCs.
//!
//! Both programs are served under Wine, each in a prefix of its own, since their pipes have the same names. Each call
//! goes to both, and their results and the directory trees that they leave are compared. A difference must match one of
//! the [`rules`], which docs/design.md lists under the same keys. After a difference between the trees, both start anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;

use crate::summary::{Failure, Summary};
use crate::windows::NoDaemon;
use crate::wine::Prefix;
use crate::{Error, go, process, windows, workspace};

mod call;
mod program;
mod random;
mod rules;
mod spelling;
mod tree;

use call::{Call, Generator};
use program::{Answer, Program};
use rules::{Difference, Judgement};
use tree::Tree;

/// The version of the Go program, whose module is `verify/go-program`.
const GO_PROGRAM: &str = "github.com/kubernetes-csi/csi-proxy/cmd/csi-proxy";

/// How many calls are made on one tree before both programs get a new one.
const CALLS_PER_TREE: usize = 60;

/// How many undeclared differences are reported in full.
const REPORTED: usize = 20;

#[derive(Args)]
pub(crate) struct Options {
    /// How many calls to make
    #[arg(long, default_value_t = 20_000)]
    calls: usize,
    /// The seed of the calls of an earlier run, which is repeated
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn task(options: &Options) -> Result<Summary, Error> {
    if std::env::consts::OS == "windows" {
        return Ok(skipped("both programs would serve pipes of the same names"));
    }
    let Some(reference) = build_go_program()? else {
        return Ok(skipped("the Go program cannot be built here: go is missing, or its modules cannot be downloaded"));
    };
    let (own, client) = match windows::daemon() {
        Ok(own) => (own, go::pinned_client()?),
        Err(NoDaemon::NoCompiler(reason)) => return Ok(skipped(&reason)),
        Err(NoDaemon::Broken(reason)) => return Err(reason.into()),
    };
    let start = |name| Prefix::start_in(workspace::target().join(name));
    let (go_prefix, own_prefix) = match start("wine-go").and_then(|first| Ok((first, start("wine")?))) {
        Ok(prefixes) => prefixes,
        Err(reason) => return Ok(skipped(&reason)),
    };
    let seed = options.seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(1, |now| now.as_secs() ^ u64::from(now.subsec_nanos()))
    });
    println!("seed {seed}");
    let mut comparison = Comparison {
        go: Program::start(&go_prefix, &reference, &client)?,
        own: Program::start(&own_prefix, &own, &client)?,
        generator: Generator::new(seed),
        counts: rules::Counts::default(),
        undeclared: Vec::new(),
    };
    comparison.run(options.calls)?;
    Ok(comparison.summary(options.calls, seed))
}

fn skipped(reason: &str) -> Summary {
    Summary::skipped("comparison with the Go program", reason)
}

/// Builds the Go program. Returns `None` if that is not possible.
pub(crate) fn build_go_program() -> Result<Option<PathBuf>, Error> {
    if process::find("go").is_none() {
        return Ok(None);
    }
    let folder = workspace::target().join("go");
    fs::create_dir_all(&folder)?;
    let program = folder.join("csi-proxy-go.exe");
    let mut go = Command::new("go");
    go.current_dir(workspace::root().join("verify/go-program")).args(["build", "-o"]).arg(&program);
    if let Some(overlay) = library_for_wine(&folder)? {
        go.arg("-overlay").arg(overlay);
    }
    go.arg(GO_PROGRAM).env("CGO_ENABLED", "0").env("GOOS", "windows").env("GOARCH", "amd64");
    Ok(process::succeeds(go.env("GOFLAGS", "-mod=readonly"))?.then_some(program))
}

/// Returns an overlay with which Go's library removes directory trees under Wine, unless it does so by itself.
///
/// Since Go 1.25 the library first removes an entry in a way that Wine 8 does not know, and Wine answers with a code
/// after which the library does not try the older way. The overlay makes it take that, as for a test of its own.
fn library_for_wine(folder: &Path) -> Result<Option<PathBuf>, Error> {
    const CONDITION: &str = "if TestDeleteatFallback {";
    let library = process::output(Command::new("go").args(["env", "GOROOT"])).ok_or("go env GOROOT failed")?;
    let source = Path::new(&library).join("src/internal/syscall/windows/at_windows.go");
    let text = fs::read_to_string(&source).unwrap_or_default();
    if !text.contains(CONDITION) {
        return Ok(None);
    }
    let (changed, overlay) = (folder.join("at_windows.go"), folder.join("overlay.json"));
    fs::write(&changed, text.replace(CONDITION, "if true {"))?;
    let replaced = serde_json::json!({"Replace": {source.to_string_lossy(): changed.to_string_lossy()}});
    fs::write(&overlay, replaced.to_string())?;
    Ok(Some(overlay))
}

/// Both programs, and what has been found so far.
struct Comparison {
    go: Program,
    own: Program,
    generator: Generator,
    counts: rules::Counts,
    undeclared: Vec<String>,
}

impl Comparison {
    fn run(&mut self, calls: usize) -> Result<(), Error> {
        let mut left_on_tree = 0;
        let mut before = Tree::default();
        for number in 1..=calls {
            if left_on_tree == 0 {
                let tree = self.generator.tree();
                for program in [&self.go, &self.own] {
                    tree.create(program.drive_c())?;
                }
                before = Tree::read(self.go.drive_c())?;
                left_on_tree = CALLS_PER_TREE;
            }
            if self.generator.replaces_working_directory() {
                for program in [&self.go, &self.own] {
                    tree::replace_working_directory(program.drive_c())?;
                }
                before = Tree::read(self.go.drive_c())?;
            }
            let call = self.generator.call(&before);
            let results = (self.go.call(&call)?, self.own.call(&call)?);
            let trees = (Tree::read(self.go.drive_c())?, Tree::read(self.own.drive_c())?);
            let equal = trees.0 == trees.1;
            self.judge(number, &call, &before, &results, &trees);
            left_on_tree = if equal { left_on_tree - 1 } else { 0 };
            before = trees.0;
            if number % 1000 == 0 {
                println!("{number} calls, {} undeclared differences", self.undeclared.len());
            }
        }
        Ok(())
    }

    fn judge(&mut self, number: usize, call: &Call, before: &Tree, results: &(Answer, Answer), trees: &(Tree, Tree)) {
        let difference = Difference { call, before, go: &results.0, own: &results.1, trees };
        let judgement = difference.judge();
        self.counts.add(call, &judgement);
        if let Judgement::Undeclared = judgement {
            let text = format!("call {number}: {difference}");
            println!("undeclared: {text}");
            self.undeclared.push(text);
        }
    }

    fn summary(&self, calls: usize, seed: u64) -> Summary {
        println!("{}", self.counts);
        let mut summary = Summary::default();
        for text in self.undeclared.iter().take(REPORTED) {
            let mut lines = text.lines().map(str::to_owned);
            let failure = Failure { name: lines.next().unwrap_or_default(), output: lines.collect() };
            summary += Summary { failed: vec![failure], ..Summary::default() };
        }
        if let Some(more) = self.undeclared.len().checked_sub(REPORTED).filter(|more| *more > 0) {
            summary += Summary::failed(&format!("{more} more undeclared differences"));
        }
        // A rule that nothing needs would hide a difference some day. A short run does not meet every rule.
        if calls >= 20_000 {
            for key in self.counts.unused() {
                summary += Summary::failed(&format!("no call has shown the declared difference `{key}`"));
            }
        }
        if summary.is_success() {
            summary += Summary::passed();
        } else {
            println!("repeat this run with: cargo xtask parity --calls {calls} --seed {seed}");
        }
        summary
    }
}

/// Where the working directory is in drive C: of a prefix.
pub(crate) fn kubelet(drive_c: &Path) -> PathBuf {
    drive_c.join("var/lib/kubelet")
}
