//! Short forms of requests, responses and paths, for one line of a terminal.

use csi_proxyctl::quantity::short_size;
use serde_json::{Map, Value};

use super::expectation::text;

/// The fields that name the object of a request, the most informative first.
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

/// Returns the object of a request: `disk 1, online`.
pub(super) fn request(fields: &Map<String, Value>) -> String {
    let object = OBJECTS.iter().find_map(|name| Some((*name, fields.get(*name)?)));
    let object = match object {
        None => return String::new(),
        Some((_, Value::Object(fields))) => request(fields),
        Some((name, value)) => scalar(name, value),
    };
    let option = match (fields.get("isOnline"), fields.get("force")) {
        (Some(Value::Bool(true)), _) => ", online",
        (Some(_), _) => ", offline",
        (_, Some(Value::Bool(true))) => ", force",
        _ => "",
    };
    object + option
}

/// Returns the content of a response; an empty text if the response only confirms success.
pub(super) fn response(response: &Value) -> String {
    let empty = Map::new();
    let fields = response.as_object().unwrap_or(&empty);
    let size = |names: &[&str]| names.iter().find_map(|name| fields.get(*name)?.as_str()?.parse().ok()).map(short_size);
    if let Some(total) = size(&["totalBytes", "volumeSize", "diskSize"]) {
        let used = size(&["usedBytes", "volumeUsedSize"]);
        return used.map_or_else(|| total.clone(), |used| format!("{used} of {total}"));
    }
    match fields.iter().find(|(name, _)| *name != "error") {
        None => String::new(),
        Some((name, Value::Array(items))) if items.len() == 1 => scalar(name, &items[0]),
        Some((_, Value::Array(items))) => format!("{} entries", items.len()),
        Some((_, Value::Object(entries))) => format!("{} disks", entries.len()),
        Some((name, value)) => scalar(name, value),
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{request, response, short};

    #[test]
    fn a_short_path_keeps_its_drive_slashes_and_last_name() {
        for (long, shown) in [
            (r"C:\var\lib\kubelet\globalmount", r"C:\…\globalmount"),
            (r"\var\lib\kubelet\globalmount", r"\…\globalmount"),
            ("c:/var/lib/kubelet/mount", "c:/…/mount"),
            (r"C:\var", r"C:\var"),
            (r"\\?\Volume{0123456789}\", "volume 012345…"),
            (r"\\host\share\", r"\\host\share\"),
        ] {
            assert_eq!(short(long), shown);
        }
    }

    #[test]
    fn requests_and_responses_are_shown_by_their_main_fields() {
        for (json, shown) in [
            (json!({}), ""),
            (json!({"volumeId": r"\\?\Volume{0123456789}\", "targetPath": r"C:\a\b\c"}), r"C:\…\c"),
            (json!({"diskNumber": "1", "isOnline": false}), "disk 1, offline"),
            (json!({"path": r"C:\a", "force": true}), r"C:\a, force"),
            (json!({"targetPortal": {"targetAddress": "10.0.0.1"}}), "10.0.0.1"),
        ] {
            assert_eq!(request(json.as_object().unwrap()), shown);
        }
        for (json, shown) in [
            (json!({}), ""),
            (json!({"error": "", "exists": true}), "yes"),
            (json!({"totalBytes": "1073741824", "usedBytes": "0"}), "0B of 1.00Gi"),
            (json!({"diskIDs": {"1": {}, "2": {}}}), "2 disks"),
            (json!({"volumeIds": [r"\\?\Volume{0123456789}\"]}), "volume 012345…"),
        ] {
            assert_eq!(response(&json), shown);
        }
    }
}
