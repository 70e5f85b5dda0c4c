//! Durations, sizes and numbers as people write them.

use std::time::Duration;

/// Parses `90`, `1.5s`, `500ms`, `2m` or `1h`; a number alone is in seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("the unit {other} is not one of ms, s, m and h")),
    };
    let number: f64 = digits
        .parse()
        .map_err(|_| "a duration is a number and a unit, such as 30s".to_owned())?;
    let duration = Duration::try_from_secs_f64(number * unit)
        .map_err(|_| "the duration is out of range".to_owned())?;
    if duration.is_zero() {
        Err("the duration must be more than zero".to_owned())
    } else {
        Ok(duration)
    }
}

/// Returns a duration as [`duration`] parses it, in the largest unit of which it is a whole number.
pub fn short_duration(milliseconds: u64) -> String {
    let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let (unit, name) = units
        .into_iter()
        .find(|(unit, _)| milliseconds.is_multiple_of(*unit))
        .unwrap_or((1, "ms"));
    format!("{}{name}", milliseconds / unit)
}

const UNITS: [(&str, i64); 4] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
];

/// Parses a number of bytes, or a number of `Ki`, `Mi`, `Gi` or `Ti` as in Kubernetes.
pub fn size(text: &str) -> Result<i64, String> {
    let unit = UNITS
        .iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, *unit)));
    let (number, unit) = unit.unwrap_or((text, 1));
    let number: u32 = match number.parse::<u64>() {
        Ok(bytes) if unit == 1 => {
            return i64::try_from(bytes).map_err(|_| "the size is out of range".to_owned());
        }
        Ok(number) => u32::try_from(number).map_err(|_| "the size is out of range".to_owned())?,
        Err(_) => {
            return Err(
                "a size is a number of bytes, or a whole number and Ki, Mi, Gi or Ti".to_owned(),
            );
        }
    };
    i64::from(number)
        .checked_mul(unit)
        .ok_or_else(|| "the size is out of range".to_owned())
}

/// Parses a number that counts something or is the name of a disk.
pub fn number<N: TryFrom<u64>>(text: &str) -> Result<N, &'static str> {
    let number: u64 = text.parse().map_err(|_| "expected a whole number")?;
    N::try_from(number).map_err(|_| "the number is too large")
}

/// Returns a size with three digits and a unit, such as `9.98Gi`.
pub fn short_size(bytes: u64) -> String {
    let names = ["B", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut divisor: u64 = 1;
    for name in names {
        // Rounding must not give four digits.
        let hundredths = u128::from(bytes) * 100 / u128::from(divisor);
        let (whole, fraction) = (hundredths / 100, hundredths % 100);
        if whole < 1024 || name == "Ei" {
            return match whole {
                _ if divisor == 1 => format!("{whole}{name}"),
                0..10 => format!("{whole}.{fraction:02}{name}"),
                10..100 => format!("{whole}.{}{name}", fraction / 10),
                _ => format!("{whole}{name}"),
            };
        }
        divisor <<= 10;
    }
    unreachable!("the last unit returns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_or_are_in_seconds() {
        let parsed =
            ["90", "1.5s", "500ms", "2m", "1h"].map(|text| duration(text).unwrap().as_millis());
        assert_eq!(parsed, [90_000, 1_500, 500, 120_000, 3_600_000]);
        for text in ["", "s", "0", "-1s", "1d", "1 s", "nan", "inf", "1e30h"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_short_duration_is_parsed_as_the_same() {
        for text in ["1h", "90m", "30s", "1500ms", "1ms"] {
            let parsed = duration(text).unwrap();
            assert_eq!(short_duration(parsed.as_millis().try_into().unwrap()), text);
        }
    }

    #[test]
    fn sizes_have_the_units_of_kubernetes() {
        assert_eq!(
            ["0", "4096", "1Ki", "5Gi", "2Ti"].map(|text| size(text).unwrap()),
            [0, 4096, 1024, 5 << 30, 2 << 40]
        );
        for text in [
            "",
            "Gi",
            "-1",
            "1.5Gi",
            "1GB",
            "9223372036854775808",
            "8388608Ti",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_short_size_has_at_most_six_characters() {
        let shown = [
            0,
            1023,
            1024,
            (10 << 30) - 1,
            10 << 30,
            (100 << 30) + 1,
            (1 << 40) - 1,
            u64::MAX,
        ]
        .map(short_size);
        assert_eq!(
            shown,
            [
                "0B", "1023B", "1.00Ki", "9.99Gi", "10.0Gi", "100Gi", "1023Gi", "15.9Ei"
            ]
        );
        for shift in 0..64 {
            for bytes in [1 << shift, (1_u64 << shift) - 1, 999 << (shift % 50)] {
                assert!(
                    short_size(bytes).len() <= 6,
                    "{bytes}: {}",
                    short_size(bytes)
                );
            }
        }
    }
}
