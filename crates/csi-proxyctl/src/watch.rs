//! Output that is refreshed: `--watch`, and `top`.

use std::io::{self, IsTerminal as _, Write};
use std::pin::pin;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anstream::adapter::strip_str;
use anstyle::Style;
use clap::{Arg, ArgMatches};
use command_line::failure::Failure;
use command_line::quantity;
use console::{Key, Term};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::sleep;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

const DIMMED: Style = Style::new().dimmed();
/// Moves the cursor to the first line, and erases from there to the end of the screen.
const TOP: &str = "\u{1b}[H";
const ERASE_REST: &str = "\u{1b}[J";
const ERASE_LINE: &str = "\u{1b}[K";

const INTERVAL: &str = "interval";
const DEFAULT: Duration = Duration::from_secs(2);

/// Returns the flag for the time between two frames.
pub(crate) fn interval_arg() -> Arg {
    Arg::new(INTERVAL)
        .long(INTERVAL)
        .value_name("TIME")
        .value_parser(|text: &str| quantity::duration(text))
        .help(format!(
            "Time between refreshes, such as 10s [default: {}s]",
            DEFAULT.as_secs()
        ))
}

/// Returns the time between two frames.
pub(crate) fn interval(matches: &ArgMatches) -> Duration {
    matches.get_one(INTERVAL).copied().unwrap_or(DEFAULT)
}

/// Returns the time of day, such as `14:03:22 UTC`.
pub(crate) fn clock() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
        % 86_400;
    format!(
        "{:02}:{:02}:{:02} UTC",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Writes what `frame` returns, every `period`, until `q` is typed or the program is killed. On a
/// terminal, a frame replaces the last, and the keys of a pager scroll.
pub(crate) async fn watch(
    title: &str,
    period: Duration,
    mut frame: impl AsyncFnMut() -> String,
) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    if !io::stdout().is_terminal() {
        loop {
            write!(out, "{}", frame().await)?;
            out.flush()?;
            sleep(period).await;
        }
    }
    write!(out, "{TOP}{ERASE_REST}")?;
    let mut keys = keys();
    let mut screen = Screen {
        title: format!("{title}, every {} s", period.as_secs_f64()),
        ..Screen::default()
    };
    let mut wait = Duration::ZERO;
    loop {
        let delay = wait;
        let next = async {
            sleep(delay).await;
            frame().await
        };
        let mut next = pin!(next);
        screen.text = loop {
            tokio::select! {
                text = &mut next => break text,
                Some(key) = keys.recv() => match key {
                    Key::Char('q') => return Ok(()),
                    key => screen.scroll(&key),
                },
            }
            screen.write(&mut out)?;
        };
        screen.time = clock();
        // The text may be shorter than before.
        screen.scroll(&Key::Unknown);
        screen.write(&mut out)?;
        wait = period;
    }
}

/// What the terminal shows.
#[derive(Default)]
struct Screen {
    title: String,
    /// When the text was read.
    time: String,
    text: String,
    /// The first line that is shown.
    from: usize,
}

/// The lines that the heading and the line of the cursor take.
const HEADING_LINES: usize = 3;

impl Screen {
    fn size() -> (usize, usize) {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.map_or((usize::MAX, usize::MAX), |(width, height)| {
            let height = usize::from(height.0).saturating_sub(HEADING_LINES);
            (width.0.into(), height)
        })
    }

    fn scroll(&mut self, key: &Key) {
        let page = Self::size().1.saturating_sub(2).max(1);
        let from = self.from;
        let from = match key {
            Key::ArrowDown | Key::Char('j') => from.saturating_add(1),
            Key::ArrowUp | Key::Char('k') => from.saturating_sub(1),
            Key::PageDown | Key::Char(' ') => from.saturating_add(page),
            Key::PageUp | Key::Char('b') => from.saturating_sub(page),
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => self.text.lines().count().saturating_sub(page),
            _ => from,
        };
        self.from = from.min(self.text.lines().count().saturating_sub(1));
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (width, height) = Self::size();
        let place = match self.from {
            0 => String::new(),
            from => format!("; from line {}", from + 1),
        };
        let Self { title, time, .. } = self;
        let heading = format!("{title}; {time}{place}; arrows scroll, q ends");
        let heading = broken(&heading, width).swap_remove(0);
        // Erasing line by line does not flicker. A frame that is higher than the terminal would
        // scroll.
        write!(
            out,
            "{TOP}{ERASE_LINE}{DIMMED}{heading}{DIMMED:#}\n{ERASE_LINE}\n"
        )?;
        let lines: Vec<_> = self.text.lines().skip(self.from).collect();
        for row in fitted(&lines.join("\n"), width, height) {
            writeln!(out, "{ERASE_LINE}{row}")?;
        }
        write!(out, "{ERASE_REST}")?;
        out.flush()
    }
}

/// Returns the keys that are typed on the terminal. While the thread reads a key, the terminal shows
/// nothing that is typed. Ctrl-C and `q` restore the terminal; after another signal, the user has
/// to (`stty sane`).
fn keys() -> UnboundedReceiver<Key> {
    let (typed, keys) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let terminal = Term::stdout();
        // Ctrl-C ends the program as before. Without a keyboard, nobody types.
        while let Ok(key) = terminal.read_key() {
            let is_last = key == Key::Char('q');
            if typed.send(key).is_err() || is_last {
                return;
            }
        }
    });
    keys
}

/// Returns the rows of a text on a terminal. If `height` does not suffice for all, a last row says
/// what is left out.
pub(crate) fn fitted(text: &str, width: usize, height: usize) -> Vec<String> {
    let rows: Vec<Vec<String>> = text.lines().map(|line| broken(line, width)).collect();
    if rows.iter().map(Vec::len).sum::<usize>() <= height {
        return rows.concat();
    }
    let mut used = 0;
    let fit = rows.iter().take_while(|rows| {
        used += rows.len();
        used < height
    });
    let fit = fit.count();
    let left_out: Vec<String> = text
        .lines()
        .skip(fit)
        .map(|line| strip_str(line).to_string())
        .collect();
    // A section begins after an empty line.
    let before = text.lines().nth(fit.wrapping_sub(1)).unwrap_or_default();
    let is_first = |(line, before): &(&String, &str)| {
        !line.is_empty() && (before.is_empty() || line.starts_with("error: "))
    };
    let before = std::iter::once(before).chain(left_out.iter().map(String::as_str));
    let sections: Vec<&str> = left_out
        .iter()
        .zip(before)
        .filter(is_first)
        .map(|(line, _)| line.as_str())
        .collect();
    let lines = left_out.iter().filter(|line| !line.is_empty()).count();
    let colon = if sections.is_empty() { "" } else { ": " };
    let last = format!("... {lines} more lines{colon}{}", sections.join("; "));
    let mut fitting = rows[..fit].concat();
    fitting.extend(broken(&last, width).into_iter().take(1));
    fitting.truncate(height);
    fitting
}

/// Returns the rows of a line on a terminal of this width. A line that is broken loses its styles.
fn broken(line: &str, width: usize) -> Vec<String> {
    let plain = strip_str(line).to_string();
    if plain.width() <= width {
        return vec![line.to_owned()];
    }
    let (mut rows, mut used) = (vec![String::new()], 0);
    for letter in plain.chars() {
        let columns = letter.width().unwrap_or_default();
        if used + columns > width {
            rows.push(String::new());
            used = 0;
        }
        used += columns;
        rows.last_mut().expect("a row").push(letter);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::fitted;

    const FRAME: &str =
        "Connections: 1\n\nRunning calls: 2\n  one\n  two, which is long\n\nLocks: 1\n  disk 5\n";

    #[test]
    fn a_frame_fits_any_terminal_and_says_what_it_leaves_out() {
        for width in 1..30 {
            for height in 0..15 {
                let rows = fitted(FRAME, width, height);
                assert!(rows.len() <= height, "{width}x{height}: {rows:?}");
                assert!(
                    rows.iter().all(|row| row.chars().count() <= width),
                    "{width}x{height}: {rows:?}"
                );
                let text = rows.concat();
                assert!(
                    text.contains("disk 5") || text.contains('.') || height == 0,
                    "{width}x{height}: {rows:?}"
                );
            }
        }
        assert_eq!(fitted(FRAME, 80, 8).join("\n") + "\n", FRAME);
        let rows = fitted(FRAME, 80, 5);
        assert_eq!(rows[3..], ["  one", "... 3 more lines: Locks: 1"]);
        assert_eq!(
            fitted(FRAME, 80, 3)[2],
            "... 5 more lines: Running calls: 2; Locks: 1"
        );
        assert_eq!(fitted(FRAME, 17, 7)[5], "ong");
    }

    #[test]
    fn an_error_that_is_left_out_is_named() {
        assert_eq!(
            fitted("DISK\n   1\nerror: disk 2 hangs\n", 80, 2),
            ["DISK", "... 2 more lines: error: disk 2 hangs"]
        );
    }
}
