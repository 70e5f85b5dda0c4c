//! Requests from flags. The fields of the message determine the flags.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, value_parser};
use command_line::failure::Failure;
use command_line::quantity;
use command_line::text_input;
use heck::ToKebabCase as _;
use prost_reflect::{Kind, MessageDescriptor};
use serde_json::{Map, Value};

/// The flag for a volume.
const VOLUME: &str = "volume";
/// The flag of a required switch, and that for its opposite.
const ONLINE: &str = "online";
const OFFLINE: &str = "offline";

/// A field of a request, or of a message in it.
struct Field {
    /// The names in the `api.proto` that lead to it.
    path: Vec<String>,
    kind: Kind,
    /// The name of the flag; of a secret, without the suffix that says where it is read from.
    flag: String,
    is_required: bool,
    /// The comment in the `api.proto`.
    help: String,
}

/// Returns the fields of a request. The fields of a message in the request take its place.
fn fields(message: &MessageDescriptor) -> Vec<Field> {
    let mut fields = Vec::new();
    for field in message.fields() {
        let name = field.name().to_owned();
        if let Kind::Message(inner) = field.kind() {
            let inner = self::fields(&inner).into_iter();
            fields.extend(inner.map(|own| Field {
                path: [vec![name.clone()], own.path].concat(),
                ..own
            }));
            continue;
        }
        let comment = dynamic_client::field_comment(&field);
        let optional = comment.strip_prefix("Optional. ");
        fields.push(Field {
            flag: flag_name(&name),
            path: vec![name],
            kind: field.kind(),
            is_required: optional.is_none(),
            help: optional
                .unwrap_or(&comment)
                .trim_end_matches('.')
                .to_owned(),
        });
    }
    fields
}

/// Returns the name of the flag for a field: `disk` for `disk_number`, `online` for `is_online`,
/// `target-path` for `target_path`.
fn flag_name(field: &str) -> String {
    let name = field.to_kebab_case();
    let name = name.strip_prefix("is-").unwrap_or(&name);
    let name = ["-number", "-id", "-bytes"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name);
    name.to_owned()
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

impl Field {
    fn name(&self) -> &str {
        self.path.last().expect("a field has a name")
    }

    /// Returns the words for a secret in messages, such as `the CHAP secret`.
    fn secret_name(&self) -> String {
        format!(
            "the {}",
            self.flag.replace('-', " ").replace("chap", "CHAP")
        )
    }

    /// Returns the flags for the field.
    fn flags(&self) -> Vec<Arg> {
        let Self {
            flag,
            help,
            is_required,
            ..
        } = self;
        if is_secret(self.name()) {
            let what = self.secret_name();
            let file = format!("Read {what} from this file, or from standard input for -");
            let env = format!("Read {what} from this environment variable");
            return vec![
                Arg::new(from_file(flag))
                    .long(from_file(flag))
                    .value_name("FILE")
                    .help(file)
                    .group(flag),
                Arg::new(from_env(flag))
                    .long(from_env(flag))
                    .value_name("VARIABLE")
                    .help(env)
                    .group(flag),
                // An error of clap could show a part of the secret, so the flag accepts any value.
                Arg::new(on_command_line(flag))
                    .long(flag)
                    .num_args(0..=1)
                    .allow_hyphen_values(true)
                    .hide(true),
            ];
        }
        let last_word = flag.rsplit('-').next().unwrap_or(flag).to_uppercase();
        let arg = Arg::new(flag)
            .long(flag)
            .value_name(last_word)
            .help(help)
            .required(*is_required);
        let full_name = self.name().to_kebab_case();
        let arg = if full_name == *flag {
            arg
        } else {
            arg.alias(full_name)
        };
        vec![match &self.kind {
            Kind::Bool if !is_required => arg.action(ArgAction::SetTrue),
            Kind::Bool if flag == ONLINE => {
                let arg = arg
                    .required(false)
                    .required_unless_present(OFFLINE)
                    .num_args(0..=1)
                    .default_missing_value("true");
                let offline = Arg::new(OFFLINE)
                    .long(OFFLINE)
                    .action(ArgAction::SetTrue)
                    .conflicts_with(ONLINE);
                return vec![
                    arg.value_name("true|false")
                        .value_parser(value_parser!(bool))
                        .hide_possible_values(true),
                    offline.help("The same as --online false"),
                ];
            }
            Kind::Bool => arg
                .value_name("true|false")
                .value_parser(value_parser!(bool))
                .hide_possible_values(true),
            Kind::Uint32 => arg
                .value_name("NUMBER")
                .value_parser(quantity::number::<u32>),
            Kind::Int64 => arg
                .help(format!("{help}. Accepts a unit, as in 20Gi"))
                .value_parser(quantity::size),
            Kind::Enum(names) => {
                let names: Vec<String> = names
                    .values()
                    .map(|value| value.name().to_kebab_case())
                    .collect();
                let help = format!("{help}: {} [default: {}]", names.join(", "), names[0]);
                arg.help(help)
                    .value_parser(PossibleValuesParser::new(names))
                    .hide_possible_values(true)
            }
            _ if flag == VOLUME => arg.help(format!("{help}. The GUID alone is enough")),
            _ => arg,
        }]
    }

    /// Returns the value in JSON, or None if the flag is not given.
    fn value(&self, matches: &ArgMatches) -> Result<Option<Value>, Failure> {
        let flag = &*self.flag;
        if is_secret(self.name()) {
            return Ok(self.secret(matches)?.map(Value::from));
        }
        let text = |matches: &ArgMatches| matches.get_one::<String>(flag).cloned();
        Ok(match &self.kind {
            Kind::Bool if !self.is_required => Some(matches.get_flag(flag).into()),
            Kind::Bool => Some(
                matches
                    .get_one::<bool>(flag)
                    .copied()
                    .unwrap_or(false)
                    .into(),
            ),
            Kind::Uint32 => matches.get_one::<u32>(flag).copied().map(Value::from),
            Kind::Int64 => matches.get_one::<i64>(flag).copied().map(Value::from),
            Kind::Enum(names) => {
                let is_it = |name: &str| Some(name.to_kebab_case()) == text(matches);
                names
                    .values()
                    .find(|value| is_it(value.name()))
                    .map(|value| value.name().into())
            }
            _ if flag == VOLUME => text(matches).map(|volume| volume_id(&volume).into()),
            _ => text(matches).map(Value::from),
        })
    }

    /// Reads a secret from where the flags say, or else from the terminal, if it is necessary.
    fn secret(&self, matches: &ArgMatches) -> Result<Option<String>, Failure> {
        let Self {
            flag, is_required, ..
        } = self;
        let what = &*self.secret_name();
        let sources = format!("--{flag}-file FILE (- for standard input) or --{flag}-env VARIABLE");
        if matches.contains_id(&on_command_line(flag)) {
            return Err(Failure::Usage(format!(
                "other processes can read the command line: give {what} with {sources}, or with \
                 neither to be asked for it on the terminal"
            )));
        }
        if let Some(path) = matches.get_one::<String>(&from_file(flag)) {
            return text_input::secret_from_file(path, what).map(Some);
        }
        if let Some(name) = matches.get_one::<String>(&from_env(flag)) {
            return text_input::secret_from_env(name, what).map(Some);
        }
        // An optional secret is necessary if its user is given.
        let user = if flag == "chap-secret" {
            "chap-username"
        } else {
            "username"
        };
        if !is_required && !matches.try_contains_id(user).unwrap_or(false) {
            return Ok(None);
        }
        match text_input::secret_from_terminal(what)? {
            None if *is_required => Err(Failure::Usage(format!(
                "{what} is missing: give it with {sources}"
            ))),
            secret => Ok(secret),
        }
    }
}

/// Returns the GUID path of a volume that is given by its GUID alone, and anything else as it is.
///
/// The GUID path is hard to type: cmd.exe takes a final backslash before a quotation mark for an
/// escape, and PowerShell braces for a block.
pub(crate) fn volume_id(text: &str) -> String {
    let inner = text.strip_prefix(r"\\?\Volume").unwrap_or(text);
    let inner = inner.strip_suffix('\\').unwrap_or(inner);
    let guid = inner
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(inner);
    let is_guid = guid.len() == 36
        && guid.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if is_guid {
        format!(r"\\?\Volume{{{guid}}}\")
    } else {
        text.to_owned()
    }
}

/// Returns the flags for a request.
pub(crate) fn flags(message: &MessageDescriptor) -> (Vec<Arg>, Vec<ArgGroup>) {
    let fields = fields(message);
    let group = |field: &Field| ArgGroup::new(field.flag.clone());
    let secrets = fields
        .iter()
        .filter(|field| is_secret(field.name()))
        .map(group);
    let has_state = fields
        .iter()
        .any(|field| field.flag == ONLINE && field.is_required);
    let state = has_state.then(|| {
        ArgGroup::new("state")
            .args([ONLINE, OFFLINE])
            .required(true)
    });
    let groups = secrets.chain(state).collect();
    (fields.iter().flat_map(Field::flags).collect(), groups)
}

/// Returns the request in JSON.
pub(crate) fn json(message: &MessageDescriptor, matches: &ArgMatches) -> Result<Value, Failure> {
    let mut request = Map::new();
    for field in fields(message) {
        let Some(value) = field.value(matches)? else {
            continue;
        };
        let (name, above) = field.path.split_last().expect("a field has a name");
        let mut object = &mut request;
        for outer in above {
            let inner = object
                .entry(outer)
                .or_insert_with(|| Value::Object(Map::new()));
            object = inner.as_object_mut().expect("a message is an object");
        }
        object.insert(name.clone(), value);
    }
    Ok(request.into())
}

#[cfg(test)]
mod tests {
    use api::{Group, GroupVersion};
    use clap::Command;
    use serde_json::json;

    use super::*;

    fn request_of(group: Group, version: &str, rpc: &str, arguments: &[&str]) -> Value {
        let rpcs =
            dynamic_client::rpcs(GroupVersion::find(group, version).expect("it is in the table"));
        let (flags, groups) = flags(&rpcs[rpc].request);
        let command = Command::new("x")
            .no_binary_name(true)
            .args(flags)
            .groups(groups);
        let json = json(&rpcs[rpc].request, &command.get_matches_from(arguments)).unwrap();
        rpcs[rpc].request(&json);
        json
    }

    #[test]
    fn flags_become_the_fields_of_the_request() {
        let request = request_of(
            Group::Disk,
            "v1",
            "SetDiskState",
            &["--disk", "3", "--online", "false"],
        );
        assert_eq!(request, json!({ "disk_number": 3, "is_online": false }));
        let request = request_of(
            Group::Disk,
            "v1beta2",
            "SetAttachState",
            &["--disk", "3", "--is-online", "true"],
        );
        assert_eq!(request, json!({ "diskID": "3", "isOnline": true }));
        let request = request_of(
            Group::Filesystem,
            "v1beta1",
            "Rmdir",
            &["--path", r"C:\a", "--context", "pod"],
        );
        assert_eq!(
            request,
            json!({ "path": r"C:\a", "context": "POD", "force": false })
        );
        let portal = [
            "--target-address",
            "10.0.0.1",
            "--iqn",
            "iqn.x",
            "--auth-type",
            "one-way-chap",
        ];
        let request = request_of(Group::Iscsi, "v1alpha2", "ConnectTarget", &portal);
        let expected = json!({ "target_portal": { "target_address": "10.0.0.1" }, "iqn": "iqn.x", "auth_type": "ONE_WAY_CHAP" });
        assert_eq!(request, expected);
        let request = request_of(
            Group::Volume,
            "v1",
            "ResizeVolume",
            &["--volume", "7", "--size", "5Gi"],
        );
        assert_eq!(
            request,
            json!({ "volume_id": "7", "size_bytes": 5_368_709_120_i64 })
        );
    }

    #[test]
    fn a_volume_can_be_given_by_its_guid() {
        const GUID: &str = "01234567-89ab-cdef-0123-456789ABCDEF";
        let path = format!(r"\\?\Volume{{{GUID}}}\");
        for text in [
            GUID,
            &format!("{{{GUID}}}"),
            &format!(r"\\?\Volume{{{GUID}}}"),
            &path,
        ] {
            assert_eq!(volume_id(text), path);
        }
        for text in ["0", r"C:\", "01234567-89ab-cdef-0123-456789ABCDEG", ""] {
            assert_eq!(volume_id(text), text);
        }
    }

    #[test]
    fn each_field_of_a_request_has_a_comment_and_a_flag_that_takes_no_secret() {
        for version in &api::GROUP_VERSIONS {
            for (name, rpc) in dynamic_client::rpcs(version) {
                for field in fields(&rpc.request) {
                    assert!(
                        !field.help.is_empty(),
                        "{}: {name}: {} has no comment",
                        version.pipe(),
                        field.flag
                    );
                }
                // The hidden flags are refused.
                for flag in flags(&rpc.request)
                    .0
                    .into_iter()
                    .filter(|flag| !flag.is_hide_set())
                {
                    let flag = flag.get_long().expect("all are long");
                    let is_source = flag.ends_with("-file") || flag.ends_with("-env");
                    assert_eq!(is_secret(flag), is_source, "{name} --{flag}");
                }
            }
        }
    }
}
