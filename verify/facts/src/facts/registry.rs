//! Volatile registry keys: `REG`.

use os::{OsError, OsResult, U16String};

use crate::fact::Fact;
use crate::node::TestNode;

pub(crate) const FACTS: &[Fact] = &[
    Fact::new("REG-01", |node| {
        let long = "x".repeat(2000);
        for text in ["found", "", &long] {
            set(node, text);
            assert_eq!(read(node, VALUE).as_deref(), Ok(text));
        }
        assert_eq!(delete(node), Ok(()));
    }),
    Fact::new("REG-02", |node| {
        set(node, "found");
        assert_eq!(read(node, VALUE).as_deref(), Ok("found"));
        node.restart();
        assert_eq!(read(node, VALUE), Err(OsError::FILE_NOT_FOUND));
    }),
    Fact::new("REG-03", |node| {
        set(node, "found");
        assert_eq!(delete(node), Ok(()));
        assert_eq!((read(node, VALUE), delete(node)), (Err(OsError::FILE_NOT_FOUND), Err(OsError::FILE_NOT_FOUND)));
        let missing = wide(r"SOFTWARE\csi-proxy-facts\missing");
        assert_eq!(node.os().registry_text(&missing, &wide(VALUE)), Err(OsError::FILE_NOT_FOUND));
        assert_eq!(node.os().delete_registry_value(&missing, &wide(VALUE)), Err(OsError::FILE_NOT_FOUND));
    }),
    Fact::new("REG-04", |node| {
        set(node, "found");
        assert_eq!(read(node, &VALUE.to_uppercase()).as_deref(), Ok("found"));
        assert_eq!(delete(node), Ok(()));
    }),
];

const KEY: &str = r"SOFTWARE\csi-proxy-facts\volatile";
const VALUE: &str = r"\\files\one";

fn wide(text: &str) -> U16String {
    U16String::from_str(text)
}

fn set(node: &dyn TestNode, text: &str) {
    node.os().set_volatile_text(&wide(KEY), &wide(VALUE), &wide(text)).expect("the text is set");
}

fn read(node: &dyn TestNode, value: &str) -> OsResult<String> {
    node.os().registry_text(&wide(KEY), &wide(value)).map(|text| text.to_string_lossy())
}

fn delete(node: &dyn TestNode) -> OsResult<()> {
    node.os().delete_registry_value(&wide(KEY), &wide(VALUE))
}
