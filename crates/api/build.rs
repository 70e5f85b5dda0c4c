//! Compiles `proto/` into OUT_DIR: a module for each group-version, and the entries of `GROUP_VERSIONS`.
//!
//! Everything is derived from the table in `src/table.rs` and from the descriptors of the `.proto` files: the messages
//! that are equal in several versions of a group and become one Rust type, the fields that `Debug` redacts, and the RPCs
//! of each entry.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use heck::{ToSnakeCase as _, ToUpperCamelCase as _};
use prost::Message as _;
use prost_build::{Config, Service, ServiceGenerator};
use prost_types::field_descriptor_proto::Type;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto,
};

use table::{Group, TABLE};

#[expect(unreachable_pub, reason = "the library includes this file too, and makes it public")]
#[path = "src/table.rs"]
mod table;

/// The lints that generated code does not have to meet.
const ALLOWED_LINTS: &str = "#[allow(missing_docs, rust_2018_idioms, unreachable_pub, clippy::all, clippy::pedantic, \
                          reason = \"generated\")]";

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    println!("cargo::rerun-if-changed={}", root.display());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/table.rs");
    check_every_proto_has_an_entry(&root)?;

    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut types = SharedTypes::default();
    let (mut modules, mut entries) = (String::new(), String::new());
    for versions in TABLE.chunk_by(|(a, _), (b, _)| a == b) {
        let group = versions[0].0;
        writeln!(modules, "/// The versions of the {} group.\npub mod {0} {{", group.name())?;
        for (_, version) in versions {
            let file = compile(&root, group, version)?;
            let dir = out.join(group.name()).join(version);
            fs::create_dir_all(&dir)?;
            modules += &module(&file, group, version, &dir, &mut types)?;
            entries += &entry(&file, group, version)?;
            fs::write(dir.join("descriptors.bin"), without_comments(file).encode_to_vec())?;
        }
        modules += "}\n";
    }
    fs::write(out.join("modules.rs"), modules)?;
    fs::write(out.join("group_versions.rs"), format!("[{entries}]"))?;
    Ok(())
}

/// Fails if `proto/` has a group-version that the table does not list, which would be neither compiled nor served.
fn check_every_proto_has_an_entry(root: &Path) -> Result<(), Box<dyn Error>> {
    for group in fs::read_dir(root)? {
        let group = group?;
        for version in fs::read_dir(group.path())? {
            let (group, version) = (group.file_name(), version?.file_name());
            if !TABLE.iter().any(|entry| group == entry.0.name() && version == entry.1) {
                let (group, version) = (group.display(), version.display());
                return Err(format!("TABLE in src/table.rs has no entry for proto/{group}/{version}").into());
            }
        }
    }
    Ok(())
}

/// Compiles one group-version. Each is compiled by itself, because the groups share package names.
fn compile(root: &Path, group: Group, version: &str) -> Result<FileDescriptorProto, Box<dyn Error>> {
    let name = format!("{}/{version}/api.proto", group.name());
    let mut files = protox::Compiler::new([root])?
        .include_source_info(true)
        .open_file(&name)
        .map_err(|error| format!("{error:?}"))?
        .file_descriptor_set()
        .file;
    let file = files.pop().ok_or_else(|| format!("{name}: the compiler returned no descriptor"))?;
    if !files.is_empty() || file.service.len() != 1 || file.package() != version {
        return Err(format!("{name}: the file must have the package {version}, one service and no imports").into());
    }
    Ok(file)
}

/// Generates the code of one group-version and returns the module that includes it.
fn module(
    file: &FileDescriptorProto,
    group: Group,
    version: &str,
    dir: &Path,
    types: &mut SharedTypes,
) -> Result<String, Box<dyn Error>> {
    let mut config = Config::new();
    config.out_dir(dir).service_generator(Box::new(Stubs(tonic_prost_build::configure().service_generator())));
    config.btree_map(["."]); // responses list disks in the order of their numbers

    let module_path = format!("crate::{}::{version}", group.name());
    let (mut reexports, mut debugs, mut with_secrets) = (String::new(), String::new(), Vec::new());
    for message in &file.message_type {
        let ident = message.name().to_upper_camel_case();
        if let Some(path) = types.find_or_insert(group, &ident, message_shape(file, message), &module_path) {
            config.extern_path(format!(".{version}.{}", message.name()), &path);
            writeln!(reexports, "        pub use {path};")?;
        } else if message.field.iter().any(is_secret) {
            with_secrets.push(format!(".{version}.{}", message.name()));
            debugs += &redacted_debug(message, &ident)?;
        }
    }
    for enumeration in &file.enum_type {
        let ident = enumeration.name().to_upper_camel_case();
        if let Some(path) = types.find_or_insert(group, &ident, enum_shape(enumeration), &module_path) {
            config.extern_path(format!(".{version}.{}", enumeration.name()), &path);
            writeln!(reexports, "        pub use {path};")?;
        }
    }
    config.skip_debug(with_secrets);

    let mut file = file.clone();
    for field in file.message_type.iter_mut().flat_map(|message| &mut message.field) {
        field.name = Some(snake_case(field.name()));
    }
    config.compile_fds(FileDescriptorSet { file: vec![file] })?;
    Ok(format!(
        "    /// The messages and stubs of the service on the pipe `csi-proxy-{group}-{version}`.
    {ALLOWED_LINTS}
    pub mod {version} {{
        include!(concat!(env!(\"OUT_DIR\"), \"/{group}/{version}/{version}.rs\"));
{reexports}{debugs}    }}\n",
        group = group.name()
    ))
}

/// Returns the entry of `GROUP_VERSIONS` in `src/group_version.rs`. Its service name is the constant of the server stub.
fn entry(file: &FileDescriptorProto, group: Group, version: &str) -> Result<String, Box<dyn Error>> {
    let service = &file.service[0];
    let mut rpcs = String::new();
    for rpc in service.method.iter().map(MethodDescriptorProto::name) {
        write!(rpcs, "Rpc {{ name: {rpc:?}, path: \"/{version}.{}/{rpc}\" }}, ", service.name())?;
    }
    Ok(format!(
        "GroupVersion {{
    group: Group::{group:?},
    version: {version:?},
    service: crate::{name}::{version}::{stub}_server::SERVICE_NAME,
    rpcs: &[{rpcs}],
    pipe: \"csi-proxy-{name}-{version}\",
    descriptors: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}/{version}/descriptors.bin\")),
}},\n",
        name = group.name(),
        stub = service.name().to_snake_case(),
    ))
}

fn without_comments(mut file: FileDescriptorProto) -> FileDescriptorSet {
    file.source_code_info = None;
    FileDescriptorSet { file: vec![file] }
}

/// The types generated so far: for each group and name, the path of the type of each shape.
#[derive(Default)]
struct SharedTypes(HashMap<(Group, String), HashMap<String, String>>);

impl SharedTypes {
    /// Returns the path of an earlier type of the same name and shape. If no such type exists, inserts this one.
    fn find_or_insert(&mut self, group: Group, ident: &str, shape: String, module_path: &str) -> Option<String> {
        let shapes = self.0.entry((group, ident.to_owned())).or_default();
        if let Some(path) = shapes.get(&shape) {
            return Some(path.clone());
        }
        shapes.insert(shape, format!("{module_path}::{ident}"));
        None
    }
}

/// Returns everything that the Rust type of a message depends on, including the messages it contains. The contract has
/// no recursive messages.
fn message_shape(file: &FileDescriptorProto, message: &DescriptorProto) -> String {
    let fields = message.field.iter().map(|field| {
        let (name, number, kind, label) = (field.name(), field.number(), field.r#type(), field.label());
        format!("{name} {number} {kind:?} {label:?} {:?} {}", field.oneof_index, contained_shape(file, message, field))
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

/// Returns the shape of the message or enumeration that a field refers to; empty for a scalar.
fn contained_shape(file: &FileDescriptorProto, message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let name = field.type_name().rsplit('.').next().unwrap_or_default();
    match field.r#type() {
        Type::Message => {
            let entry = message.nested_type.iter().find(|nested| nested.name() == name);
            let contained = entry.or_else(|| file.message_type.iter().find(|other| other.name() == name));
            message_shape(file, contained.expect("the compiler resolved the name"))
        }
        Type::Enum => {
            let contained = file.enum_type.iter().find(|other| other.name() == name);
            enum_shape(contained.expect("the compiler resolved the name"))
        }
        _ => String::new(),
    }
}

fn enum_shape(enumeration: &EnumDescriptorProto) -> String {
    let values = enumeration.value.iter().map(|value| format!("{} {}", value.name(), value.number()));
    format!("{{{}}}", values.collect::<Vec<_>>().join(", "))
}

fn is_secret(field: &FieldDescriptorProto) -> bool {
    let name = field.name().to_lowercase();
    name.contains("password") || name.contains("secret")
}

/// Returns an implementation of `Debug` that redacts the secret fields.
fn redacted_debug(message: &DescriptorProto, ident: &str) -> Result<String, Box<dyn Error>> {
    let mut fields = String::new();
    for field in &message.field {
        let name = snake_case(field.name());
        let value = match field.r#type() {
            _ if is_secret(field) => "format_args!(\"[redacted]\")".to_owned(),
            Type::Enum => format!("self.{name}()"),
            _ => format!("self.{name}"),
        };
        write!(fields, ".field({name:?}, &{value})")?;
    }
    Ok(format!(
        "        impl ::core::fmt::Debug for {ident} {{
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {{
                f.debug_struct({ident:?}){fields}.finish()
            }}
        }}\n"
    ))
}

/// Returns `disk_ids` for `diskIDs`, for which heck alone returns `disk_i_ds`.
fn snake_case(name: &str) -> String {
    name.replace("IDs", "Ids").to_snake_case()
}

/// Tonic's generator of stubs, with the methods named by [`snake_case`].
struct Stubs(Box<dyn ServiceGenerator>);

impl ServiceGenerator for Stubs {
    fn generate(&mut self, mut service: Service, code: &mut String) {
        for method in &mut service.methods {
            method.name = snake_case(&method.proto_name);
        }
        self.0.generate(service, code);
    }

    fn finalize(&mut self, code: &mut String) {
        self.0.finalize(code);
    }
}
