//! Copies the executor's sources, with the model's, once for each module that the tests use.
//!
//! One module has the executor as it is, except that the locks and atomics of the standard library are shuttle's, that
//! its limits are small enough for a few callers to reach them, and that its own tests are left out. Each other module
//! also has one defect, which the scenarios must detect.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// A text that a file contains, and what replaces it.
struct Replacement {
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

const fn replacement(file: &'static str, from: &'static str, to: &'static str) -> Replacement {
    Replacement { file, from, to }
}

/// What is replaced in every module.
const REPLACEMENTS: [Replacement; 8] = [
    replacement("executor.rs", "use std::sync::", "use crate::sync::"),
    replacement("executor.rs", "    fn jobs(&self)", "    pub(crate) fn jobs(&self)"),
    replacement("scheduling/context.rs", "use std::sync::", "use crate::sync::"),
    replacement("scheduling/locks.rs", "use std::sync::", "use crate::sync::"),
    replacement("executor/on_this_thread.rs", "use std::sync::", "use crate::sync::"),
    replacement("executor/progress.rs", "use std::sync::Arc;", "use crate::sync::Arc;"),
    replacement("scheduling/worker_pools.rs", "use std::sync::", "use crate::sync::"),
    replacement("scheduling/worker_pools.rs", "THREADS_PER_POOL: usize = 16;", "THREADS_PER_POOL: usize = 2;"),
];

/// The defects, by the name of their module.
const DEFECTS: [(&str, &[Replacement]); 5] = [
    (
        // The phase is read and set in two steps, and a job that nobody wants does not wait for its thread.
        "changing_job_abandoned",
        &[
            replacement(
                "executor.rs",
                "job.advance(Some(Phase::Changing))",
                "job.advance(None) && {\n shuttle::thread::yield_now();\n *job.phase() = Phase::Changing;\n true\n }",
            ),
            replacement(
                "executor.rs",
                "thread.run(body).await\n",
                "let body = thread.run(body);\n\
                 if let Some(job) = abandoned_by.job() { job.while_wanted(body).await? } else { body.await }\n",
            ),
            replacement("executor.rs", "let is_changing = mode", "let abandoned_by = mode.clone();\n let is_changing = mode"),
        ],
    ),
    (
        "job_unregistered_after_its_locks",
        &[replacement(
            "executor.rs",
            "self.executor.unregister(&self.job);\n        drop(held);",
            // shuttle lets the first that asks for a lock have it, so the scheduler needs more points to choose from.
            "drop(held);\n\
             for _ in 0..shuttle::rand::Rng::gen_range(&mut shuttle::rand::thread_rng(), 0..9) {\n\
             shuttle::future::yield_now().await;\n }\n\
             self.executor.unregister(&self.job);",
        )],
    ),
    ("older_result_shared", &[replacement("executor.rs", "*phase == Phase::Queued,", "*phase != Phase::Cancelled,")]),
    ("thread_not_passed_on", &[replacement("scheduling/worker_pools.rs", "for_each(Waker::wake)", "for_each(drop)")]),
    ("next_in_line_not_woken", &[replacement("scheduling/locks.rs", "for_each(Waker::wake)", "for_each(drop)")]),
];

fn main() {
    let sources = Path::new("../../crates/storage-ops/src");
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-changed=src");
    let mut text = variant("as_it_is", sources, &[]);
    for (name, defect) in &DEFECTS {
        text += &variant(name, sources, defect);
    }
    let output = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("variants.rs");
    fs::write(output, text).expect("the output folder can be written");
}

/// Returns a module with the executor, in which the defect stands, and the model.
fn variant(name: &str, sources: &Path, defect: &[Replacement]) -> String {
    let replacements: Vec<_> = REPLACEMENTS.iter().chain(defect).collect();
    let modules: String =
        ["error", "error_class", "scheduling", "executor"].map(|path| module(sources, path, &replacements)).concat()
            + &["node", "scenarios", "sync", "types"].map(|path| module(Path::new("src/model"), path, &[])).concat();
    // What the scenarios do not call is a part of the interface here, and so not unused.
    let modules = modules.replace("pub(crate) ", "pub ").replace("crate::", &format!("crate::{name}::"));
    format!("pub mod {name} {{\n{modules}}}\n")
}

/// Returns the module `path`, such as `executor/locks`, with the modules that it declares.
fn module(folder: &Path, path: &str, replacements: &[&Replacement]) -> String {
    let file = format!("{path}.rs");
    let text = fs::read_to_string(folder.join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default().to_owned();
    for Replacement { from, to, .. } in replacements.iter().filter(|replacement| replacement.file == file) {
        assert!(text.contains(from), "{file} no longer contains `{from}`");
        text = text.replace(from, to);
    }
    let mut lines = String::new();
    for line in text.lines().filter(|line| !line.starts_with("//!")) {
        match line.trim_start_matches("pub(crate) ").strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            Some(child) => lines += &module(folder, &format!("{path}/{child}"), replacements),
            None => lines += &format!("{line}\n"),
        }
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("pub(crate) mod {name} {{\n{lines}}}\n")
}
