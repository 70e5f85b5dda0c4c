//! Reads and writes sizes and durations of node files, such as `"5 GiB"` and `"1.5s"`. Each module
//! is for `#[serde(with)]`.

#![expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "serde passes references to fields"
)]

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

const SIZES: [(&str, u64); 4] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];
const DURATIONS: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// A value that is a number or a text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "use a number that is not negative, or a text")]
pub(super) enum NumberOrText {
    Number(u64),
    Text(String),
}

/// A size in bytes: a number, or a text such as `10 GiB`.
pub(crate) mod size {
    use super::{
        Deserialize, Deserializer, Error, NumberOrText, Serialize, Serializer, parse_size,
        size_value,
    };

    pub(crate) fn serialize<S: Serializer>(bytes: &u64, to: S) -> Result<S::Ok, S::Error> {
        size_value(*bytes).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        match NumberOrText::deserialize(from)? {
            NumberOrText::Number(bytes) => Ok(bytes),
            NumberOrText::Text(text) => parse_size(&text).ok_or_else(|| {
                D::Error::custom(format!(
                    "{text:?} is not a size: use bytes, or a text such as \"10 GiB\""
                ))
            }),
        }
    }
}

/// A size that may be left out.
pub(crate) mod some_size {
    use super::{Deserializer, Serialize, Serializer, size, size_value};

    pub(crate) fn serialize<S: Serializer>(bytes: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        bytes.map(size_value).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        size::deserialize(from).map(Some)
    }
}

/// A duration: a text such as `1.5s`.
pub(crate) mod duration {
    use super::{
        Deserialize, Deserializer, Duration, Error, Serializer, duration_value, parse_duration,
    };

    pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&duration_value(*span))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(from)?;
        parse_duration(&text).ok_or_else(|| {
            D::Error::custom(format!(
                "{text:?} is not a duration: use a text such as \"500ms\", \"1.5s\", \"2m\" or \
                 \"1h\""
            ))
        })
    }
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
    Some((
        &text[..end],
        text[end..].strip_prefix(' ').unwrap_or(&text[end..]),
    ))
}

/// Returns a size as it is written: with the largest unit that leaves no remainder.
fn size_value(bytes: u64) -> NumberOrText {
    let unit = SIZES
        .iter()
        .rev()
        .find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    unit.map_or(NumberOrText::Number(bytes), |(name, unit)| {
        NumberOrText::Text(format!("{} {name}", bytes / unit))
    })
}

/// Returns a duration as it is written.
fn duration_value(span: Duration) -> String {
    let milliseconds = span.as_millis();
    if milliseconds.is_multiple_of(1000) {
        format!("{}s", milliseconds / 1000)
    } else {
        format!("{milliseconds}ms")
    }
}

/// The default of a key that is true unless the description says otherwise.
pub(crate) fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::{parse_duration, parse_size};

    #[test]
    fn sizes_and_durations_have_a_number_and_a_unit() {
        assert_eq!(
            ["5 GiB", "5GiB", "1 KiB"].map(parse_size),
            [Some(5 << 30), Some(5 << 30), Some(1 << 10)]
        );
        for text in [
            "",
            "5",
            "5 GB",
            "5 gib",
            "-1 GiB",
            "1.5 GiB",
            "GiB",
            "99999999999 TiB",
            "5  GiB",
        ] {
            assert_eq!(parse_size(text), None, "{text}");
        }
        let durations = ["30s", "1.5 s", "500ms", "2m", "1h"]
            .map(|text| parse_duration(text).map(|span| span.as_millis()));
        assert_eq!(
            durations,
            [
                Some(30_000),
                Some(1_500),
                Some(500),
                Some(120_000),
                Some(3_600_000)
            ]
        );
        for text in ["", "30", "1 d", "-1s", "1..5s", "s"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
