//! Line charts as SVG, readable on a light and on a dark background.

use std::fmt::Write as _;

/// The size of the picture, and in it of a panel and the area of its lines.
const WIDTH: f64 = 992.0;
const HEIGHT: f64 = 330.0;
const PANEL: f64 = WIDTH / 2.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 216.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 54.0;
/// The least distance of the names of two lines.
const LINE_HEIGHT: f64 = 14.0;

/// Two diagrams side by side, with the same horizontal axis.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What the picture shows.
    pub title: &'static str,
    /// The horizontal axis, which is logarithmic.
    pub horizontal: &'static str,
    /// The diagrams.
    pub panels: [Panel; 2],
}

/// A diagram.
#[derive(Clone, Debug)]
pub struct Panel {
    /// The vertical axis, with its unit.
    pub vertical: &'static str,
    /// Whether the vertical axis is logarithmic. Otherwise it begins at 0.
    pub is_logarithmic: bool,
    /// The lines: name, and points by their number and value.
    pub lines: Vec<(String, Vec<(usize, f64)>)>,
}

/// An axis: the values at its ends, and whether it is logarithmic.
struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Axis {
    /// Returns where `value` is, from 0 to 1.
    fn at(&self, value: f64) -> f64 {
        if self.is_logarithmic {
            return (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        }
        (value - self.low) / (self.high - self.low)
    }

    /// Returns the axis for values up to `high`.
    fn vertical(panel: &Panel) -> Self {
        let values = || panel.lines.iter().flat_map(|(_, points)| points).map(|(_, value)| *value);
        let (most, least) = (values().fold(0.0, f64::max), values().fold(f64::MAX, f64::min));
        if panel.is_logarithmic {
            let power = |exponent: f64| 10_f64.powf(exponent);
            let low = power(least.max(1.0).log10().floor());
            return Self { low, high: power(most.log10().ceil()).max(low * 10.0), is_logarithmic: true };
        }
        let step = tick(most);
        Self { low: 0.0, high: (most / step).floor() * step + step, is_logarithmic: false }
    }

    fn ticks(&self) -> Vec<f64> {
        let mut ticks = vec![self.low];
        let mut next = self.low;
        while next < self.high * 0.999 {
            next = if self.is_logarithmic { next * 10.0 } else { next + tick(self.high * 0.99) };
            ticks.push(next);
        }
        ticks
    }
}

/// Returns the distance of the marks on a linear axis: 1, 2 or 5 times a power of ten.
fn tick(most: f64) -> f64 {
    let power = 10_f64.powf((most / 4.0).log10().floor());
    let rest = most / 4.0 / power;
    power
        * if rest < 1.5 {
            1.0
        } else if rest < 3.5 {
            2.0
        } else if rest < 7.5 {
            5.0
        } else {
            10.0
        }
}

#[expect(clippy::cast_precision_loss, reason = "sizes are below 2^52")]
fn number(value: usize) -> f64 {
    value as f64
}

/// Returns `value` for people: `1000` as `1,000`.
pub fn grouped(value: f64) -> String {
    if value.fract().abs() > 1e-9 {
        return format!("{value}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const STYLE: &str = "
    svg { color-scheme: light dark; --paper: #fff; --ink: #1f2a37; --soft: #5b6776; --grid: #dfe4ea;
      --c0: #1d5fd1; --c1: #b4500b; --c2: #0b7a4b; --c3: #8b2fb0; --c4: #b3123f; --c5: #516072; }
    @media (prefers-color-scheme: dark) { svg { --paper: #14181e; --ink: #e4e9f0; --soft: #a0acba; --grid: #2c343e;
      --c0: #7fb0ff; --c1: #ffb070; --c2: #62d39f; --c3: #d79bf5; --c4: #ff8aa5; --c5: #b3bfcc; } }
    text { fill: var(--ink); } .soft { fill: var(--soft); } .grid { stroke: var(--grid); }
    path { fill: none; stroke-width: 2; }
";

impl Chart {
    /// Returns the picture.
    pub fn svg(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"system-ui, sans-serif\" \
             font-size=\"12\">\n  <title>{}</title>\n  <style>{STYLE}  </style>\n  <rect width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" style=\"fill:var(--paper)\"/>\n  <text x=\"12\" y=\"22\" font-size=\"15\" \
             font-weight=\"600\">{}</text>\n",
            self.title, self.title
        );
        for (at, panel) in self.panels.iter().enumerate() {
            self.draw(&mut svg, panel, PANEL * number(at) + LEFT);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw(&self, svg: &mut String, panel: &Panel, left: f64) {
        let (width, height) = (PANEL - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let bottom = TOP + height;
        let sizes: std::collections::BTreeSet<_> =
            panel.lines.iter().flat_map(|(_, points)| points.iter().map(|(size, _)| *size)).collect();
        let ends = sizes.first().zip(sizes.last()).map_or((1.0, 10.0), |(low, high)| (number(*low), number(*high)));
        let horizontal = Axis { low: ends.0, high: ends.1, is_logarithmic: true };
        let vertical = Axis::vertical(panel);
        let x = |size: usize| left + width * horizontal.at(number(size));
        let y = |value: f64| bottom - height * vertical.at(value);
        let mut line = |text: String| {
            svg.push_str("  ");
            svg.push_str(&text);
            svg.push('\n');
        };
        line(format!(
            "<text class=\"soft\" x=\"{:.0}\" y=\"{:.0}\">{}</text>",
            left - LEFT + 12.0,
            TOP - 12.0,
            panel.vertical
        ));
        for value in vertical.ticks() {
            let at = y(value);
            line(format!(
                "<line class=\"grid\" x1=\"{left:.1}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>",
                left + width
            ));
            let (at_x, at_y) = (left - 6.0, at + 4.0);
            line(format!(
                "<text class=\"soft\" x=\"{at_x:.1}\" y=\"{at_y:.1}\" text-anchor=\"end\">{}</text>",
                grouped(value)
            ));
        }
        for size in &sizes {
            let text = grouped(number(*size));
            line(format!(
                "<text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
                x(*size),
                bottom + 18.0
            ));
        }
        line(format!(
            "<text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            left + width / 2.0,
            bottom + 38.0,
            self.horizontal
        ));
        let mut names = Vec::new();
        for (at, (name, points)) in panel.lines.iter().enumerate() {
            let style = format!("stroke:var(--c{})", at % 6);
            let mut path = String::new();
            for (at, (size, value)) in points.iter().enumerate() {
                let letter = if at == 0 { 'M' } else { 'L' };
                // Writing to a text does not fail.
                let _ = write!(path, "{letter}{:.1} {:.1}", x(*size), y(*value));
            }
            line(format!("<path style=\"{style}\" d=\"{path}\"/>"));
            for (size, value) in points {
                let fill = format!("fill:var(--c{})", at % 6);
                line(format!("<circle style=\"{fill}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\"/>", x(*size), y(*value)));
            }
            if let Some((size, value)) = points.last() {
                names.push((y(*value), x(*size), at, name));
            }
        }
        names.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut free = TOP;
        let below = number(names.len()) * LINE_HEIGHT;
        for (place, (at, end, color, name)) in names.into_iter().enumerate() {
            // Room remains for the names below.
            let last = bottom + LINE_HEIGHT - (below - number(place) * LINE_HEIGHT);
            let here = at.min(last).max(free);
            free = here + LINE_HEIGHT;
            let (from, to) = (left + width.max(end - left) + 6.0, here + 4.0);
            line(format!("<text x=\"{from:.1}\" y=\"{to:.1}\" style=\"fill:var(--c{})\">{name}</text>", color % 6));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Chart, Panel, grouped};

    fn panel(is_logarithmic: bool, values: [f64; 3]) -> Panel {
        let points = [1, 10, 100].into_iter().zip(values).collect();
        Panel { vertical: "calls", is_logarithmic, lines: vec![("a line".to_owned(), points)] }
    }

    #[test]
    fn a_line_goes_from_one_end_of_the_axes_to_the_other() {
        let panels = [panel(true, [1.0, 10.0, 1000.0]), panel(false, [0.0, 1.0, 2.0])];
        let svg = Chart { title: "t", horizontal: "disks", panels }.svg();
        assert!(svg.contains("M56.0 276.0L168.0 201.3L280.0 52.0"), "{svg}");
        assert!(svg.contains("M552.0 276.0L664.0 186.4L776.0 96.8"), "{svg}");
        assert!(svg.len() < 20_000);
    }

    #[test]
    fn numbers_have_groups_of_three_digits() {
        assert_eq!([1.0, 1000.0, 100_000.0, 2.5].map(grouped), ["1", "1,000", "100,000", "2.5"]);
    }
}
