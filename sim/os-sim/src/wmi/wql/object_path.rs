//! Object paths: `MSFT_Disk.ObjectId="..."`.

use std::fmt;
use std::str::FromStr;

use os::OsError;

use super::lexer::{Token, tokens};

/// The path of an object relative to its namespace (`__RELPATH`), or of a class if it has no keys.
/// All keys of the node's classes are texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectPath {
    /// The class.
    pub class: String,
    /// The keys and their values in the order of the path.
    pub keys: Vec<(String, String)>,
}

impl ObjectPath {
    /// `WBEM_E_INVALID_OBJECT_PATH`: the path cannot be parsed.
    pub const INVALID: OsError = OsError(0x8004_103a);

    /// Returns the path of a class.
    pub fn class(class: &str) -> Self {
        Self {
            class: class.to_owned(),
            keys: Vec::new(),
        }
    }

    /// Returns the path of an object whose only key is a text.
    pub fn object(class: &str, key: &str, value: &str) -> Self {
        Self {
            class: class.to_owned(),
            keys: vec![(key.to_owned(), value.to_owned())],
        }
    }

    /// Returns whether this is the path of `class` or of an object of it.
    pub fn is_of(&self, class: &str) -> bool {
        self.class.eq_ignore_ascii_case(class)
    }

    /// Returns the text of the key `name`.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.keys
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, text)| text.as_str())
    }

    pub(super) fn from_tokens(tokens: &[Token]) -> Option<Self> {
        let [Token::Word(class), rest @ ..] = tokens else {
            return None;
        };
        let mut path = Self::class(class);
        let mut before = Token::Sign(".");
        let mut rest = rest;
        while let [
            separator,
            Token::Word(key),
            Token::Sign("="),
            Token::Text(text),
            after @ ..,
        ] = rest
        {
            if *separator != before {
                return None;
            }
            path.keys.push((key.clone(), text.clone()));
            before = Token::Sign(",");
            rest = after;
        }
        rest.is_empty().then_some(path)
    }
}

impl FromStr for ObjectPath {
    type Err = OsError;

    fn from_str(text: &str) -> Result<Self, OsError> {
        let tokens = tokens(text).map_err(|_| Self::INVALID)?;
        Self::from_tokens(&tokens).ok_or(Self::INVALID)
    }
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.class)?;
        for (position, (key, text)) in self.keys.iter().enumerate() {
            let separator = if position == 0 { '.' } else { ',' };
            let escaped = text.replace('\\', r"\\").replace('"', "\\\"");
            write!(f, "{separator}{key}=\"{escaped}\"")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ObjectPath;

    #[test]
    fn a_path_is_read_back_as_it_was_written() {
        for value in [
            "plain",
            r"{1}\\HOST\root/Microsoft:WSP",
            r#"quote " and ' and \"#,
            "",
            "a,b=c.d}{",
        ] {
            let path = ObjectPath::object("MSFT_Disk", "ObjectId", value);
            let read: ObjectPath = path.to_string().parse().expect("the path is valid");
            assert_eq!(read, path);
            assert_eq!(read.text("objectid"), Some(value));
        }
    }

    #[test]
    fn a_path_may_have_no_keys_or_several() {
        assert_eq!(
            "MSFT_iSCSITarget".parse(),
            Ok(ObjectPath::class("MSFT_iSCSITarget"))
        );
        let path: ObjectPath = r#"MSFT_iSCSITargetPortal.Address="10.0.0.1",Port="3260""#
            .parse()
            .expect("two keys");
        let keys = [("Address", "10.0.0.1"), ("Port", "3260")];
        assert_eq!(
            path.keys,
            keys.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn an_invalid_path_is_rejected() {
        for text in [
            "",
            "A.",
            "A.b",
            "A.b=",
            r#"A,b="c""#,
            r#"A.b="c".d="e""#,
            r#"A.b="c"#,
            r#"A.b="\c""#,
            "A.b=c",
            "A.b=1",
        ] {
            assert_eq!(
                text.parse::<ObjectPath>(),
                Err(ObjectPath::INVALID),
                "{text}"
            );
        }
    }
}
