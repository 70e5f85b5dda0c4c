//! Which queries are accepted and what they return.

use std::collections::BTreeMap;

use os::{Instance, Namespace, OsError, Value};

use super::{Query, Select};

fn disk(number: u32, size: u64, gpt: Option<&str>, offline: bool) -> Instance {
    let gpt = gpt.map_or(Value::Null, |text| Value::Text(text.to_owned()));
    let properties = [
        ("DiskNumber", Value::U32(number)),
        ("Size", Value::Text(size.to_string())),
        ("GptType", gpt),
        ("IsOffline", Value::Bool(offline)),
    ];
    let properties: BTreeMap<_, _> = properties
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Instance {
        path: format!("MSFT_Partition.ObjectId=\"{number}\""),
        properties,
    }
}

fn select(query: &str) -> Select {
    let Ok(Query::Select(select)) = Query::parse(Namespace::Storage, query) else {
        panic!("{query} was rejected")
    };
    select
}

fn numbers(condition: &str) -> Vec<u32> {
    let query = select(&format!("SELECT * FROM MSFT_Partition WHERE {condition}"));
    let rows = vec![
        disk(1, 10, Some("{A}"), false),
        disk(2, 9_000_000_000, Some(r"{b\c'd}"), true),
        disk(3, 7, None, false),
    ];
    query
        .evaluate(rows)
        .iter()
        .filter_map(|row| row.u32("DiskNumber"))
        .collect()
}

fn refusal(namespace: Namespace, query: &str) -> Option<OsError> {
    Query::parse(namespace, query).err()
}

#[test]
fn conditions_select_instances() {
    for (conditions, selected) in [
        ("DiskNumber = 2", &[2][..]),
        ("disknumber <> 2 and isoffline = false", &[1, 3]),
        ("DiskNumber != 2 AND IsOffline = TRUE", &[]),
        ("Size = 10", &[1]),
        ("Size = '010'", &[1]),
        // Text is compared without case, after unescaping.
        ("GptType = '{a}'", &[1]),
        (r#"GptType = "{B\\c\'d}""#, &[2]),
        // NULL neither equals a value nor differs from it.
        ("GptType <> '{A}'", &[2]),
    ] {
        assert_eq!(numbers(conditions), selected, "{conditions}");
    }
}

#[test]
fn a_projection_has_the_selected_properties_and_with_the_key_the_path() {
    let query = select("select size, UniqueId, __CLASS from msft_partition");
    let rows = query.evaluate(vec![disk(1, 10, None, false)]);
    let names: Vec<_> = rows[0].properties.keys().map(String::as_str).collect();
    assert_eq!(names, ["Size", "UniqueId", "__CLASS"]);
    assert_eq!(rows[0].properties["UniqueId"], Value::Null);
    assert_eq!(rows[0].text("__class"), Some("MSFT_Partition"));
    assert_eq!(rows[0].path, "");
    let query = select("SELECT Size, ObjectId FROM MSFT_Partition");
    assert_eq!(
        query.evaluate(vec![disk(1, 10, None, false)])[0].path,
        "MSFT_Partition.ObjectId=\"1\""
    );
}

#[test]
fn an_associators_query_has_an_object_and_classes() {
    let text = r#"ASSOCIATORS OF {MSFT_Disk.ObjectId="{1}\\\\H\\x:\"y\""} WHERE AssocClass = MSFT_PartitionToVolume ResultClass=msft_partition"#;
    let Ok(Query::Associators(query)) = Query::parse(Namespace::Storage, text) else {
        panic!("the query was rejected")
    };
    assert_eq!(query.object.text("ObjectId"), Some(r#"{1}\\H\x:"y""#));
    assert_eq!(query.association, Some("MSFT_PartitionToVolume"));
    assert_eq!(query.result, Some("MSFT_Partition"));
}

#[test]
fn an_unknown_query_is_an_error_and_not_an_empty_result() {
    for text in [
        "",
        "SELECT",
        "SELECT * FROM MSFT_Disk x",
        "SELECT *, Number FROM MSFT_Disk",
        "SELECT Nmber FROM MSFT_Disk",
        "SELECT * FROM MSFT_Disk WHERE",
        "SELECT * FROM MSFT_Disk WHERE Nmber = 1",
        "SELECT * FROM MSFT_Disk WHERE Number",
        "SELECT * FROM MSFT_Disk WHERE Number = one",
        "SELECT * FROM MSFT_Disk WHERE Number = 'one'",
        "SELECT * FROM MSFT_Disk WHERE IsOffline = 1",
        "SELECT * FROM MSFT_Disk WHERE OperationalStatus = 1",
        "SELECT * FROM MSFT_Disk WHERE Path LIKE 'a%'",
        "SELECT * FROM MSFT_Disk WHERE Number = 1 OR Number = 2",
        "SELECT * FROM MSFT_Disk WHERE (Number = 1)",
        "SELECT * FROM MSFT_Disk WHERE Number > 1",
        "SELECT * FROM MSFT_Disk WHERE Guid IS NULL",
        r"SELECT * FROM MSFT_Disk WHERE Path = 'C:\dir'",
        "SELECT * FROM MSFT_Disk WHERE Path = 'open",
        "ASSOCIATORS OF {MSFT_Disk.ObjectId=\"1\"",
        "ASSOCIATORS OF {MSFT_Disk.ObjectId=\"1\"} WHERE",
        "ASSOCIATORS OF {MSFT_Disk.ObjectId=\"1\"} WHERE ResultClass = MSFT_Volume AND AssocClass \
         = MSFT_PartitionToVolume",
        "REFERENCES OF {MSFT_Disk.ObjectId=\"1\"}",
    ] {
        assert_eq!(
            refusal(Namespace::Storage, text),
            Some(OsError::WBEM_INVALID_QUERY),
            "{text}"
        );
    }
}

#[test]
fn a_class_exists_only_in_its_namespace() {
    for (namespace, class) in [
        (Namespace::Storage, "MSFT_Dsk"),
        (Namespace::CimV2, "MSFT_Disk"),
        (Namespace::Storage, "MSFT_SmbGlobalMapping"),
    ] {
        let query = format!("SELECT * FROM {class}");
        assert_eq!(
            refusal(namespace, &query),
            Some(OsError::WBEM_INVALID_CLASS),
            "{query}"
        );
    }
    assert_eq!(
        refusal(
            Namespace::Smb,
            r"SELECT RequirePrivacy FROM MSFT_SmbGlobalMapping WHERE RemotePath = '\\\\h\\s'"
        ),
        None
    );
}
