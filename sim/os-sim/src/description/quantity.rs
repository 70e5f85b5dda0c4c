//! Sizes and durations as a node file has them: `"5 GiB"`, `"1.5s"`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error};

const SIZES: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
const DURATIONS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

/// Reads a size: bytes, or a text such as `10 GiB` (`#[serde(deserialize_with)]`).
pub(crate) fn size<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    match NumberOrText::deserialize(from)? {
        NumberOrText::Number(bytes) => Ok(bytes),
        NumberOrText::Text(text) => parse_size(&text).ok_or_else(|| {
            D::Error::custom(format!("{text:?} is not a size: use bytes, or a text such as \"10 GiB\""))
        }),
    }
}

/// Reads a size that may be left out.
pub(crate) fn some_size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    size(from).map(Some)
}

/// Reads a duration: a text such as `1.5s`.
pub(crate) fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse_duration(&text).ok_or_else(|| {
        D::Error::custom(format!(
            "{text:?} is not a duration: use a text such as \"500ms\", \"1.5s\", \"2m\" or \"1h\""
        ))
    })
}

/// Reads a duration as a number of milliseconds.
pub(crate) fn milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    duration(from).map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let (_, unit) = SIZES.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*unit)
}

fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let (_, unit) = DURATIONS.iter().find(|(name, _)| *name == unit)?;
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * unit).ok()
}

/// Splits a text into its number and its unit, with or without a space between them.
fn split(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    Some((&text[..end], text[end..].strip_prefix(' ').unwrap_or(&text[end..])))
}

/// Returns a size as a value in TOML, with the largest unit that leaves no remainder.
pub(crate) fn size_value(bytes: u64) -> String {
    let unit = SIZES.iter().rev().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(name, unit)| format!("\"{} {name}\"", bytes / unit))
}

/// Returns a duration as a value in TOML.
pub(crate) fn duration_value(span: Duration) -> String {
    let milliseconds = span.as_millis();
    if milliseconds.is_multiple_of(1000) {
        format!("\"{}s\"", milliseconds / 1000)
    } else {
        format!("\"{milliseconds}ms\"")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{duration_value, parse_duration, parse_size, size_value};

    #[test]
    fn sizes_and_durations_have_a_number_and_a_unit() {
        assert_eq!(["5 GiB", "5GiB", "1 KiB"].map(parse_size), [Some(5 << 30), Some(5 << 30), Some(1 << 10)]);
        for text in ["", "5", "5 GB", "5 gib", "-1 GiB", "1.5 GiB", "GiB", "99999999999 TiB", "5  GiB"] {
            assert_eq!(parse_size(text), None, "{text}");
        }
        let durations =
            ["30s", "1.5 s", "500ms", "2m", "1h"].map(|text| parse_duration(text).map(|span| span.as_millis()));
        assert_eq!(durations, [Some(30_000), Some(1_500), Some(500), Some(120_000), Some(3_600_000)]);
        for text in ["", "30", "1 d", "-1s", "1..5s", "s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        for bytes in [1 << 10, 5 << 30, (5 << 30) + 512, 3 << 40] {
            let value = size_value(bytes);
            let text = value.trim_matches('"');
            assert_eq!(text.parse().ok().or_else(|| parse_size(text)), Some(bytes), "{value}");
        }
        for span in [0, 5, 1_000, 1_500, 90_000].map(Duration::from_millis) {
            assert_eq!(parse_duration(duration_value(span).trim_matches('"')), Some(span));
        }
    }
}
