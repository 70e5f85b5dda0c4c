//! `call`: any RPC of any version, with a request in JSON.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::io::Write as _;

use api::GROUP_VERSIONS;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgMatches, Command};
use command_line::args;
use command_line::failure::Failure;
use command_line::output::Form;
use command_line::progress::with_progress;
use command_line::text_input;
use csi_proxy_client::EncodedRpc;
use prost::Message as _;
use prost_reflect::SerializeOptions;
use serde::Deserializer as _;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::choose_version::{self, Choice};
use crate::request;
use crate::session::Session;

/// Returns the command.
pub(crate) fn command() -> Command {
    Command::new("call")
        .about("Calls any RPC of any version, with a request in JSON")
        .before_help(
            "Fields have the names of the api.proto files, or these names in lowerCamelCase. An \
             omitted field has its default value. The response has the names of the api.proto \
             files, and numbers for 64-bit integers.\n\n\
             An RPC may change the node and lose data. To see the warnings, read the help of the \
             RPC's own command, for example `csi-proxyctl volume format --help`.",
        )
        .arg(
            Arg::new("rpc")
                .value_name("GROUP/VERSION/RPC")
                .required_unless_present("list")
                .value_parser(RpcParser)
                .hide_possible_values(true)
                .help(
                    "The RPC, such as disk/v1/ListDiskIDs or ListDiskIDs alone: the preferred \
                     version that has the RPC",
                ),
        )
        .arg(Arg::new("request").value_name("JSON").help(
            "The request, @FILE to read it from a file, or - to read it from standard input. A \
             request with a secret is accepted only from a file or standard input [default: {}]",
        ))
        .arg(args::switch("list", "List all RPCs"))
        .arg(args::output_arg(&["json", "yaml"]))
}

/// Accepts every text, and knows the names of all RPCs, which the shells complete.
#[derive(Clone)]
struct RpcParser;

impl TypedValueParser for RpcParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(names().map(PossibleValue::new)))
    }
}

/// Runs the command.
pub(crate) async fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    if matches.get_flag("list") {
        let list = match args::response_form(matches) {
            Some(form) => form.text(&names().collect()),
            None => names().map(|name| name + "\n").collect(),
        };
        return Ok(write!(anstream::stdout(), "{list}")?);
    }
    let choice = choose_version::for_call(args::required(matches, "rpc"))?;
    let request = request_json(
        matches
            .get_one::<String>("request")
            .map_or("{}", String::as_str),
    )?;
    let response = call(session, choice, &request).await?;
    let form = args::response_form(matches).unwrap_or(Form::Json);
    Ok(write!(anstream::stdout(), "{}", form.text(&response))?)
}

/// Returns the names of all RPCs, such as `disk/v1/ListDiskIDs`.
pub(crate) fn names() -> impl Iterator<Item = String> {
    GROUP_VERSIONS.iter().flat_map(|version| {
        version
            .rpcs
            .iter()
            .map(|rpc| format!("{}/{}/{}", version.group.name(), version.version, rpc.name))
    })
}

/// Returns the request: `argument` itself, or what it refers to.
fn request_json(argument: &str) -> Result<Value, Failure> {
    let source = if argument == "-" {
        Some("-")
    } else {
        argument.strip_prefix('@')
    };
    let text = match source {
        Some(path) => text_input::read(path, "the request")?,
        None => argument.to_owned(),
    };
    // These errors give a position and do not quote the text.
    let json: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::Usage(format!("the request is not JSON: {error}")))?;
    if json.is_object() {
        let unique = serde_json::Deserializer::from_str(&text).deserialize_map(UniqueNames);
        unique.map_err(|error| Failure::Usage(format!("the request is not valid: {error}")))?;
    }
    let is_given =
        |(name, value): (&String, &Value)| request::is_secret(name) && value.as_str() != Some("");
    if source.is_none() && json.as_object().into_iter().flatten().any(is_given) {
        return Err(Failure::Usage(
            "other processes can read the command line: give a request with a secret in a file, as \
             @FILE, or on standard input, as -"
                .into(),
        ));
    }
    Ok(json)
}

/// Refuses an object in which a field is given twice, because one of its values would be ignored.
struct UniqueNames;

impl<'de> Visitor<'de> for UniqueNames {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut names = BTreeSet::new();
        while let Some((name, IgnoredAny)) = fields.next_entry::<String, IgnoredAny>()? {
            if let Some(twice) = names.replace(name) {
                return Err(A::Error::custom(format!("{twice} is given twice")));
            }
        }
        Ok(())
    }
}

/// Calls an RPC with a request in JSON, and returns the response.
pub(crate) async fn call(
    session: &Session,
    choice: Choice,
    request: &Value,
) -> Result<Value, Failure> {
    let (group, name) = (choice.version.group.name(), choice.rpc.name);
    let rpc = dynamic_client::rpcs(choice.version)
        .remove(name)
        .expect("the version has the RPC");
    let request = rpc.try_request(request).map_err(|error| {
        let mut given = request.as_object().into_iter().flatten();
        let refused =
            given.find(|(name, value)| rpc.try_request(&json!({ *name: value })).is_err());
        let field = refused
            .map(|(name, _)| format!("{name}: "))
            .unwrap_or_default();
        // The error may quote a value.
        let error = if request::has_secret(&rpc.request) {
            "not valid".to_owned()
        } else {
            error.to_string()
        };
        let reason = if error.contains(field.trim_end_matches(": ")) {
            error
        } else {
            field + &error
        };
        let fields = match request::field_names(&rpc.request) {
            none if none.is_empty() => "it has no fields".to_owned(),
            names => format!("its fields are {names}"),
        };
        Failure::Usage(format!(
            "the request does not fit {}: {reason}; {fields}",
            rpc.request.name()
        ))
    })?;
    let called = EncodedRpc {
        group,
        versions: choice.candidates,
        name,
    };
    let call = session.client.call_encoded(called, request.encode_to_vec());
    let encoded = with_progress(name, call).await?;
    let options = SerializeOptions::new()
        .use_proto_field_name(true)
        .stringify_64_bit_integers(false);
    let mut response = rpc
        .response_json(&encoded, options)
        .map_err(Failure::response)?;
    // Before 1.0, some responses have a field for an error. Only the csi-proxy written in Go fills
    // it.
    match response
        .as_object_mut()
        .and_then(|fields: &mut Map<String, Value>| fields.remove("error"))
    {
        Some(Value::String(error)) if !error.is_empty() => {
            Err(Failure::response(format!("{name} failed: {error}")))
        }
        _ => Ok(response),
    }
}
