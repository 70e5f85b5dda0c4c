//! Comparing a response with what a driver expects of it.

use serde::Deserialize;
use serde_json::Value;

/// Looks up the one entry of a map in the response, as drivers find their disk.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Find {
    /// The variable that gets the key of the entry.
    pub(super) keep: String,
    /// The field of the response that is the map.
    #[serde(rename = "in")]
    map: String,
    /// The field of an entry, such as `page83`, or all values of a map in it, such as
    /// `identifiers.*`.
    field: String,
    value: Matcher,
    /// The only keys that the map of `field` may have.
    keys: Option<Vec<String>>,
}

/// How a driver recognises its disk.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Matcher {
    Equals(String),
    Contains(String),
    StartsWith(String),
    /// The last word of the text. The driver panics if the text is blank but not empty.
    LastWord(String),
}

impl Find {
    /// Returns the key of the one entry that matches.
    pub(super) fn key(&self, response: &Value) -> Result<String, String> {
        let entries = response.get(&self.map).and_then(Value::as_object);
        let entries = entries.ok_or_else(|| format!("the response has no map {}", self.map))?;
        let mut found = Vec::new();
        for (key, entry) in entries {
            if self
                .matches(entry)
                .map_err(|error| format!("{} {key}: {error}", self.map))?
            {
                found.push(key);
            }
        }
        match found.as_slice() {
            [key] => Ok((*key).clone()),
            _ => Err(format!(
                "{} entries instead of one have the {} that the driver looks for",
                found.len(),
                self.field
            )),
        }
    }

    fn matches(&self, entry: &Value) -> Result<bool, String> {
        let Some(map) = self.field.strip_suffix(".*") else {
            return self.value.matches(
                at(entry, &self.field)
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
            );
        };
        let empty = serde_json::Map::new();
        let map_of_entry = at(entry, map).and_then(Value::as_object).unwrap_or(&empty);
        if let Some(keys) = &self.keys
            && let Some(key) = map_of_entry.keys().find(|key| !keys.contains(key))
        {
            return Err(format!("unexpected key {key} in {map}"));
        }
        let mut values = map_of_entry
            .values()
            .map(|value| self.value.matches(value.as_str().unwrap_or_default()));
        values.try_fold(false, |found, matches| Ok(found | matches?))
    }
}

impl Matcher {
    fn matches(&self, text: &str) -> Result<bool, String> {
        Ok(match self {
            Self::Equals(want) => text == want,
            Self::Contains(want) => text.contains(want),
            Self::StartsWith(want) => text.starts_with(want),
            Self::LastWord(_) if !text.is_empty() && text.trim().is_empty() => {
                return Err("the text is blank, on which the driver panics".to_owned());
            }
            Self::LastWord(want) => text.split_whitespace().next_back() == Some(want),
        })
    }
}

/// Returns the value at a path such as `volumeIds.0`.
pub(super) fn at<'a>(response: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(response, |value, name| match value {
            Value::Array(items) => items.get(name.parse::<usize>().ok()?),
            other => other.get(name),
        })
}

/// Returns a value as a variable holds it.
pub(super) fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Checks that a response contains what is expected.
///
/// An object may have more fields, and a list that ends in `"..."` more elements in any order. A
/// number may be given as text. `<positive>`, `<number>`, `<volume>` and `<VMware serial>` stand
/// for any text of that kind.
pub(super) fn check(response: &Value, want: &Value) -> Result<(), String> {
    match (response, want) {
        (Value::Object(fields), Value::Object(want)) => want.iter().try_for_each(|(name, want)| {
            let field = fields
                .get(name)
                .ok_or_else(|| format!("the response has no {name}"))?;
            check(field, want).map_err(|error| format!("{name}: {error}"))
        }),
        (Value::Array(items), Value::Array(want)) => match want.split_last() {
            Some((Value::String(dots), want)) if dots == "..." => {
                want.iter().try_for_each(|want| {
                    let found = items.iter().any(|item| check(item, want).is_ok());
                    found
                        .then_some(())
                        .ok_or_else(|| format!("{response} lacks {want}"))
                })
            }
            _ if items.len() == want.len() => items
                .iter()
                .zip(want)
                .try_for_each(|(item, want)| check(item, want)),
            _ => Err(format!("{response} has not {} elements", want.len())),
        },
        (Value::Object(_) | Value::Array(_), _) => Err(format!("{response} instead of {want}")),
        (_, Value::String(kind)) if kind.starts_with('<') && kind.ends_with('>') => {
            let is_kind = is_of_kind(&text(response), kind)?;
            is_kind
                .then_some(())
                .ok_or_else(|| format!("{response} instead of {kind}"))
        }
        (_, Value::String(want)) if text(response) == *want => Ok(()),
        _ if response == want => Ok(()),
        _ => Err(format!("{response} instead of {want}")),
    }
}

fn is_of_kind(text: &str, kind: &str) -> Result<bool, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    Ok(match kind {
        "<number>" => is_number,
        "<positive>" => is_number && !text.starts_with('0'),
        "<volume>" => text
            .strip_prefix(r"\\?\Volume{")
            .and_then(|rest| rest.strip_suffix(r"}\"))
            .is_some_and(|guid| {
                guid.len() == 36
                    && guid
                        .bytes()
                        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
            }),
        "<VMware serial>" => text.trim().strip_prefix("VMware-").is_some_and(|rest| {
            let digits = rest.replace([' ', '-'], "");
            digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        }),
        _ => return Err(format!("unknown kind of value {kind}")),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Find, check};

    #[test]
    fn a_response_may_have_more_fields_than_expected_but_not_fewer() {
        let response = json!({"ids": ["a", "b"], "online": false, "size": "12", "disk": 3});
        for (want, holds) in [
            (json!({}), true),
            (json!({"online": false}), true),
            (json!({"online": true}), false),
            (json!({"ids": ["a", "b"]}), true),
            (json!({"ids": ["a"]}), false),
            (json!({"ids": ["b", "..."]}), true),
            (json!({"ids": ["c", "..."]}), false),
            (json!({"ids": {"a": "b"}}), false),
            (json!({"size": "<positive>", "disk": "<number>"}), true),
            (json!({"size": "<volume>"}), false),
            (json!({"size": "<unknown>"}), false),
            (json!({"disk": "3"}), true),
            (json!({"disk": "4"}), false),
            (json!({"missing": ""}), false),
        ] {
            assert_eq!(check(&response, &want).is_ok(), holds, "{want}");
        }
    }

    fn find(value: &Value, entries: &Value) -> Result<String, String> {
        let find = json!({"keep": "disk", "in": "ids", "field": "page83", "value": value});
        serde_json::from_value::<Find>(find)
            .unwrap()
            .key(&json!({"ids": entries}))
    }

    #[test]
    fn exactly_one_disk_must_match() {
        let entries = json!({"1": {"page83": "Google  pvc-1"}, "2": {"page83": "pvc-2"}, "3": {"page83": ""}});
        assert_eq!(find(&json!({"last_word": "pvc-1"}), &entries).unwrap(), "1");
        assert_eq!(find(&json!({"equals": "pvc-2"}), &entries).unwrap(), "2");
        assert!(
            find(&json!({"equals": "PVC-2"}), &entries)
                .unwrap_err()
                .starts_with("0 entries")
        );
        assert!(
            find(&json!({"contains": "pvc"}), &entries)
                .unwrap_err()
                .starts_with("2 entries")
        );
        let blank = json!({"1": {"page83": "  "}});
        assert!(
            find(&json!({"last_word": "pvc-1"}), &blank)
                .unwrap_err()
                .contains("the driver panics")
        );
    }

    #[test]
    fn an_identifier_may_have_no_other_key_than_those_listed() {
        let find: Find = serde_json::from_value(json!({
            "keep": "disk", "in": "ids", "field": "identifiers.*", "value": {"starts_with": "eui."}, "keys": ["page83"]
        }))
        .unwrap();
        assert_eq!(
            find.key(&json!({"ids": {"7": {"identifiers": {"page83": "eui.1"}}}}))
                .unwrap(),
            "7"
        );
        let error = find
            .key(&json!({"ids": {"7": {"identifiers": {"eui64": "1"}}}}))
            .unwrap_err();
        assert_eq!(error, "ids 7: unexpected key eui64 in identifiers");
    }
}
