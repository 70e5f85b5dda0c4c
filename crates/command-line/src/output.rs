//! Values on standard output.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;
use terminal_text::escaped_json;

/// The form of a value on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// JSON of several lines.
    Json,
    /// YAML in block style.
    Yaml,
}

impl Form {
    /// Returns the text of a value.
    pub fn text(self, value: &Value) -> String {
        match self {
            Self::Json => json(value),
            Self::Yaml => yaml(value),
        }
    }
}

/// Writes a response. Without a form, it is YAML; an empty response is `done` on a terminal, and
/// nothing elsewhere.
pub fn show(response: &Value, form: Option<Form>) -> io::Result<()> {
    let is_empty = response.as_object().is_none_or(serde_json::Map::is_empty);
    if form.is_none() && is_empty {
        if io::stderr().is_terminal() {
            writeln!(anstream::stderr(), "done")?;
        }
        return Ok(());
    }
    write!(
        anstream::stdout(),
        "{}",
        form.unwrap_or(Form::Yaml).text(response)
    )
}

/// Returns the value as JSON of several lines. Characters that could make the text read as another
/// are escaped.
fn json(value: &Value) -> String {
    let text = escaped_json(&format!("{value:#}"));
    text + "\n"
}

/// Returns the value as a YAML document in block style.
fn yaml(value: &Value) -> String {
    let mut text = String::new();
    write_yaml(&mut text, value, 0);
    text
}

/// Writes the value at the current position of a line and ends the line.
fn write_yaml(text: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (at, (key, value)) in fields.iter().enumerate() {
                if at > 0 {
                    text.extend(std::iter::repeat_n(' ', indent));
                }
                text.push_str(&yaml_string(key));
                text.push(':');
                if is_block(value) {
                    text.push('\n');
                    text.extend(std::iter::repeat_n(' ', indent + 2));
                    write_yaml(text, value, indent + 2);
                } else {
                    text.push(' ');
                    write_yaml(text, value, indent);
                }
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.extend(std::iter::repeat_n(' ', indent));
                }
                text.push_str("- ");
                write_yaml(text, item, indent + 2);
            }
        }
        Value::String(string) => {
            text.push_str(&yaml_string(string));
            text.push('\n');
        }
        // Empty collections, numbers, booleans and null are written as in JSON.
        other => {
            text.push_str(&other.to_string());
            text.push('\n');
        }
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Returns the string without quotation marks if it cannot be taken for anything else, and as in
/// JSON otherwise.
fn yaml_string(string: &str) -> String {
    const WORDS: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "y"];
    let is_plain = string.starts_with(|first: char| first.is_ascii_alphabetic())
        && string
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "_-./\\{}? ".contains(letter))
        && !string.ends_with(' ')
        && !WORDS.contains(&string.to_ascii_lowercase().as_str())
        && !string.eq_ignore_ascii_case("n");
    if is_plain {
        string.to_owned()
    } else {
        escaped_json(&Value::from(string).to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use terminal_text::is_misleading;
    use yaml_rust2::{Yaml, YamlLoader};

    use super::*;

    /// Converts what another YAML implementation reads.
    fn read(yaml: &Yaml) -> Value {
        match yaml {
            Yaml::Integer(number) => (*number).into(),
            Yaml::Boolean(value) => (*value).into(),
            Yaml::String(text) => text.as_str().into(),
            Yaml::Array(items) => items.iter().map(read).collect(),
            Yaml::Hash(fields) => {
                let field = |(key, value)| (key_text(key), read(value));
                Value::Object(fields.iter().map(field).collect())
            }
            Yaml::Null => Value::Null,
            other => panic!("{other:?}"),
        }
    }

    fn key_text(key: &Yaml) -> String {
        key.as_str().expect("keys are strings").to_owned()
    }

    #[test]
    fn another_implementation_reads_the_same_values_from_the_yaml() {
        let words = "plain Yes n null ~ 1 1.5 0x1f - # *a &a @ ` % !a ' \" C:\\a\\ 2026-11-22 [a] \
                     {a} = << | > true Off .nan ... ---";
        let volume = r"\\?\Volume{00000000-0000-0000-0000-000000000000}\";
        let others = [
            "",
            " ",
            "plain text",
            "- a",
            "a: b",
            "a #b",
            "a\nb",
            "tab\t",
            "end ",
            "a, b",
            volume,
        ];
        let misleading = ["\u{1b}[2J", "\u{202e}", "\u{1F600}"];
        let strings: Vec<_> = words.split(' ').chain(others).chain(misleading).collect();
        let value = json!({
            "strings": strings,
            "numbers": [0, -1, 9_007_199_254_740_993_i64],
            "nested": { "list": [[1, 2], [], {}, [{ "a": 1, "b": [2] }]], "empty": {}, "none": null, "yes": true },
            "1": { "key: with colon": false },
        });
        for value in [
            value,
            json!([]),
            json!({}),
            json!([{ "a": 1, "b": "x" }, { "a": null }]),
        ] {
            let text = yaml(&value);
            let documents =
                YamlLoader::load_from_str(&text).unwrap_or_else(|error| panic!("{error}:\n{text}"));
            assert_eq!(
                documents.iter().map(read).collect::<Vec<_>>(),
                [value],
                "{text}"
            );
        }
    }

    #[test]
    fn yaml_is_in_block_style() {
        let value = json!([{ "disk": 1, "location": { "bus": "0", "lun": "" } }, { "disk": 2, "location": null }]);
        let expected =
            "- disk: 1\n  location:\n    bus: \"0\"\n    lun: \"\"\n- disk: 2\n  location: null\n";
        assert_eq!(yaml(&value), expected);
    }

    #[test]
    fn characters_that_mislead_are_escaped() {
        let value = json!({ "serial": "a\u{202e}b\u{1b}[31m" });
        for text in [json(&value), yaml(&value)] {
            assert!(text.contains(r"a\u202eb\u001b[31m"), "{text}");
            assert!(
                !text
                    .trim_end()
                    .contains(|letter| letter != '\n' && is_misleading(letter)),
                "{text}"
            );
        }
    }
}
