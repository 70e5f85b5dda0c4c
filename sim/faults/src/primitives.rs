//! The primitives that a layer and a probe forward, each in one row: its signature, whether it
//! changes the node, and the object of a call, or for a handle the name of a call.
//!
//! A macro of the table is given the name of another macro, which makes a method from each row.
//! Primitives that return objects with calls of their own, such as `open`, are written by hand.

/// The primitives of an `Os`.
macro_rules! node_primitives {
    ($make:ident) => {
        $make! { dyn Os;
            attributes(path: &NtPath) -> u32, changes: false, object: path;
            device_interfaces(class: Uuid) -> Vec<U16String>, changes: false, object: class;
            reenumerate(interface: &U16Str) -> (), changes: true, object: interface.display();
            volumes() -> Vec<U16String>, changes: false, object: "";
            volume_paths(volume: &U16Str) -> Vec<U16String>,
                changes: false, object: volume.display();
            set_volume_mount_point(directory: &U16Str, volume: &U16Str) -> (),
                changes: true, object: directory.display();
            delete_volume_mount_point(directory: &U16Str) -> (),
                changes: true, object: directory.display();
            firmware_table(provider: u32, table: u32, output: &mut [u8]) -> usize,
                changes: false, object: format_args!("{provider:#x}/{table}");
            registry_text(key: &U16Str, value: &U16Str) -> U16String,
                changes: false, object: format_args!("{} {}", key.display(), value.display());
            set_volatile_text(key: &U16Str, value: &U16Str, text: &U16Str) -> (),
                changes: true, object: format_args!("{} {}", key.display(), value.display());
            delete_registry_value(key: &U16Str, value: &U16Str) -> (),
                changes: true, object: format_args!("{} {}", key.display(), value.display());
        }
    };
}

/// The primitives of a `Handle`.
macro_rules! handle_primitives {
    ($make:ident) => {
        $make! { dyn Handle;
            control(code: ControlCode, input: &[u8], output: &mut [u8]) -> usize,
                changes: !READ_ONLY_CODES.contains(&code), name: format!("control {code:?}");
            query(class: FileInfo, output: &mut [u8]) -> (),
                changes: false, name: format!("query {class:?}");
            set(class: FileInfo, input: &[u8]) -> (),
                changes: true, name: format!("set {class:?}");
            query_fs(class: FsInfo, output: &mut [u8]) -> usize,
                changes: false, name: format!("query_fs {class:?}");
            list(restart: bool, output: &mut [u8]) -> (), changes: false, name: "list";
            final_path(form: PathForm) -> U16String, changes: false, name: "final_path";
            security_descriptor() -> SecurityDescriptor,
                changes: false, name: "security_descriptor";
            set_access_list(entries: &[AccessEntry]) -> (),
                changes: true, name: "set_access_list";
            read(offset: u64, output: &mut [u8]) -> usize, changes: false, name: "read";
            flush() -> (), changes: true, name: "flush";
        }
    };
}

pub(crate) use {handle_primitives, node_primitives};
