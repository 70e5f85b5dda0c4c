//! The reference of the RPCs, one page for each group, from the comments and messages of the
//! protos.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;

use api::{Group, GroupVersion};
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, MethodDescriptorProto,
};

/// How the paragraph of an RPC's comment begins that says what the OK of a call promises.
const OK: &str = "OK: ";

/// A compiled proto and its comments, by the path of what they are on.
struct Proto {
    file: FileDescriptorProto,
    comments: HashMap<Vec<i32>, String>,
}

/// Returns the page of a group.
pub(crate) fn page(group: Group) -> Result<String, Box<dyn Error>> {
    let mut page = format!("# The {} group\n\n", group.name());
    page += "This page is generated from the .proto files. Errors such as a missing object or \
             denied access have the status codes that \
             [Troubleshooting](troubleshoot.md#status-codes) lists, whether or not an RPC names \
             them here.\n\n";
    let versions: Vec<&GroupVersion> = GroupVersion::of(group).collect();
    page += "| version | pipe | service | RPCs |\n|---|---|---|---|\n";
    for row in &versions {
        let (version, pipe, service) = (row.version, row.pipe(), row.service);
        writeln!(
            page,
            "| [{version}](#{version}) | `\\\\.\\pipe\\{pipe}` | `{service}` | {} |",
            row.rpcs.len()
        )?;
    }
    page += "\nThe version in the first row is preferred. Clients should use it unless they must \
             also run with older nodes.\n";
    let mut protos = Vec::new();
    for row in versions {
        protos.push((row, Proto::of(row)?));
    }
    write_promises(&mut page, &protos)?;
    let mut known: HashMap<String, &str> = HashMap::new();
    for (row, proto) in &protos {
        writeln!(page, "\n## {}\n", row.version)?;
        page += &proto.comment(&[6, 0]);
        for (index, method) in (0..).zip(&proto.file.service[0].method) {
            let text = proto.rpc(index, method);
            let described = *known
                .entry(format!("{} {text}", method.name()))
                .or_insert(row.version);
            if described == row.version {
                writeln!(page, "\n### {} ({})\n\n{text}", method.name(), row.version)?;
            } else {
                let anchor = format!("{}-{described}", method.name().to_lowercase());
                writeln!(
                    page,
                    "\n**{}**: as in [{described}](#{anchor}).",
                    method.name()
                )?;
            }
        }
    }
    Ok(page)
}

/// Writes what the OK of each RPC promises, from the newest version of each.
fn write_promises(
    page: &mut String,
    protos: &[(&GroupVersion, Proto)],
) -> Result<(), Box<dyn Error>> {
    *page += "\n## What OK promises\n\nWhat is true when a call returns OK. A call that cannot \
              reach this fails.\n\n| RPC | when the call returns OK |\n|---|---|\n";
    let mut written = Vec::new();
    for (row, proto) in protos {
        for (index, method) in (0..).zip(&proto.file.service[0].method) {
            let name = method.name();
            let rpc = row.rpcs.iter().find(|rpc| rpc.name == name);
            let newest = rpc.ok_or("an RPC without an entry")?.newest_name;
            if written.contains(&newest) {
                continue;
            }
            written.push(newest);
            let promise = proto
                .promise(index)
                .ok_or_else(|| format!("{name}: no paragraph begins with {OK:?}"))?;
            let anchor = format!("{}-{}", name.to_lowercase(), row.version);
            writeln!(page, "| [{name}](#{anchor}) | {promise} |")?;
        }
    }
    Ok(())
}

impl Proto {
    fn of(row: &GroupVersion) -> Result<Self, Box<dyn Error>> {
        let mut file = FileDescriptorSet::decode(row.descriptors())?
            .file
            .pop()
            .ok_or("no descriptor")?;
        let locations = file.source_code_info.take().unwrap_or_default().location;
        let comments = locations.into_iter().map(|location| {
            let text = location.leading_comments().to_owned() + location.trailing_comments();
            (location.path, text)
        });
        let comments = comments.collect();
        Ok(Self { file, comments })
    }

    /// Returns the comment on what is at `path`, as paragraphs.
    fn comment(&self, path: &[i32]) -> String {
        let text = self.comments.get(path).map_or("", String::as_str);
        let lines: Vec<&str> = text
            .lines()
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        let text = lines.join("\n").trim().replace('<', "&lt;");
        if text.is_empty() { text } else { text + "\n" }
    }

    /// Returns the comment on what is at `path`, in one line.
    fn line(&self, path: &[i32]) -> String {
        self.comment(path)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace('|', "\\|")
    }

    /// Returns what an RPC promises by its OK, in one line that begins with a capital letter.
    fn promise(&self, index: i32) -> Option<String> {
        let comment = self.comment(&[6, 0, 2, index]);
        let text = comment
            .split("\n\n")
            .find_map(|paragraph| paragraph.strip_prefix(OK))?;
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut letters = line.replace('|', "\\|").chars().collect::<Vec<_>>();
        letters.first_mut()?.make_ascii_uppercase();
        Some(letters.into_iter().collect())
    }

    fn rpc(&self, index: i32, method: &MethodDescriptorProto) -> String {
        let mut text = self.comment(&[6, 0, 2, index]);
        let mut written = Vec::new();
        for (title, name) in [
            ("Request", method.input_type()),
            ("Response", method.output_type()),
        ] {
            self.write_message(&mut text, title, name, &mut written);
        }
        text
    }

    /// Writes the fields of a message, and after them those of the messages in it.
    fn write_message(&self, text: &mut String, title: &str, name: &str, written: &mut Vec<String>) {
        let name = name.rsplit('.').next().unwrap_or(name);
        let Some((index, message)) = (0..)
            .zip(&self.file.message_type)
            .find(|(_, message)| message.name() == name)
        else {
            return;
        };
        let about = self.line(&[4, index]);
        let about = if about.is_empty() {
            about
        } else {
            format!(" {about}")
        };
        if message.field.is_empty() {
            let _ = write!(text, "\n{title} `{name}` has no fields.{about}\n");
            return;
        }
        let _ = write!(
            text,
            "\n{title} `{name}`:{about}\n\n| field | type | number | meaning |\n|---|---|---|---|\n"
        );
        let mut inner = Vec::new();
        for (at, field) in (0..).zip(&message.field) {
            let (kind, nested) = kind(message, field);
            let comment = self.line(&[4, index, 2, at]);
            let _ = writeln!(
                text,
                "| `{}` | {kind} | {} | {comment} |",
                field.name(),
                field.number()
            );
            inner.extend(nested);
        }
        for nested in inner {
            if !written.contains(&nested) {
                written.push(nested.clone());
                self.write_message(text, "Message", &nested, written);
                self.write_enumeration(text, &nested);
            }
        }
    }

    fn write_enumeration(&self, text: &mut String, name: &str) {
        let name = name.rsplit('.').next().unwrap_or(name);
        let is_named = |(_, enumeration): &(i32, &EnumDescriptorProto)| enumeration.name() == name;
        let Some((index, enumeration)) = (0..).zip(&self.file.enum_type).find(is_named) else {
            return;
        };
        let _ = write!(
            text,
            "\nEnumeration `{name}`:\n\n| value | number | meaning |\n|---|---|---|\n"
        );
        for (at, value) in (0..).zip(&enumeration.value) {
            let comment = self.line(&[5, index, 2, at]);
            let _ = writeln!(
                text,
                "| `{}` | {} | {comment} |",
                value.name(),
                value.number()
            );
        }
    }
}

/// Returns the type of a field in words, and the name of the message or enumeration that it has.
fn kind(message: &DescriptorProto, field: &FieldDescriptorProto) -> (String, Option<String>) {
    let entry = message
        .nested_type
        .iter()
        .find(|nested| field.type_name().ends_with(&format!(".{}", nested.name())));
    if let Some(entry) = entry.filter(|entry| entry.field.len() == 2) {
        let ((key, _), (value, nested)) =
            (kind(entry, &entry.field[0]), kind(entry, &entry.field[1]));
        return (format!("map of {key} to {value}"), nested);
    }
    let (name, nested) = match field.r#type() {
        Type::Message | Type::Enum => {
            let name = field.type_name().rsplit('.').next().unwrap_or_default();
            (format!("`{name}`"), Some(field.type_name().to_owned()))
        }
        scalar => (
            scalar
                .as_str_name()
                .trim_start_matches("TYPE_")
                .to_lowercase(),
            None,
        ),
    };
    if field.label() == Label::Repeated {
        (format!("list of {name}"), nested)
    } else {
        (name, nested)
    }
}
