//! The RPCs that the layer knows: those of all group-versions, and those of the control API that
//! change the node.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use api::GROUP_VERSIONS;
use dynamic_client::Rpc;
use faults::Call;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;

use super::answer::PREFIX;
use crate::control_api::DESCRIPTORS;

/// How the names of those RPCs of the control API begin that do not change the node: a recording
/// does not need them.
const READS: [&str; 7] = ["Compare", "Get", "List", "Read", "Save", "Stat", "Wait"];

/// The field of the control API that has a node file as text.
pub(super) const NODE_FILE: &str = "nodeFile";

/// The control API, as the group in the names of its RPCs.
pub(super) const CONTROL: &str = "sim-control";

static RPCS: LazyLock<BTreeMap<&'static str, KnownRpc>> = LazyLock::new(|| {
    let of_row = |row| {
        dynamic_client::rpcs(row)
            .into_iter()
            .map(move |(name, rpc)| (row, name, rpc))
    };
    let known = GROUP_VERSIONS
        .iter()
        .flat_map(of_row)
        .map(|(row, name, rpc)| {
            let name = format!("{}/{}/{name}", row.group.name(), row.version);
            (rpc.path, KnownRpc { name, rpc })
        });
    known.chain(control_rpcs()).collect()
});

/// An RPC that the layer knows.
pub(crate) struct KnownRpc {
    /// The name, such as `volume/v1/MountVolume` or `sim-control/Simulation/Add`.
    pub(crate) name: String,
    pub(crate) rpc: Rpc,
}

/// Returns the RPC with this path.
pub(crate) fn find(path: &str) -> Option<&'static KnownRpc> {
    RPCS.get(path)
}

/// Returns the RPCs of the control API that change the node, by their paths.
fn control_rpcs() -> impl Iterator<Item = (&'static str, KnownRpc)> {
    let pool = DescriptorPool::decode(DESCRIPTORS).expect("the descriptors decode");
    let methods: Vec<_> = pool
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>())
        .collect();
    methods
        .into_iter()
        .filter(|method| !READS.iter().any(|read| method.name().starts_with(read)))
        .map(|method| {
            let (service, name) = (method.parent_service().clone(), method.name());
            // There are two dozen, and the table is made once.
            let path: &'static str = format!("/{}/{name}", service.full_name()).leak();
            let name = format!("{CONTROL}/{}/{name}", service.name());
            let rpc = Rpc {
                path,
                request: method.input(),
                response: method.output(),
                comment: String::new(),
            };
            (path, KnownRpc { name, rpc })
        })
}

impl KnownRpc {
    /// Returns the request as JSON, with the variable `$password` for the value of the field
    /// `password`, and so on. `data` is the message with its prefix; an invalid one has no fields.
    pub(super) fn request_json(&self, data: &[u8]) -> Value {
        let message = DynamicMessage::decode(
            self.rpc.request.clone(),
            data.get(PREFIX..).unwrap_or_default(),
        );
        let options = SerializeOptions::new();
        let json = message.ok().and_then(|message| {
            message
                .serialize_with_options(serde_json::value::Serializer, &options)
                .ok()
        });
        let mut json = json.unwrap_or_default();
        hide_secrets(&mut json);
        json
    }

    /// Returns whether drivers call the RPC. Faults and imitation leave the control API alone.
    pub(super) fn is_of_driver(&self) -> bool {
        !self.name.starts_with(CONTROL)
    }

    /// Returns the call as faults choose it.
    pub(super) fn call(&self, request: &Value) -> Call {
        let mut values = Vec::new();
        add_values(request, &mut values);
        Call {
            sequence: 0,
            primitive: self.name.clone().into(),
            object: values.join(" "),
            mutates: false,
        }
    }
}

/// Returns whether a field is a secret. The files of the API keep this rule.
pub(super) fn is_secret(field: &str) -> bool {
    let field = field.to_lowercase();
    field.contains("password") || field.contains("secret")
}

pub(crate) fn hide_secrets(value: &mut Value) {
    value
        .as_array_mut()
        .into_iter()
        .flatten()
        .for_each(hide_secrets);
    for (name, value) in value.as_object_mut().into_iter().flatten() {
        if is_secret(name) {
            *value = format!("${name}").into();
        } else if name == NODE_FILE
            && let Some(mut node) = value.as_str().and_then(|text| toml::from_str(text).ok())
        {
            hide_secrets(&mut node);
            *value = toml::to_string(&node).unwrap_or_default().into();
        } else {
            hide_secrets(value);
        }
    }
}

pub(crate) fn add_values(value: &Value, to: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.values().for_each(|value| add_values(value, to)),
        Value::Array(items) => items.iter().for_each(|value| add_values(value, to)),
        other => to.push(
            other
                .as_str()
                .map_or_else(|| other.to_string(), str::to_owned),
        ),
    }
}
