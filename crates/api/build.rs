//! Compiles `proto/` into OUT_DIR: a module for each group-version, and every list of RPCs.
//!
//! Everything is derived from the table in `src/table.rs` and from the `.proto` files: the messages
//! that are equal in several versions of a group and become one Rust type, the fields that `Debug`
//! redacts, the RPCs of each entry, the RPC of each request type, and the macro `for_each_rpc`.

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
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, MethodDescriptorProto,
};

use table::{Group, TABLE};

#[expect(
    unreachable_pub,
    reason = "the library includes this file too, and makes it public"
)]
#[path = "src/table.rs"]
mod table;

/// The lints that generated code does not have to meet.
const ALLOWED_LINTS: &str = "#[allow(missing_docs, rust_2018_idioms, unreachable_pub, clippy::all, \
                             clippy::pedantic, reason = \"generated\")]";

/// The field numbers of `FileDescriptorProto.service` and `ServiceDescriptorProto.method`, which
/// are the path of an RPC.
const SERVICES: i32 = 6;
const METHODS: i32 = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("proto");
    println!("cargo::rerun-if-changed={}", root.display());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/table.rs");
    check_every_proto_has_an_entry(&root)?;

    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut types = SharedTypes::default();
    let mut modules = String::new();
    let mut entries = String::new();
    let mut descriptors = String::new();
    let mut macro_rows = String::new();
    for versions in TABLE.chunk_by(|(a, _), (b, _)| a == b) {
        let group = versions[0].0;
        let mut files = Vec::new();
        let mut rpcs = Vec::new();
        writeln!(
            modules,
            "/// The versions of the {} group.\npub mod {0} {{",
            group.name()
        )?;
        for (_, version) in versions {
            let file = compile(&root, group, version)?;
            let dir = out.join(group.name()).join(version);
            fs::create_dir_all(&dir)?;
            modules += &module(&file, group, version, &dir, &mut types)?;
            rpcs.extend(rpcs_of(&file, group, version, &types));
            fs::write(
                dir.join("descriptors.bin"),
                with_comments_only(file.clone()).encode_to_vec(),
            )?;
            files.push((file, version));
        }
        modules += &request_impls(group, &rpcs)?;
        modules += "}\n";
        for (file, version) in files {
            let own: Vec<&Rpc> = rpcs.iter().filter(|rpc| rpc.version == *version).collect();
            entries += &entry(&file, group, version, &own, &rpcs)?;
            let name = group.name();
            writeln!(
                descriptors,
                "include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}/{version}/descriptors.bin\")),"
            )?;
            macro_rows += &macro_row(group, version, &own)?;
        }
    }
    fs::write(out.join("modules.rs"), modules + &for_each_rpc(&macro_rows))?;
    fs::write(out.join("group_versions.rs"), format!("[{entries}]"))?;
    fs::write(out.join("descriptors.rs"), format!("[{descriptors}]"))?;
    Ok(())
}

/// Fails if `proto/` has a group-version that the table does not list, which would be neither
/// compiled nor served.
fn check_every_proto_has_an_entry(root: &Path) -> Result<(), Box<dyn Error>> {
    for group in fs::read_dir(root)? {
        let group = group?;
        for version in fs::read_dir(group.path())? {
            let (group, version) = (group.file_name(), version?.file_name());
            if !TABLE
                .iter()
                .any(|entry| group == entry.0.name() && version == entry.1)
            {
                let (group, version) = (group.display(), version.display());
                return Err(format!(
                    "TABLE in src/table.rs has no entry for proto/{group}/{version}"
                )
                .into());
            }
        }
    }
    Ok(())
}

/// Compiles one group-version. Each is compiled by itself, because the groups share package names.
fn compile(
    root: &Path,
    group: Group,
    version: &str,
) -> Result<FileDescriptorProto, Box<dyn Error>> {
    let name = format!("{}/{version}/api.proto", group.name());
    let mut files = protox::Compiler::new([root])?
        .include_source_info(true)
        .open_file(&name)
        .map_err(|error| format!("{error:?}"))?
        .file_descriptor_set()
        .file;
    let file = files
        .pop()
        .ok_or_else(|| format!("{name}: the compiler returned no descriptor"))?;
    if !files.is_empty() || file.service.len() != 1 || file.package() != version {
        return Err(format!(
            "{name}: the file must have the package {version}, one service and no imports"
        )
        .into());
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
    let with_stubs = env::var_os("CARGO_FEATURE_STUBS").is_some();
    let stubs = tonic_prost_build::configure().generate_default_stubs(true);
    let stubs = stubs.build_client(with_stubs).build_server(with_stubs);
    config
        .out_dir(dir)
        .service_generator(Box::new(Stubs(stubs.service_generator())));
    config.btree_map(["."]); // responses list disks in the order of their numbers

    let module_path = format!("crate::{}::{version}", group.name());
    let (mut reexports, mut debugs, mut with_secrets) = (String::new(), String::new(), Vec::new());
    for message in &file.message_type {
        let ident = message.name().to_upper_camel_case();
        if let Some(path) =
            types.find_or_insert(group, &ident, message_shape(file, message), &module_path)
        {
            config.extern_path(format!(".{version}.{}", message.name()), &path);
            writeln!(reexports, "        pub use {path};")?;
        } else if message.field.iter().any(is_secret) {
            with_secrets.push(format!(".{version}.{}", message.name()));
            debugs += &redacted_debug(message, &ident)?;
        }
    }
    for enumeration in &file.enum_type {
        let ident = enumeration.name().to_upper_camel_case();
        if let Some(path) =
            types.find_or_insert(group, &ident, enum_shape(enumeration), &module_path)
        {
            config.extern_path(format!(".{version}.{}", enumeration.name()), &path);
            writeln!(reexports, "        pub use {path};")?;
        }
    }
    config.skip_debug(with_secrets);

    let mut file = file.clone();
    for field in file
        .message_type
        .iter_mut()
        .flat_map(|message| &mut message.field)
    {
        field.name = Some(snake_case(field.name()));
    }
    config.compile_fds(FileDescriptorSet { file: vec![file] })?;
    Ok(format!(
        "    /// The messages of the service on the pipe `csi-proxy-{group}-{version}`.
    {ALLOWED_LINTS}
    pub mod {version} {{
        include!(concat!(env!(\"OUT_DIR\"), \"/{group}/{version}/{version}.rs\"));
{reexports}{debugs}    }}\n",
        group = group.name()
    ))
}

/// An RPC of a version, with the Rust types of its messages.
struct Rpc {
    version: &'static str,
    name: String,
    /// The name that the newest version gives it.
    newest_name: String,
    request: String,
    response: String,
}

impl Rpc {
    /// Whether a call of the one can be sent as a call of the other, since all messages are the
    /// same.
    fn is_interchangeable_with(&self, other: &Self) -> bool {
        self.name == other.name && self.request == other.request && self.response == other.response
    }

    /// Returns the versions of `rpcs`, all of one group, in which the RPC has the same name and
    /// messages.
    fn versions<'r>(&self, rpcs: &'r [Self]) -> Vec<&'r str> {
        rpcs.iter()
            .filter(|other| self.is_interchangeable_with(other))
            .map(|other| other.version)
            .collect()
    }
}

/// Returns the RPCs of a compiled version.
fn rpcs_of(
    file: &FileDescriptorProto,
    group: Group,
    version: &'static str,
    types: &SharedTypes,
) -> Vec<Rpc> {
    let type_of = |name: &str| {
        let name = name.rsplit('.').next().unwrap_or(name);
        let message = file
            .message_type
            .iter()
            .find(|message| message.name() == name);
        types.path(
            group,
            name,
            &message_shape(file, message.expect("the compiler resolved the name")),
        )
    };
    let rpc = |(index, rpc): (i32, &MethodDescriptorProto)| Rpc {
        version,
        name: rpc.name().to_owned(),
        newest_name: newest_name(file, index).unwrap_or(rpc.name()).to_owned(),
        request: type_of(rpc.input_type()),
        response: type_of(rpc.output_type()),
    };
    (0..).zip(&file.service[0].method).map(rpc).collect()
}

/// Returns the name that later versions give an RPC, from the end of its comment:
/// `Named UnmountVolume since v1beta3.`
fn newest_name(file: &FileDescriptorProto, rpc: i32) -> Option<&str> {
    let path = [SERVICES, 0, METHODS, rpc];
    let locations = &file.source_code_info.as_ref()?.location;
    let comment = locations
        .iter()
        .find(|location| location.path == path)?
        .leading_comments();
    let (_, name) = comment.rsplit_once(" Named ")?;
    name.split_once(" since ").map(|(name, _)| name)
}

/// Returns the entry of `GROUP_VERSIONS` in `src/group_version.rs`.
fn entry(
    file: &FileDescriptorProto,
    group: Group,
    version: &str,
    own: &[&Rpc],
    of_group: &[Rpc],
) -> Result<String, Box<dyn Error>> {
    let service = &file.service[0];
    let mut rpcs = String::new();
    for rpc in own {
        let Rpc {
            name, newest_name, ..
        } = rpc;
        if !of_group
            .iter()
            .any(|other| other.name == *newest_name && other.newest_name == *newest_name)
        {
            return Err(format!(
                "{}/{version}: {name} is named {newest_name} in no version",
                group.name()
            )
            .into());
        }
        write!(
            rpcs,
            "Rpc {{ name: {name:?}, path: \"/{version}.{}/{name}\", \
             newest_name: {newest_name:?}, versions: &{:?} }}, ",
            service.name(),
            rpc.versions(of_group)
        )?;
    }
    Ok(format!(
        "GroupVersion {{
    group: Group::{group:?},
    version: {version:?},
    service: \"{version}.{service}\",
    rpcs: &[{rpcs}],
    pipe: \"csi-proxy-{name}-{version}\",
}},\n",
        name = group.name(),
        service = service.name(),
    ))
}

/// Returns the implementations of `Request` for the request types of a group. A type that requests
/// several RPCs, which differ in their responses, requests the preferred one.
fn request_impls(group: Group, rpcs: &[Rpc]) -> Result<String, Box<dyn Error>> {
    let mut impls = String::new();
    for (at, rpc) in rpcs.iter().enumerate() {
        let Rpc {
            name,
            request,
            response,
            ..
        } = rpc;
        if rpcs[..at].iter().any(|earlier| earlier.request == *request) {
            continue;
        }
        let versions = rpc.versions(rpcs);
        write!(
            impls,
            "    impl crate::Request for {request} {{
        type Response = {response};
        const GROUP: crate::Group = crate::Group::{group:?};
        const RPC: &'static str = {name:?};
        const VERSIONS: &'static [&'static str] = &{versions:?};
    }}\n"
        )?;
    }
    Ok(impls)
}

/// Returns a group-version with its RPCs, in the form in which `for_each_rpc` passes it on.
fn macro_row(group: Group, version: &str, rpcs: &[&Rpc]) -> Result<String, Box<dyn Error>> {
    let mut row = format!("            {}/{version} {{\n", group.name());
    let in_user = |path: &str| path.replacen("crate::", "$crate::", 1);
    for Rpc {
        name,
        request,
        response,
        ..
    } in rpcs
    {
        writeln!(
            row,
            "                {name}({}) -> {};",
            in_user(request),
            in_user(response)
        )?;
    }
    Ok(row + "            }\n")
}

fn for_each_rpc(rows: &str) -> String {
    format!(
        "/// Passes all RPCs to the macro `callback`, in the order of `GROUP_VERSIONS` and of its `rpcs`:
/// `disk/v1 {{ Rescan($crate::disk::v1::RescanRequest) -> $crate::disk::v1::RescanResponse; ... }} disk/v1beta3 {{ ... }} ...`.
#[macro_export]
macro_rules! for_each_rpc {{
    ($callback:ident) => {{
        $callback! {{
{rows}        }}
    }};
}}
"
    )
}

/// Returns the descriptors with the comments and without the other source locations.
fn with_comments_only(mut file: FileDescriptorProto) -> FileDescriptorSet {
    if let Some(info) = &mut file.source_code_info {
        info.location
            .retain(|location| location.leading_comments.is_some());
    }
    FileDescriptorSet { file: vec![file] }
}

/// The types generated so far: for each group and name, the path of the type of each shape.
#[derive(Default)]
struct SharedTypes(HashMap<(Group, String), HashMap<String, String>>);

impl SharedTypes {
    /// Returns the path of an earlier type of the same name and shape. If no such type exists,
    /// inserts this one.
    fn find_or_insert(
        &mut self,
        group: Group,
        ident: &str,
        shape: String,
        module_path: &str,
    ) -> Option<String> {
        let shapes = self.0.entry((group, ident.to_owned())).or_default();
        if let Some(path) = shapes.get(&shape) {
            return Some(path.clone());
        }
        shapes.insert(shape, format!("{module_path}::{ident}"));
        None
    }

    /// Returns the path of the type of a message whose group-version has been compiled.
    fn path(&self, group: Group, message: &str, shape: &str) -> String {
        self.0[&(group, message.to_upper_camel_case())][shape].clone()
    }
}

/// Returns everything that the Rust type of a message depends on, including the messages it
/// contains. The contract has no recursive messages.
fn message_shape(file: &FileDescriptorProto, message: &DescriptorProto) -> String {
    let fields = message.field.iter().map(|field| {
        let (name, number, kind, label) =
            (field.name(), field.number(), field.r#type(), field.label());
        format!(
            "{name} {number} {kind:?} {label:?} {:?} {}",
            field.oneof_index,
            contained_shape(file, message, field)
        )
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

/// Returns the shape of the message or enumeration that a field refers to; empty for a scalar.
fn contained_shape(
    file: &FileDescriptorProto,
    message: &DescriptorProto,
    field: &FieldDescriptorProto,
) -> String {
    let name = field.type_name().rsplit('.').next().unwrap_or_default();
    match field.r#type() {
        Type::Message => {
            let entry = message
                .nested_type
                .iter()
                .find(|nested| nested.name() == name);
            let contained =
                entry.or_else(|| file.message_type.iter().find(|other| other.name() == name));
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
    let values = enumeration
        .value
        .iter()
        .map(|value| format!("{} {}", value.name(), value.number()));
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
        // prost_build fails for a version without code: its messages may all be those of another
        // version.
        code.push('\n');
        self.0.generate(service, code);
    }

    fn finalize(&mut self, code: &mut String) {
        self.0.finalize(code);
    }
}
