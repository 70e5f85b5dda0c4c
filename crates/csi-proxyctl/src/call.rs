//! `call`: any RPC of any version, with a request in JSON.

use std::io::Write as _;

use api::{GROUP_VERSIONS, GroupVersion};
use clap::ArgMatches;
use prost::Message as _;
use prost_reflect::SerializeOptions;
use serde_json::{Map, Value};

use crate::cli;
use crate::failure::Failure;
use crate::output::Form;
use crate::progress::with_progress;
use crate::request;
use crate::session::Session;
use crate::text_input;

pub(crate) async fn run(matches: &ArgMatches, session: &Session) -> Result<(), Failure> {
    if matches.get_flag("list") {
        let mut out = anstream::stdout();
        return Ok(names().try_for_each(|name| writeln!(out, "{name}"))?);
    }
    let target = cli::required(matches, "rpc");
    let (version, name) = resolve(target)?;
    let request = request_json(matches.get_one::<String>("request").map_or("{}", String::as_str))?;
    let response = call(session, version, &[version.version], name, &request).await?;
    let form = if cli::required(matches, "output") == "yaml" { Form::Yaml } else { Form::Json };
    Ok(write!(anstream::stdout(), "{}", form.text(&response))?)
}

/// Returns the names of all RPCs, such as `disk/v1/ListDiskIDs`.
pub(crate) fn names() -> impl Iterator<Item = String> {
    GROUP_VERSIONS.iter().flat_map(|version| {
        version.rpcs.iter().map(|rpc| format!("{}/{}/{}", version.group.name(), version.version, rpc.name))
    })
}

/// Finds the RPC that `target` names: `GROUP/VERSION/RPC`, or `GROUP/RPC` for the preferred version that has it.
fn resolve(target: &str) -> Result<(&'static GroupVersion, &'static str), Failure> {
    let parts: Vec<&str> = target.split('/').collect();
    let (group, version, rpc) = match parts[..] {
        [group, version, rpc] => (group, Some(version), rpc),
        [group, rpc] => (group, None, rpc),
        _ => return Err(Failure::Usage(format!("{target} is not of the form GROUP/VERSION/RPC"))),
    };
    let named = |row: &&GroupVersion| row.group.name() == group && version.is_none_or(|version| row.version == version);
    let mut found = GROUP_VERSIONS.iter().filter(named).peekable();
    if found.peek().is_none() {
        let name = version.map_or_else(|| group.to_owned(), |version| format!("{group}/{version}"));
        return Err(Failure::Usage(format!("csi-proxy has no group-version {name}; see `csi-proxyctl call --list`")));
    }
    let rpc_of = |row: &'static GroupVersion| Some((row, row.rpcs.iter().find(|own| own.name == rpc)?.name));
    found
        .find_map(rpc_of)
        .ok_or_else(|| Failure::Usage(format!("csi-proxy has no RPC {target}; see `csi-proxyctl call --list`")))
}

/// Returns the request: `argument` itself, or what it refers to.
fn request_json(argument: &str) -> Result<Value, Failure> {
    let source = if argument == "-" { Some("-") } else { argument.strip_prefix('@') };
    let text = match source {
        Some(path) => text_input::read(path, "the request")?,
        None => argument.to_owned(),
    };
    // These errors give a position and do not quote the text.
    let json: Value =
        serde_json::from_str(&text).map_err(|error| Failure::Usage(format!("the request is not JSON: {error}")))?;
    let is_given = |(name, value): (&String, &Value)| request::is_secret(name) && value.as_str() != Some("");
    if source.is_none() && json.as_object().into_iter().flatten().any(is_given) {
        return Err(Failure::Usage(
            "other processes can read the command line: give a request with a secret in a file, as @FILE, or on standard \
             input, as -"
                .into(),
        ));
    }
    Ok(json)
}

/// Calls an RPC with a request in JSON, and returns the response.
pub(crate) async fn call(
    session: &Session,
    version: &'static GroupVersion,
    versions: &[&str],
    name: &'static str,
    request: &Value,
) -> Result<Value, Failure> {
    let rpc = dynamic_client::rpcs(version).remove(name).expect("the version has the RPC");
    let request = rpc.try_request(request).map_err(|error| {
        // The error may quote a value.
        let reason = if request::has_secret(&rpc.request) { String::new() } else { format!("{error}; ") };
        let fields = match request::field_names(&rpc.request) {
            none if none.is_empty() => "it has no fields".to_owned(),
            names => format!("its fields are {names}"),
        };
        Failure::Usage(format!("the request does not fit {}: {reason}{fields}", rpc.request.name()))
    })?;
    let group = version.group.name();
    let call = session.client.call_encoded(group, versions, name, request.encode_to_vec());
    let encoded = with_progress(name, call).await?;
    let options = SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(false);
    let mut response = rpc.response_json(&encoded, options).map_err(Failure::Response)?;
    // Before 1.0, some responses have a field for an error. Only the csi-proxy written in Go fills it.
    match response.as_object_mut().and_then(|fields: &mut Map<String, Value>| fields.remove("error")) {
        Some(Value::String(error)) if !error.is_empty() => Err(Failure::Response(format!("{name} failed: {error}"))),
        _ => Ok(response),
    }
}
