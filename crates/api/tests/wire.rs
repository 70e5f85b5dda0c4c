//! Compares the compiled contract with `wire.json`, which has every RPC of the released versions as
//! deployed drivers use it.
//!
//! The contract is converted to the same JSON, so the tests fail on anything that is missing, extra
//! or different. A version that has not been released may change, and is not in `wire.json`.

use std::collections::BTreeMap;

use csi_proxy_api::{GROUP_VERSIONS, GroupVersion};
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MessageOptions,
};
use serde_json::{Map, Value, json};

/// Returns the entry of each released version, with its form in `wire.json`.
fn released() -> Vec<(&'static GroupVersion, Value)> {
    let wire: BTreeMap<String, BTreeMap<String, Value>> =
        serde_json::from_str(include_str!("wire.json"))
            .expect("wire.json has groups with versions");
    let mut released = Vec::new();
    for (group, versions) in wire {
        for (version, form) in versions {
            let is_it =
                |entry: &&GroupVersion| entry.group.name() == group && entry.version == version;
            let entry = GROUP_VERSIONS.iter().find(is_it);
            released.push((
                entry.unwrap_or_else(|| panic!("{group} {version} was released and is missing")),
                form,
            ));
        }
    }
    released
}

fn descriptor(entry: &GroupVersion) -> FileDescriptorProto {
    let mut files = FileDescriptorSet::decode(entry.descriptors())
        .expect("descriptors decode")
        .file;
    assert_eq!(files.len(), 1, "{entry:?}");
    files.remove(0)
}

#[test]
fn a_released_version_is_what_deployed_drivers_expect() {
    for (entry, expected) in released() {
        let compiled = as_json(entry, &descriptor(entry));
        for part in ["package", "pipe", "service", "rpcs", "messages", "enums"] {
            assert_eq!(compiled[part], expected[part], "{part} of {entry:?}");
        }
        assert_eq!(compiled, expected, "{entry:?}");
    }
}

/// The numbers change when a version is released, and only then.
#[test]
fn wire_json_has_139_rpcs_in_23_versions() {
    let released = released();
    let rpcs = released
        .iter()
        .map(|(_, form)| form["rpcs"].as_array().expect("rpcs").len());
    assert_eq!((released.len(), rpcs.sum::<usize>()), (23, 139));
}

/// Returns a group-version in the form of `wire.json`.
fn as_json(entry: &GroupVersion, file: &FileDescriptorProto) -> Value {
    assert_eq!(file.syntax(), "proto3", "{entry:?}");
    let [service] = &file.service[..] else {
        panic!("{entry:?} must have one service")
    };
    let local = |name: &str| {
        let name = name
            .strip_prefix(&format!(".{}.", file.package()))
            .expect("a type of this file");
        name.to_owned()
    };
    assert_eq!(
        entry.service,
        format!("{}.{}", file.package(), service.name())
    );
    let rpcs = entry.rpcs.iter().zip(&service.method).map(|(own, rpc)| {
        assert!(
            !rpc.client_streaming() && !rpc.server_streaming(),
            "{entry:?} {}",
            rpc.name()
        );
        assert_eq!(own.name, rpc.name(), "{entry:?}");
        json!({
            "name": own.name,
            "path": own.path,
            "request": local(rpc.input_type()),
            "response": local(rpc.output_type()),
        })
    });
    let messages = file.message_type.iter().map(|message| {
        let nested_is_entry = |nested: &DescriptorProto| nested.options.as_ref().is_some_and(MessageOptions::map_entry);
        assert!(message.nested_type.iter().all(nested_is_entry) && message.enum_type.is_empty(), "{}", message.name());
        assert!(message.oneof_decl.is_empty() && message.extension.is_empty(), "{}", message.name());
        let field = |field: &FieldDescriptorProto| {
            json!({ "number": field.number(), "name": field.name(), "type": type_of(file, message, field) })
        };
        (message.name().to_owned(), message.field.iter().map(field).collect())
    });
    let enums = file.enum_type.iter().map(|declared| {
        let values = declared
            .value
            .iter()
            .map(|value| (value.name().to_owned(), json!(value.number())));
        (declared.name().to_owned(), Value::Object(values.collect()))
    });
    json!({
        "package": file.package(),
        "pipe": entry.pipe(),
        "service": service.name(),
        "rpcs": rpcs.collect::<Vec<_>>(),
        "messages": messages.collect::<Map<String, Value>>(),
        "enums": enums.collect::<Map<String, Value>>(),
    })
}

/// Returns the type of a field as a `.proto` file has it.
fn type_of(
    file: &FileDescriptorProto,
    message: &DescriptorProto,
    field: &FieldDescriptorProto,
) -> String {
    let entry_name = |entry: &DescriptorProto| {
        format!(".{}.{}.{}", file.package(), message.name(), entry.name())
    };
    if let Some(entry) = message
        .nested_type
        .iter()
        .find(|entry| entry_name(entry) == field.type_name())
    {
        let [key, value] = &entry.field[..] else {
            panic!("an entry has a key and a value")
        };
        return format!(
            "map<{}, {}>",
            type_of(file, entry, key),
            type_of(file, entry, value)
        );
    }
    let name = match field.r#type() {
        Type::Message | Type::Enum => field
            .type_name()
            .rsplit('.')
            .next()
            .expect("a name")
            .to_owned(),
        scalar => scalar
            .as_str_name()
            .trim_start_matches("TYPE_")
            .to_lowercase(),
    };
    match field.label() {
        Label::Repeated => format!("repeated {name}"),
        Label::Optional => name,
        Label::Required => format!("required {name}"),
    }
}
