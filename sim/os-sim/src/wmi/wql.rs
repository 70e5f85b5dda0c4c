//! WQL: the part of the language that csi-proxy uses.
//!
//! It has two forms: `SELECT a, b | * FROM Class [WHERE a = literal AND b <> literal ...]`, and
//! `ASSOCIATORS OF {path} [WHERE AssocClass = A ResultClass = B]`. Any other query is an error and
//! not an empty result, because a query that works here must work on Windows. An unknown property
//! and a literal of the wrong type are errors too.

mod lexer;
mod object_path;
mod schema;

use os::{Instance, Namespace, OsError, OsResult, Value};

use lexer::{Token, tokens};
pub(crate) use object_path::ObjectPath;
use schema::{Class, Type};

/// A parsed query.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Query {
    /// `SELECT`.
    Select(Select),
    /// `ASSOCIATORS OF`.
    Associators(Associators),
}

/// The objects of a class.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Select {
    /// The class, spelled as in the schema.
    pub class: &'static str,
    /// The requested properties, spelled as in the schema; `None` for all.
    properties: Option<Vec<&'static str>>,
    /// The conditions, all of which an object must meet.
    conditions: Vec<Condition>,
}

/// The objects associated with one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Associators {
    /// The object.
    pub object: ObjectPath,
    /// Only objects of this association.
    pub association: Option<&'static str>,
    /// Only objects of this class.
    pub result: Option<&'static str>,
}

/// A comparison of a property with a literal.
#[derive(Clone, Debug, PartialEq)]
struct Condition {
    property: &'static str,
    /// Whether the property must equal the literal, or must differ from it.
    is_equal: bool,
    literal: Literal,
}

#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Bool(bool),
    Number(i128),
    Text(String),
}

impl Query {
    /// Parses `text`, a query in `namespace`.
    ///
    /// Errors: `WBEM_INVALID_CLASS` for a class that the namespace does not have, otherwise
    /// `WBEM_INVALID_QUERY`.
    pub(crate) fn parse(namespace: Namespace, text: &str) -> OsResult<Self> {
        let tokens = tokens(text)?;
        let mut parser = Parser {
            namespace,
            rest: &tokens,
        };
        let query = if parser.take("SELECT") {
            Self::Select(parser.select()?)
        } else {
            parser.expect("ASSOCIATORS")?;
            parser.expect("OF")?;
            Self::Associators(parser.associators()?)
        };
        if parser.rest.is_empty() {
            Ok(query)
        } else {
            Err(OsError::WBEM_INVALID_QUERY)
        }
    }
}

impl Select {
    /// Returns the instances that the query selects of `rows`, all instances of the class, with the
    /// properties that it selects. A projection without the key has no path.
    pub(crate) fn evaluate(&self, rows: Vec<Instance>) -> Vec<Instance> {
        let is_selected = |row: &Instance| {
            self.conditions
                .iter()
                .all(|condition| condition.holds(row, self.class))
        };
        rows.into_iter()
            .filter(is_selected)
            .map(|row| self.project(row))
            .collect()
    }

    fn project(&self, row: Instance) -> Instance {
        let Some(properties) = &self.properties else {
            return row;
        };
        let project = |name: &&'static str| ((*name).to_owned(), property(&row, self.class, name));
        let projected = properties.iter().map(project).collect();
        // Without its key an object has no path.
        let keys = row
            .path
            .parse::<ObjectPath>()
            .map(|path| path.keys)
            .unwrap_or_default();
        let is_selected = |key: &str| properties.iter().any(|name| name.eq_ignore_ascii_case(key));
        let has_path = is_selected("__RELPATH")
            || !keys.is_empty() && keys.iter().all(|(key, _)| is_selected(key));
        Instance {
            path: if has_path { row.path } else { String::new() },
            properties: projected,
        }
    }
}

impl Condition {
    fn holds(&self, row: &Instance, class: &str) -> bool {
        let is_equal = match (property(row, class, self.property), &self.literal) {
            (Value::Bool(value), Literal::Bool(with)) => value == *with,
            (Value::U32(value), Literal::Number(with)) => i128::from(value) == *with,
            (Value::Text(value), Literal::Number(with)) => value.parse() == Ok(*with),
            (Value::Text(value), Literal::Text(with)) => {
                value.to_lowercase() == with.to_lowercase()
            }
            // A comparison with NULL is never true, whether for equality or inequality.
            _ => return false,
        };
        is_equal == self.is_equal
    }
}

fn property(row: &Instance, class: &str, name: &str) -> Value {
    match name {
        "__CLASS" => Value::Text(class.to_owned()),
        "__PATH" | "__RELPATH" => Value::Text(row.path.clone()),
        _ => row.get(name).cloned().unwrap_or(Value::Null),
    }
}

struct Parser<'a> {
    namespace: Namespace,
    rest: &'a [Token],
}

impl Parser<'_> {
    fn select(&mut self) -> OsResult<Select> {
        let names = self.property_names()?;
        self.expect("FROM")?;
        let class = self.class()?;
        let known = |name: &String| {
            class
                .property(name)
                .map(|(known, _)| known)
                .ok_or(OsError::WBEM_INVALID_QUERY)
        };
        let properties = names
            .map(|names| names.iter().map(known).collect())
            .transpose()?;
        let mut conditions = Vec::new();
        if self.take("WHERE") {
            conditions.push(self.condition(class)?);
            while self.take("AND") {
                conditions.push(self.condition(class)?);
            }
        }
        Ok(Select {
            class: class.name,
            properties,
            conditions,
        })
    }

    fn property_names(&mut self) -> OsResult<Option<Vec<String>>> {
        if self.take("*") {
            return Ok(None);
        }
        let mut names = vec![self.word()?];
        while self.take(",") {
            names.push(self.word()?);
        }
        Ok(Some(names))
    }

    fn associators(&mut self) -> OsResult<Associators> {
        self.expect("{")?;
        let length = self
            .rest
            .iter()
            .position(|token| *token == Token::Sign("}"));
        let (path, after) = self
            .rest
            .split_at(length.ok_or(OsError::WBEM_INVALID_QUERY)?);
        let object = ObjectPath::from_tokens(path).ok_or(OsError::WBEM_INVALID_QUERY)?;
        Class::find(self.namespace, &object.class).ok_or(OsError::WBEM_INVALID_CLASS)?;
        self.rest = &after[1..];

        let mut query = Associators {
            object,
            association: None,
            result: None,
        };
        if !self.take("WHERE") {
            return Ok(query);
        }
        // There is no AND between the conditions.
        while !self.rest.is_empty() {
            let wanted = if self.take("AssocClass") {
                &mut query.association
            } else {
                self.expect("ResultClass")?;
                &mut query.result
            };
            self.expect("=")?;
            if wanted.replace(self.class()?.name).is_some() {
                return Err(OsError::WBEM_INVALID_QUERY);
            }
        }
        if query.association.is_none() && query.result.is_none() {
            return Err(OsError::WBEM_INVALID_QUERY);
        }
        Ok(query)
    }

    fn class(&mut self) -> OsResult<&'static Class> {
        let name = self.word()?;
        Class::find(self.namespace, &name).ok_or(OsError::WBEM_INVALID_CLASS)
    }

    fn condition(&mut self, class: &Class) -> OsResult<Condition> {
        let (property, kind) = class
            .property(&self.word()?)
            .ok_or(OsError::WBEM_INVALID_QUERY)?;
        let is_equal = match self.next()? {
            Token::Sign("=") => true,
            Token::Sign("<>") => false,
            _ => return Err(OsError::WBEM_INVALID_QUERY),
        };
        Ok(Condition {
            property,
            is_equal,
            literal: self.literal(kind)?,
        })
    }

    fn literal(&mut self, kind: Type) -> OsResult<Literal> {
        match (kind, self.next()?) {
            (Type::Bool, Token::Word(word)) if word.eq_ignore_ascii_case("TRUE") => {
                Ok(Literal::Bool(true))
            }
            (Type::Bool, Token::Word(word)) if word.eq_ignore_ascii_case("FALSE") => {
                Ok(Literal::Bool(false))
            }
            (Type::Number, Token::Number(number)) => Ok(Literal::Number(*number)),
            // A 64-bit integer may be quoted, because scripts see it as text.
            (Type::Number, Token::Text(text)) => text
                .parse()
                .map(Literal::Number)
                .map_err(|_| OsError::WBEM_INVALID_QUERY),
            (Type::Text, Token::Text(text)) => Ok(Literal::Text(text.clone())),
            _ => Err(OsError::WBEM_INVALID_QUERY),
        }
    }

    fn next(&mut self) -> OsResult<&Token> {
        let (first, rest) = self.rest.split_first().ok_or(OsError::WBEM_INVALID_QUERY)?;
        self.rest = rest;
        Ok(first)
    }

    fn word(&mut self) -> OsResult<String> {
        match self.next()? {
            Token::Word(word) => Ok(word.clone()),
            _ => Err(OsError::WBEM_INVALID_QUERY),
        }
    }

    /// Takes the next token if it is this word, in upper or lower case, or this sign.
    fn take(&mut self, token: &str) -> bool {
        let is_next = match self.rest.first() {
            Some(Token::Word(word)) => word.eq_ignore_ascii_case(token),
            Some(Token::Sign(sign)) => *sign == token,
            Some(Token::Number(_) | Token::Text(_)) | None => false,
        };
        if is_next {
            self.rest = &self.rest[1..];
        }
        is_next
    }

    fn expect(&mut self, token: &str) -> OsResult<()> {
        if self.take(token) {
            Ok(())
        } else {
            Err(OsError::WBEM_INVALID_QUERY)
        }
    }
}

#[cfg(test)]
mod tests;
