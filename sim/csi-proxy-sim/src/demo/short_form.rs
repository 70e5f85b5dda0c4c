//! Short forms of requests, responses and paths, for one line of a terminal.

use serde_json::Value;

use crate::layer::known_rpcs::{add_values, hide_secrets};

/// Returns the values of a request or response, without secrets and empty texts.
pub(super) fn values(message: &Value) -> String {
    let (mut message, mut values) = (message.clone(), Vec::new());
    hide_secrets(&mut message);
    add_values(&message, &mut values);
    let shown: Vec<String> = values
        .iter()
        .filter(|value| !value.is_empty())
        .map(|value| short(value))
        .collect();
    shown.join(", ")
}

/// Shortens a path or volume name so that different ones remain distinguishable:
/// `C:\…\globalmount`, `volume 1f0c2a…`.
pub(super) fn short(text: &str) -> String {
    if let Some(guid) = text.strip_prefix(r"\\?\Volume{") {
        return format!("volume {}…", guid.chars().take(6).collect::<String>());
    }
    let is_path = text.starts_with(['\\', '/']) && !text.starts_with(r"\\")
        || text.as_bytes().get(1) == Some(&b':');
    let Some(first) = text.find(['\\', '/']).filter(|_| is_path) else {
        return text.to_owned();
    };
    let Some(last) = text.rfind(['\\', '/']).filter(|last| *last > first) else {
        return text.to_owned();
    };
    format!("{}…{}", &text[..=first], &text[last..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{short, values};

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
    fn messages_are_shown_by_their_values_without_secrets() {
        for (json, shown) in [
            (json!({}), ""),
            (
                json!({"volumeId": r"\\?\Volume{0123456789}\"}),
                "volume 012345…",
            ),
            (json!({"diskNumber": "1", "isOnline": false}), "1, false"),
            (
                json!({"targetPortal": {"targetAddress": "10.0.0.1"}, "chapSecret": "secret"}),
                "$chapSecret, 10.0.0.1",
            ),
            (json!({"error": "", "exists": true}), "true"),
        ] {
            assert_eq!(values(&json), shown);
        }
    }
}
