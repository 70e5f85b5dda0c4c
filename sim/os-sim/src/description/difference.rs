//! Compares a node with an earlier node file: what has a driver left behind?

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::description::DescriptionError;
use crate::sim::Sim;

/// The keys by which the tables of an array are told apart, the most specific first.
const NAMES: [&str; 7] = ["number", "path", "remote", "iqn", "address", "host", "name"];

/// The keys of a disk that describe what is on it. A driver that uses a disk changes them, and
/// leaves them so.
const DATA: [&str; 8] = [
    "content",
    "file_system",
    "file_system_size",
    "grown_to",
    "partition_size",
    "signature",
    "size",
    "volume_id",
];

/// How the lines about what is on the volumes of disks begin.
const ON_VOLUMES: [&str; 3] = [
    r"file \\?\Volume{",
    "the files on disk ",
    "further partitions of disk ",
];

/// The comments of a node file about what it leaves out, except for disks that were unplugged on
/// purpose.
const LEFT_OUT: &str = "# Left out: ";
const UNPLUGGED: &str = "an unplugged disk";

impl Sim {
    /// Returns how the node differs from `before`, which [`Sim::node_file`] has returned: one line
    /// for each object that was added or removed, and for each key that was changed. Disks are told
    /// apart by number. Does not compare what is on disks other than disk 0, unless `with_data` is
    /// set.
    pub fn differences(
        &self,
        before: &str,
        with_data: bool,
    ) -> Result<Vec<String>, DescriptionError> {
        let (old, new) = (entries(before)?, entries(&self.node_file())?);
        let mut lines = Vec::new();
        let added = new.keys().filter(|name| !old.contains_key(*name));
        for (name, change) in old
            .keys()
            .map(|name| (name, "removed"))
            .chain(added.map(|name| (name, "added")))
        {
            let is_data = ON_VOLUMES
                .iter()
                .any(|beginning| name.starts_with(beginning))
                || name.starts_with("disk ")
                    && name
                        .split(": ")
                        .nth(1)
                        .is_some_and(|key| DATA.contains(&key));
            // Of an object that exists only once, the object is listed and not its keys.
            let object = name.rsplit_once(": ").map_or("", |(object, _)| object);
            let is_in_both =
                object.is_empty() || old.contains_key(object) && new.contains_key(object);
            if is_data && !with_data || !is_in_both {
                continue;
            }
            match (old.get(name), new.get(name)) {
                (Some(was), Some(is)) if was == is => {}
                (Some(_), Some(_)) if name.contains("password") || name.contains("secret") => {
                    lines.push(format!("{name}: changed"));
                }
                (Some(was), Some(is)) => lines.push(format!("{name}: {was} -> {is}")),
                _ => lines.push(format!("{name}: {change}")),
            }
        }
        Ok(lines)
    }
}

/// Returns the objects and keys of a node file, such as `disk 1` and `disk 1: offline`, with their
/// values.
fn entries(node_file: &str) -> Result<BTreeMap<String, String>, DescriptionError> {
    let table: Table = node_file
        .parse()
        .map_err(|error: toml::de::Error| DescriptionError(error.message().to_owned()))?;
    let left_out = node_file
        .lines()
        .filter_map(|line| line.strip_prefix(LEFT_OUT));
    let left_out = left_out.filter(|what| !what.starts_with(UNPLUGGED));
    let mut found: BTreeMap<_, _> = left_out
        .map(|what| (what.trim_end_matches('.').to_owned(), String::new()))
        .collect();
    flatten("", &table, &mut found);
    Ok(found)
}

fn flatten(object: &str, table: &Table, to: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let name = if object.is_empty() {
            key.clone()
        } else {
            format!("{object}: {key}")
        };
        match value {
            Value::Table(table) => flatten(&name, table, to),
            Value::Array(items) if items.iter().all(Value::is_table) => {
                for table in items.iter().filter_map(Value::as_table) {
                    let own = NAMES
                        .iter()
                        .find_map(|name| table.get(*name))
                        .map_or_else(String::new, text);
                    let name = format!("{name} {own}");
                    to.insert(name.clone(), String::new());
                    flatten(&name, table, to);
                }
            }
            value => drop(to.insert(name, text(value))),
        }
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
