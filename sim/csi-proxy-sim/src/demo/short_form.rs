//! Short forms of requests, responses, paths, sizes and times, for one line of a terminal.

use std::time::Duration;

use serde_json::{Map, Value};

use super::expectation::text;

/// The fields that name what a request is about, the most informative first.
const OBJECTS: [&str; 12] = [
    "targetPath",
    "path",
    "mount",
    "diskNumber",
    "diskID",
    "diskId",
    "volumeId",
    "remotePath",
    "iqn",
    "targetPortal",
    "targetAddress",
    "name",
];

/// Returns what a request is about: `disk 1, online`.
pub(super) fn request(fields: &Map<String, Value>) -> String {
    let Some((name, value)) = OBJECTS.iter().find_map(|name| Some((*name, fields.get(*name)?))) else {
        return String::new();
    };
    let object = match value {
        Value::Object(fields) => request(fields),
        value => scalar(name, value),
    };
    let option = match (fields.get("isOnline"), fields.get("force")) {
        (Some(Value::Bool(true)), _) => ", online",
        (Some(_), _) => ", offline",
        (_, Some(Value::Bool(true))) => ", force",
        _ => "",
    };
    object + option
}

/// Returns what a response contains; an empty text if it only confirms success.
pub(super) fn response(response: &Value) -> String {
    let empty = Map::new();
    let fields = response.as_object().unwrap_or(&empty);
    if let (Some(total), Some(used)) =
        (size(fields, "totalBytes", "volumeSize"), size(fields, "usedBytes", "volumeUsedSize"))
    {
        return format!("{} of {}", bytes(used), bytes(total));
    }
    if let Some(size) = size(fields, "totalBytes", "diskSize") {
        return bytes(size);
    }
    match fields.iter().find(|(name, _)| *name != "error") {
        None => String::new(),
        Some((name, Value::Array(items))) => match items.as_slice() {
            [item] => scalar(name, item),
            items => format!("{} entries", items.len()),
        },
        Some((_, Value::Object(entries))) => format!("{} disks", entries.len()),
        Some((name, value)) => scalar(name, value),
    }
}

fn size(fields: &Map<String, Value>, name: &str, old_name: &str) -> Option<u64> {
    fields.get(name).or_else(|| fields.get(old_name))?.as_str()?.parse().ok()
}

fn scalar(name: &str, value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        value if name.to_lowercase().starts_with("disk") => format!("disk {}", text(value)),
        Value::String(id) if name == "volumeId" && !id.starts_with('\\') => format!("volume \"{id}\""),
        value => short(&text(value)),
    }
}

/// Shortens a path or volume name so that different ones remain distinguishable: `C:\…\globalmount`, `volume 1f0c2a…`.
pub(super) fn short(text: &str) -> String {
    if let Some(guid) = text.strip_prefix(r"\\?\Volume{") {
        return format!("volume {}…", guid.chars().take(6).collect::<String>());
    }
    let is_path = text.starts_with(['\\', '/']) && !text.starts_with(r"\\") || text.as_bytes().get(1) == Some(&b':');
    let Some(first) = text.find(['\\', '/']).filter(|_| is_path) else { return text.to_owned() };
    let Some(last) = text.rfind(['\\', '/']).filter(|last| *last > first) else { return text.to_owned() };
    format!("{}…{}", &text[..=first], &text[last..])
}

/// Returns a number of bytes in the largest unit that is not larger than the number.
pub(super) fn bytes(count: u64) -> String {
    let (unit, shift) = match count {
        0..0x10_0000 => ("KiB", 10),
        0x10_0000..0x4000_0000 => ("MiB", 20),
        _ => ("GiB", 30),
    };
    let hundredths = (u128::from(count) * 100) >> shift;
    match (hundredths / 100, hundredths % 100) {
        (whole, 0) => format!("{whole} {unit}"),
        (whole, part) => format!("{whole}.{part:02} {unit}"),
    }
}

/// Returns a time in milliseconds, without the unit.
pub(super) fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{bytes, request, response, short};

    #[test]
    fn a_short_path_keeps_its_drive_slashes_and_last_name() {
        for (long, shown) in [
            (r"C:\var\lib\kubelet\globalmount", r"C:\…\globalmount"),
            (r"\var\lib\kubelet\globalmount", r"\…\globalmount"),
            ("c:/var/lib/kubelet/mount", "c:/…/mount"),
            (r"C:\var", r"C:\var"),
            (r"\\?\Volume{0123456789}\", "volume 012345…"),
            (r"\\host\share\", r"\\host\share\"),
            ("5", "5"),
        ] {
            assert_eq!(short(long), shown);
        }
    }

    #[test]
    fn sizes_have_two_decimals_and_are_never_rounded_up() {
        for (count, shown) in [(0, "0 KiB"), (1 << 30, "1 GiB"), ((1 << 34) - 1, "15.99 GiB"), (33 << 19, "16.50 MiB")]
        {
            assert_eq!(bytes(count), shown);
        }
    }

    #[test]
    fn requests_and_responses_are_shown_by_their_main_fields() {
        for (json, shown) in [
            (json!({}), ""),
            (json!({"volumeId": r"\\?\Volume{0123456789}\", "targetPath": r"C:\a\b\c"}), r"C:\…\c"),
            (json!({"diskNumber": "1", "isOnline": false}), "disk 1, offline"),
            (json!({"path": r"C:\a", "force": true}), r"C:\a, force"),
            (json!({"volumeId": "1"}), "volume \"1\""),
            (json!({"targetPortal": {"targetAddress": "10.0.0.1"}}), "10.0.0.1"),
        ] {
            assert_eq!(request(json.as_object().unwrap()), shown);
        }
        for (json, shown) in [
            (json!({}), ""),
            (json!({"error": "", "exists": true}), "yes"),
            (json!({"totalBytes": "1073741824", "usedBytes": "0"}), "0 KiB of 1 GiB"),
            (json!({"diskSize": "1073741824"}), "1 GiB"),
            (json!({"diskIDs": {"1": {}, "2": {}}}), "2 disks"),
            (json!({"diskIDs": ["9"]}), "disk 9"),
            (json!({"volumeIds": [r"\\?\Volume{0123456789}\"]}), "volume 012345…"),
            (json!({"diskNumber": 9}), "disk 9"),
        ] {
            assert_eq!(response(&json), shown);
        }
    }
}
