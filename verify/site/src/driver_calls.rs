//! The page of the calls that drivers make, from the sequences that csi-proxy-sim replays.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Returns the page.
pub(crate) fn page(folder: &Path) -> Result<String, Box<dyn Error>> {
    let mut files: Vec<_> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let mut page = "# Drivers' call sequences\n\n\
                    What kubelet requests from a node plugin, and which RPCs of csi-proxy the \
                    plugin then calls, in order. These are the sequences of real drivers, taken \
                    from their sources, which `csi-proxy-sim demo` and the tests replay. A name \
                    such as `$disk` stands for a value from an earlier response or from the \
                    driver's configuration. Between the calls, drivers also read and create \
                    directories in their own container; those steps are shown where the calls \
                    depend on them.\n"
        .to_owned();
    for file in files {
        let sequence: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
        write_sequence(&mut page, &sequence)
            .ok_or_else(|| format!("{}: unknown form", file.display()))?;
    }
    Ok(page)
}

fn write_sequence(page: &mut String, sequence: &Value) -> Option<()> {
    let (driver, about) = (sequence["driver"].as_str()?, sequence["about"].as_str()?);
    let _ = write!(page, "\n## {driver}\n\nIn short: {about}.\n");
    for phase in sequence["phases"].as_array()? {
        let _ = write!(page, "\n**{}**\n\n", phase["name"].as_str()?);
        let mut number = 0;
        for step in phase["steps"].as_array()? {
            let part = step["part"]
                .as_str()
                .map(|name| sequence["parts"][name].as_array());
            let steps = match part {
                Some(part) => part?.as_slice(),
                None => std::slice::from_ref(step),
            };
            for step in steps {
                write_step(page, step, &mut number);
            }
        }
    }
    Some(())
}

fn write_step(page: &mut String, step: &Value, number: &mut usize) {
    let note = step["note"]
        .as_str()
        .map(|note| format!(" {note}"))
        .unwrap_or_default();
    let line = if let Some(call) = step["call"].as_str() {
        let request = step
            .get("request")
            .map(|request| format!(" `{request}`"))
            .unwrap_or_default();
        format!("{call}{request}{note}")
    } else if let (Some(actor), Some(action)) = (step["as"].as_str(), step["do"].as_str()) {
        let object = ["path", "disk", "target"]
            .iter()
            .find_map(|key| step[*key].as_str());
        let object = object
            .map(|object| format!(" `{object}`"))
            .unwrap_or_default();
        format!("*{actor}: {action}{object}*{note}")
    } else {
        return;
    };
    *number += 1;
    let _ = writeln!(page, "{number}. {line}");
}
