//! `docs/growth.md` and its pictures.

use std::error::Error;
use std::path::PathBuf;
use std::{fmt, fs};

use crate::call::Call;
use crate::growth::chart::{Chart, Panel, grouped};
use crate::growth::deletion::{self, Shape};
use crate::growth::{Cost, connections, costs, node};

/// How many disks a node has.
pub const DISKS: [usize; 5] = [1, 4, 16, 64, 256];
/// How many volumes a node has.
pub const VOLUMES: [usize; 4] = [1, 10, 100, 1000];
/// How many entries a tree has.
pub const ENTRIES: [usize; 5] = [10, 100, 1000, 10_000, 100_000];
/// How many connections are open.
pub const CONNECTIONS: [usize; 5] = [1, 8, 64, 512, 4096];

/// A table in the page: its name, which is the first cell, the sizes, and its rows.
#[derive(Clone, Debug)]
pub struct Table {
    name: &'static str,
    sizes: Vec<usize>,
    rows: Vec<(String, Vec<String>)>,
}

impl Table {
    fn new(name: &'static str, sizes: &[usize]) -> Self {
        Self { name, sizes: sizes.to_vec(), rows: Vec::new() }
    }

    fn head(&self) -> String {
        let sizes: Vec<_> = self.sizes.iter().map(usize::to_string).collect();
        format!("| {} | {} |\n|---|{}\n", self.name, sizes.join(" | "), "--:|".repeat(sizes.len()))
    }

    /// Returns the page with this table in the place of that with the same head.
    fn replaced(&self, page: &str) -> Result<String, String> {
        let (head, rows) = (self.head(), self.to_string());
        let start = page.find(&head).ok_or_else(|| format!("the page has no table that begins with:\n{head}"))?;
        let old: usize =
            page[start..].split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len).sum();
        Ok(format!("{}{rows}{}", &page[..start], &page[start + old..]))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head())?;
        self.rows.iter().try_for_each(|(name, cells)| writeln!(f, "| {name} | {} |", cells.join(" | ")))
    }
}

/// Returns the cell of a row in the table of primitive calls with these sizes.
pub fn primitive_calls(page: &str, sizes: &[usize], row: &str, size: usize) -> Option<String> {
    let start = page.find(&Table::new(PRIMITIVES, sizes).head())?;
    let mut lines = page[start..].lines().take_while(|line| line.starts_with('|'));
    let line = lines.find(|line| line.starts_with(&format!("| {row} |")))?;
    let column = sizes.iter().position(|other| *other == size)?;
    line.split('|').nth(column + 2).map(|cell| cell.trim().to_owned())
}

const PRIMITIVES: &str = "primitive calls";

fn documents() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"))
}

/// Reads the page.
pub fn read() -> Result<String, Box<dyn Error>> {
    Ok(fs::read_to_string(documents().join("growth.md"))?.replace("\r\n", "\n"))
}

/// Measures everything, and writes the tables of the page and the pictures.
pub fn write() -> Result<(), Box<dyn Error>> {
    let results = [
        of_node("disks", "Costs of a call by the disks of the node", &DISKS, |size| Ok(node::with_disks(size)))?,
        of_node("volumes", "Costs of a call by the volumes of the node", &VOLUMES, node::with_volumes)?,
        of_deletion()?,
        of_connections()?,
    ];
    let mut page = read()?;
    for (file, tables, chart) in results {
        for table in tables {
            page = table.replaced(&page)?;
        }
        fs::write(documents().join(file), chart.svg())?;
    }
    Ok(fs::write(documents().join("growth.md"), page)?)
}

/// A file of a picture, the tables beside it, and the picture.
type Section = (&'static str, Vec<Table>, Chart);

fn of_node(
    what: &'static str,
    title: &'static str,
    sizes: &[usize],
    build: impl Fn(usize) -> Result<os_sim::Sim, Box<dyn Error>>,
) -> Result<Section, Box<dyn Error>> {
    let steps = node::steps()?;
    let mut by_size = Vec::new();
    for size in sizes {
        println!("{size} {what}");
        by_size.push(costs(&build(*size)?, &steps, 0)?);
    }
    let of_step = |step: usize, figure: fn(&Cost) -> f64| -> Vec<f64> {
        by_size.iter().filter_map(|costs| costs.get(step)).map(figure).collect()
    };
    let table = |name, figure: fn(&Cost) -> f64| {
        let row = |(at, step): (usize, &node::Step)| {
            (step.name.to_owned(), of_step(at, figure).iter().map(|value| format!("{value:.0}")).collect())
        };
        Table { rows: steps.iter().enumerate().map(row).collect(), ..Table::new(name, sizes) }
    };
    let panel = |vertical, figure: fn(&Cost) -> f64| {
        let drawn = steps.iter().enumerate().filter(|(_, step)| step.is_drawn);
        let line = |(at, step): (usize, &node::Step)| {
            (step.name.to_owned(), sizes.iter().copied().zip(of_step(at, figure)).collect())
        };
        Panel { vertical, is_logarithmic: true, lines: drawn.map(line).collect() }
    };
    let tables = vec![
        table(PRIMITIVES, |cost| cost.primitives),
        table("WMI calls", |cost| cost.wmi),
        table("allocations", |cost| cost.allocations),
        table("bytes allocated", |cost| cost.bytes),
    ];
    let panels = [panel("primitive calls", |cost| cost.primitives), panel("allocations", |cost| cost.allocations)];
    let file = if what == "disks" { "growth-disks.svg" } else { "growth-volumes.svg" };
    let horizontal = what;
    Ok((file, tables, Chart { title, horizontal, panels }))
}

fn of_deletion() -> Result<Section, Box<dyn Error>> {
    let mut table = [
        Table::new("primitive calls of an entry", &ENTRIES),
        Table::new("allocations of an entry", &ENTRIES),
        Table::new("bytes allocated of an entry", &ENTRIES),
    ];
    let (mut primitives, mut allocations) = (Vec::new(), Vec::new());
    for shape in Shape::ALL {
        let sizes: Vec<_> = ENTRIES.into_iter().filter(|entries| shape.allows(*entries)).collect();
        let mut found = Vec::new();
        for entries in &sizes {
            println!("{entries} entries, {}", shape.name());
            found.push(deletion::cost(shape, *entries)?);
        }
        let figures: [fn(&Cost) -> f64; 3] = [|cost| cost.primitives, |cost| cost.allocations, |cost| cost.bytes];
        for ((table, figure), decimals) in table.iter_mut().zip(figures).zip([2, 2, 0]) {
            let mut cells: Vec<_> = found.iter().map(|cost| format!("{:.decimals$}", figure(cost))).collect();
            cells.resize(ENTRIES.len(), String::new());
            table.rows.push((shape.name().to_owned(), cells));
        }
        let line = |figure: fn(&Cost) -> f64| {
            (shape.name().to_owned(), sizes.iter().copied().zip(found.iter().map(figure)).collect())
        };
        primitives.push(line(figures[0]));
        allocations.push(line(figures[1]));
    }
    let panels = [
        Panel { vertical: "primitive calls for each entry", is_logarithmic: false, lines: primitives },
        Panel { vertical: "allocations for each entry", is_logarithmic: false, lines: allocations },
    ];
    let chart = Chart { title: "Costs of removing a tree, for each entry", horizontal: "entries", panels };
    Ok(("growth-deletion.svg", table.into(), chart))
}

fn of_connections() -> Result<Section, Box<dyn Error>> {
    let measured = Call::all()?;
    let mut table = Table::new("connections", &CONNECTIONS);
    let (mut memory, mut cpu) = (Vec::new(), Vec::new());
    for call in measured.iter().filter(|call| ["PathExists, existing", "ListDiskIDs"].contains(&call.name)) {
        let mut found = Vec::new();
        for connections in CONNECTIONS {
            println!("{connections} connections, {}", call.name);
            found.push(connections::measure(call, connections)?);
        }
        let row = |what: &str, figure: fn(&connections::Usage) -> f64| {
            let cells = found.iter().map(|usage| grouped(figure(usage).round())).collect();
            (format!("{}: {what}", call.name), cells)
        };
        table.rows.push(row("resident memory, KiB", |usage| usage.memory));
        table.rows.push(row("CPU time of a call, us", |usage| usage.cpu));
        table.rows.push(row("threads", |usage| usage.threads));
        let line = |figure: fn(&connections::Usage) -> f64| {
            (call.name.to_owned(), CONNECTIONS.into_iter().zip(found.iter().map(figure)).collect::<Vec<_>>())
        };
        memory.push(line(|usage| usage.memory / 1024.0));
        cpu.push(line(|usage| usage.cpu));
    }
    let panels = [
        Panel { vertical: "resident memory, MiB", is_logarithmic: true, lines: memory },
        Panel { vertical: "CPU time of a call, µs", is_logarithmic: false, lines: cpu },
    ];
    let chart = Chart { title: "A daemon with many open connections", horizontal: "connections", panels };
    Ok(("growth-connections.svg", vec![table], chart))
}
