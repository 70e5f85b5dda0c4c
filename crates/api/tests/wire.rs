//! Compares the compiled contract with `wire.json`, which has every RPC as deployed drivers use it.
//!
//! The contract is converted to the same JSON, so the tests fail on anything that is missing, extra or different.

use std::collections::BTreeSet;

use csi_proxy_api::{GROUP_VERSIONS, GroupVersion};
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MessageOptions};
use serde_json::{Map, Value, json};

fn wire() -> Value {
    serde_json::from_str(include_str!("wire.json")).expect("wire.json is JSON")
}

fn descriptor(entry: &GroupVersion) -> FileDescriptorProto {
    let mut files = FileDescriptorSet::decode(entry.descriptors()).expect("descriptors decode").file;
    assert_eq!(files.len(), 1, "{entry:?}");
    files.remove(0)
}

#[test]
fn every_group_version_is_what_deployed_drivers_expect() {
    let wire = wire();
    for entry in &GROUP_VERSIONS {
        let expected = &wire[entry.group.name()][entry.version];
        assert!(expected.is_object(), "{entry:?} is not in wire.json");
        let compiled = as_json(entry, &descriptor(entry));
        for part in ["package", "pipe", "service", "rpcs", "messages", "enums"] {
            assert_eq!(compiled[part], expected[part], "{part} of {entry:?}");
        }
        assert_eq!(&compiled, expected, "{entry:?}");
    }
}

#[test]
fn the_table_lists_every_group_version_once() {
    let expected: BTreeSet<String> = wire()
        .as_object()
        .expect("groups")
        .iter()
        .flat_map(|(group, versions)| {
            versions.as_object().expect("versions").keys().map(move |version| format!("{group}/{version}"))
        })
        .collect();
    let table: BTreeSet<String> =
        GROUP_VERSIONS.iter().map(|entry| format!("{}/{}", entry.group.name(), entry.version)).collect();
    assert_eq!(table, expected);
    assert_eq!(GROUP_VERSIONS.len(), 23);
    assert_eq!(table.len(), 23);
}

#[test]
fn the_table_names_the_pipe_service_and_rpcs_of_the_contract() {
    let wire = wire();
    for entry in &GROUP_VERSIONS {
        let expected = &wire[entry.group.name()][entry.version];
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        assert_eq!(entry.pipe(), text(&expected["pipe"]));
        assert_eq!(entry.service, format!("{}.{}", text(&expected["package"]), text(&expected["service"])));
        let rpcs: Vec<_> = entry.rpcs.iter().map(|rpc| (rpc.name.to_owned(), rpc.path.to_owned())).collect();
        let expected: Vec<_> = expected["rpcs"]
            .as_array()
            .expect("rpcs")
            .iter()
            .map(|rpc| (text(&rpc["name"]), text(&rpc["path"])))
            .collect();
        assert_eq!(rpcs, expected, "{entry:?}");
    }
}

#[test]
fn the_contract_has_139_rpcs_with_48_names() {
    assert_eq!(GROUP_VERSIONS.iter().map(|entry| entry.rpcs.len()).sum::<usize>(), 139);
    let names: BTreeSet<_> =
        GROUP_VERSIONS.iter().flat_map(|entry| entry.rpcs.iter().map(|rpc| (entry.group, rpc.name))).collect();
    assert_eq!(names.len(), 48);
}

/// Returns a group-version in the form of `wire.json`.
fn as_json(entry: &GroupVersion, file: &FileDescriptorProto) -> Value {
    assert_eq!(file.syntax(), "proto3", "{entry:?}");
    let [service] = &file.service[..] else { panic!("{entry:?} must have one service") };
    let local = |name: &str| {
        let name = name.strip_prefix(&format!(".{}.", file.package())).expect("a type of this file");
        name.to_owned()
    };
    let rpcs = service.method.iter().map(|rpc| {
        assert!(!rpc.client_streaming() && !rpc.server_streaming(), "{entry:?} {}", rpc.name());
        json!({
            "name": rpc.name(),
            "path": format!("/{}.{}/{}", file.package(), service.name(), rpc.name()),
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
        let values = declared.value.iter().map(|value| (value.name().to_owned(), json!(value.number())));
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
fn type_of(file: &FileDescriptorProto, message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let entry_name = |entry: &DescriptorProto| format!(".{}.{}.{}", file.package(), message.name(), entry.name());
    if let Some(entry) = message.nested_type.iter().find(|entry| entry_name(entry) == field.type_name()) {
        let [key, value] = &entry.field[..] else { panic!("an entry has a key and a value") };
        return format!("map<{}, {}>", type_of(file, entry, key), type_of(file, entry, value));
    }
    let name = match field.r#type() {
        Type::Message | Type::Enum => field.type_name().rsplit('.').next().expect("a name").to_owned(),
        scalar => scalar.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    };
    match field.label() {
        Label::Repeated => format!("repeated {name}"),
        Label::Optional => name,
        Label::Required => format!("required {name}"),
    }
}
