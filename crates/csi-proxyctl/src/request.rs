//! Requests from flags. The fields of the message determine the flags.

use api::GroupVersion;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, value_parser};
use heck::{ToKebabCase as _, ToSnakeCase as _};
use prost_reflect::{Kind, MessageDescriptor};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::operations::{FieldText, field_text};
use crate::quantity;
use crate::text_input;

/// A field of a request, or of a message in it.
pub(crate) struct Field {
    /// The names in the `api.proto` that lead to it.
    path: Vec<String>,
    kind: Kind,
    pub(crate) text: &'static FieldText,
    pub(crate) help: &'static str,
}

/// Returns the fields of a request. Those of a message in it stand in its place.
pub(crate) fn fields(message: &MessageDescriptor) -> Vec<Field> {
    let mut fields = Vec::new();
    for field in message.fields() {
        let name = field.name().to_owned();
        if let Kind::Message(inner) = field.kind() {
            let inner = self::fields(&inner).into_iter();
            fields.extend(inner.map(|own| Field { path: [vec![name.clone()], own.path].concat(), ..own }));
            continue;
        }
        let (text, help) = field_text(message.name(), &name.to_snake_case());
        fields.push(Field { path: vec![name], kind: field.kind(), text, help });
    }
    fields
}

/// Whether the value must appear in no output and on no command line.
pub(crate) fn is_secret(field_name: &str) -> bool {
    let name = field_name.to_lowercase();
    name.contains("password") || name.contains("secret")
}

/// Whether a request has a field that is secret.
pub(crate) fn has_secret(message: &MessageDescriptor) -> bool {
    message.fields().any(|field| is_secret(field.name()))
}

/// Returns the names of the fields of a message, those of a message in it in parentheses.
pub(crate) fn field_names(message: &MessageDescriptor) -> String {
    let name = |field: prost_reflect::FieldDescriptor| match field.kind() {
        Kind::Message(inner) => format!("{} ({})", field.name(), field_names(&inner)),
        _ => field.name().to_owned(),
    };
    message.fields().map(name).collect::<Vec<_>>().join(", ")
}

fn from_file(flag: &str) -> String {
    format!("{flag}-file")
}

fn from_env(flag: &str) -> String {
    format!("{flag}-env")
}

/// The flag for the secret itself, which is refused.
fn on_command_line(flag: &str) -> String {
    format!("{flag}-on-the-command-line")
}

/// The flag that makes a secret necessary, of a secret that is not always.
fn user_of(flag: &str) -> &'static str {
    if flag == "chap-secret" { "chap-username" } else { "username" }
}

impl Field {
    fn name(&self) -> &str {
        self.path.last().expect("a field has a name")
    }

    /// Returns the flags for the field.
    fn flags(&self) -> Vec<Arg> {
        let FieldText { flag, value, is_required, .. } = *self.text;
        let help = self.help;
        if is_secret(self.name()) {
            let file = format!("Read {help} from this file, or from standard input for -");
            let env = format!("Read {help} from this environment variable");
            return vec![
                Arg::new(from_file(flag)).long(from_file(flag)).value_name("FILE").help(file).group(flag),
                Arg::new(from_env(flag)).long(from_env(flag)).value_name("VARIABLE").help(env).group(flag),
                // An error of clap could show a part of it, so it takes anything.
                Arg::new(on_command_line(flag)).long(flag).num_args(0..=1).allow_hyphen_values(true).hide(true),
            ];
        }
        let arg = Arg::new(flag).long(flag).value_name(value).help(help).required(is_required);
        let full_name = self.name().to_kebab_case();
        let arg = if full_name == flag { arg } else { arg.alias(full_name) };
        vec![match &self.kind {
            Kind::Bool if !is_required => arg.action(ArgAction::SetTrue),
            Kind::Bool => arg.value_parser(value_parser!(bool)).hide_possible_values(true),
            Kind::Uint32 => arg.value_parser(quantity::number::<u32>),
            Kind::Int64 => arg.value_parser(quantity::size),
            Kind::Enum(names) => {
                let names: Vec<String> = names.values().map(|value| value.name().to_kebab_case()).collect();
                arg.value_parser(PossibleValuesParser::new(names)).hide_possible_values(true)
            }
            _ => arg,
        }]
    }

    /// Returns the value in JSON, or None if the flag is not given.
    fn value(&self, matches: &ArgMatches) -> Result<Option<Value>, Failure> {
        let flag = self.text.flag;
        if is_secret(self.name()) {
            return Ok(self.secret(matches)?.map(Value::from));
        }
        let text = |matches: &ArgMatches| matches.get_one::<String>(flag).cloned();
        Ok(match &self.kind {
            Kind::Bool if !self.text.is_required => Some(matches.get_flag(flag).into()),
            Kind::Bool => matches.get_one::<bool>(flag).copied().map(Value::from),
            Kind::Uint32 => matches.get_one::<u32>(flag).copied().map(Value::from),
            Kind::Int64 => matches.get_one::<i64>(flag).copied().map(Value::from),
            Kind::Enum(names) => {
                let is_it = |name: &str| Some(name.to_kebab_case()) == text(matches);
                names.values().find(|value| is_it(value.name())).map(|value| value.name().into())
            }
            _ if flag == "volume" => text(matches).map(|volume| volume_id(&volume).into()),
            _ => text(matches).map(Value::from),
        })
    }

    /// Reads a secret from where the flags say, or else from the terminal, if it is necessary.
    fn secret(&self, matches: &ArgMatches) -> Result<Option<String>, Failure> {
        let (flag, is_required, help) = (self.text.flag, self.text.is_required, self.help);
        let sources = format!("--{flag}-file FILE (- for standard input) or --{flag}-env VARIABLE");
        if matches.contains_id(&on_command_line(flag)) {
            return Err(Failure::Usage(format!(
                "other processes can read the command line: give {help} with {sources}, or with neither to be asked for it \
                 on the terminal"
            )));
        }
        if let Some(path) = matches.get_one::<String>(&from_file(flag)) {
            return text_input::secret_from_file(path, help).map(Some);
        }
        if let Some(name) = matches.get_one::<String>(&from_env(flag)) {
            return text_input::secret_from_env(name, help).map(Some);
        }
        let has_user = || matches.try_contains_id(user_of(flag)).unwrap_or(false);
        match (is_required || has_user()).then(|| text_input::secret_from_terminal(help)).transpose()?.flatten() {
            None if is_required => Err(Failure::Usage(format!("{help} is missing: give it with {sources}"))),
            secret => Ok(secret),
        }
    }
}

/// Returns the GUID path of a volume that is given by its GUID alone, and anything else as it is.
///
/// The GUID path is hard to type: cmd.exe takes a final backslash before a quotation mark for an escape, and PowerShell
/// braces for a block.
fn volume_id(text: &str) -> String {
    let inner = text.strip_prefix(r"\\?\Volume").unwrap_or(text);
    let inner = inner.strip_suffix('\\').unwrap_or(inner);
    let guid = inner.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(inner);
    let is_guid = guid.len() == 36
        && guid.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if is_guid { format!(r"\\?\Volume{{{guid}}}\") } else { text.to_owned() }
}

/// Returns the flags for a request.
pub(crate) fn flags(message: &MessageDescriptor) -> (Vec<Arg>, Vec<ArgGroup>) {
    let fields = fields(message);
    let group = |field: &Field| ArgGroup::new(field.text.flag);
    let groups = fields.iter().filter(|field| is_secret(field.name())).map(group).collect();
    (fields.iter().flat_map(Field::flags).collect(), groups)
}

/// Returns the request in JSON.
pub(crate) fn json(message: &MessageDescriptor, matches: &ArgMatches) -> Result<Value, Failure> {
    let mut request = Map::new();
    for field in fields(message) {
        let Some(value) = field.value(matches)? else { continue };
        let (name, above) = field.path.split_last().expect("a field has a name");
        let mut object = &mut request;
        for outer in above {
            let inner = object.entry(outer).or_insert_with(|| Value::Object(Map::new()));
            object = inner.as_object_mut().expect("a message is an object");
        }
        object.insert(name.clone(), value);
    }
    Ok(request.into())
}

/// Returns the versions of the group in which the RPC has the same messages as in `version`, starting with that one.
pub(crate) fn versions_with_same_messages(version: &GroupVersion, rpc: &str) -> Vec<&'static str> {
    let shape_in = |version: &GroupVersion| {
        let rpc = dynamic_client::rpcs(version).remove(rpc)?;
        Some((shape(&rpc.request), shape(&rpc.response)))
    };
    let wanted = shape_in(version);
    GroupVersion::of(version.group).filter(|other| shape_in(other) == wanted).map(|other| other.version).collect()
}

/// Returns everything that the encoding and the JSON form of a message depend on. No message contains itself.
fn shape(message: &MessageDescriptor) -> String {
    let field = |field: prost_reflect::FieldDescriptor| {
        let kind = match field.kind() {
            Kind::Message(inner) => shape(&inner),
            Kind::Enum(names) => {
                let values: Vec<String> =
                    names.values().map(|value| format!("{} {}", value.name(), value.number())).collect();
                values.join(";")
            }
            scalar => format!("{scalar:?}"),
        };
        format!("{} {} {:?} {kind};", field.name(), field.number(), field.cardinality())
    };
    format!("{{{}}}", message.fields().map(field).collect::<String>())
}

#[cfg(test)]
mod tests {
    use api::Group;
    use clap::Command;
    use serde_json::json;

    use super::*;

    fn versions_of(group: Group, version: &str, rpc: &str) -> Vec<&'static str> {
        versions_with_same_messages(GroupVersion::find(group, version).expect("it is in the table"), rpc)
    }

    fn request_of(group: Group, version: &str, rpc: &str, arguments: &[&str]) -> Value {
        let rpcs = dynamic_client::rpcs(GroupVersion::find(group, version).expect("it is in the table"));
        let (flags, groups) = flags(&rpcs[rpc].request);
        let command = Command::new("x").no_binary_name(true).args(flags).groups(groups);
        let json = json(&rpcs[rpc].request, &command.get_matches_from(arguments)).unwrap();
        rpcs[rpc].request(&json);
        json
    }

    #[test]
    fn the_versions_with_the_same_messages_are_found() {
        assert_eq!(versions_of(Group::Disk, "v1", "GetDiskStats"), ["v1", "v1beta3"]);
        assert_eq!(versions_of(Group::Disk, "v1beta2", "ListDiskIDs"), ["v1beta2", "v1beta1"]);
        assert_eq!(versions_of(Group::Filesystem, "v2alpha1", "RmdirContents"), ["v2alpha1"]);
        let all = ["v1", "v1beta3", "v1beta2", "v1beta1", "v2alpha1", "v1alpha1"];
        assert_eq!(versions_of(Group::Volume, "v1", "FormatVolume"), all);
    }

    #[test]
    fn flags_become_the_fields_of_the_request() {
        let request = request_of(Group::Disk, "v1", "SetDiskState", &["--disk", "3", "--online", "false"]);
        assert_eq!(request, json!({ "disk_number": 3, "is_online": false }));
        let request = request_of(Group::Disk, "v1beta2", "SetAttachState", &["--disk", "3", "--is-online", "true"]);
        assert_eq!(request, json!({ "diskID": "3", "isOnline": true }));
        let request = request_of(Group::Filesystem, "v1beta1", "Rmdir", &["--path", r"C:\a", "--context", "pod"]);
        assert_eq!(request, json!({ "path": r"C:\a", "context": "POD", "force": false }));
        let portal = ["--target-address", "10.0.0.1", "--iqn", "iqn.x", "--auth-type", "one-way-chap"];
        let request = request_of(Group::Iscsi, "v1alpha2", "ConnectTarget", &portal);
        let expected =
            json!({ "target_portal": { "target_address": "10.0.0.1" }, "iqn": "iqn.x", "auth_type": "ONE_WAY_CHAP" });
        assert_eq!(request, expected);
        let request = request_of(Group::Volume, "v1", "ResizeVolume", &["--volume", "7", "--size", "5Gi"]);
        assert_eq!(request, json!({ "volume_id": "7", "size_bytes": 5_368_709_120_i64 }));
    }

    #[test]
    fn a_volume_can_be_given_by_its_guid() {
        const GUID: &str = "01234567-89ab-cdef-0123-456789ABCDEF";
        let path = format!(r"\\?\Volume{{{GUID}}}\");
        for text in [GUID, &format!("{{{GUID}}}"), &format!(r"\\?\Volume{{{GUID}}}"), &path] {
            assert_eq!(volume_id(text), path);
        }
        for text in ["0", r"C:\", "01234567-89ab-cdef-0123-456789ABCDEG", ""] {
            assert_eq!(volume_id(text), text);
        }
    }

    #[test]
    fn no_flag_in_the_help_takes_a_secret() {
        for version in &api::GROUP_VERSIONS {
            for (name, rpc) in dynamic_client::rpcs(version) {
                // Hidden are the flags that are refused.
                for flag in flags(&rpc.request).0.into_iter().filter(|flag| !flag.is_hide_set()) {
                    let flag = flag.get_long().expect("all are long");
                    let is_source = flag.ends_with("-file") || flag.ends_with("-env");
                    assert_eq!(is_secret(flag), is_source, "{name} --{flag}");
                }
            }
        }
    }
}
