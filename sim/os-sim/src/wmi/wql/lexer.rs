//! The tokens of WQL and of object paths: words, numbers, quoted texts and signs.

use os::{OsError, OsResult};

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A keyword or an identifier.
    Word(String),
    /// An integer.
    Number(i128),
    /// A quoted text without quotes and escapes.
    Text(String),
    /// A sign such as `=` or `<>`. `!=` becomes `<>`.
    Sign(&'static str),
}

const SIGNS: [&str; 8] = ["<>", "!=", "=", "{", "}", ",", "*", "."];

/// Splits `text` into tokens.
///
/// Only a backslash or a quote can be escaped. A path with unescaped backslashes fails, as it does
/// on Windows.
pub(super) fn tokens(text: &str) -> OsResult<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '\'' | '"' => quoted(rest, first)?,
            '0'..='9' | '-' => number(rest)?,
            'a'..='z' | 'A'..='Z' | '_' => word(rest),
            _ => sign(rest)?,
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

fn quoted(text: &str, quote: char) -> OsResult<(Token, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some((_, escaped @ ('\\' | '\'' | '"'))) => value.push(escaped),
                _ => return Err(OsError::WBEM_INVALID_QUERY),
            },
            _ if character == quote => return Ok((Token::Text(value), &text[at + 1..])),
            _ => value.push(character),
        }
    }
    Err(OsError::WBEM_INVALID_QUERY)
}

fn number(text: &str) -> OsResult<(Token, &str)> {
    let end = text[1..]
        .find(|c: char| !c.is_ascii_digit())
        .map_or(text.len(), |end| end + 1);
    let number = text[..end]
        .parse()
        .map_err(|_| OsError::WBEM_INVALID_QUERY)?;
    Ok((Token::Number(number), &text[end..]))
}

fn word(text: &str) -> (Token, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    (Token::Word(text[..end].to_owned()), &text[end..])
}

fn sign(text: &str) -> OsResult<(Token, &str)> {
    let sign = SIGNS
        .into_iter()
        .find(|sign| text.starts_with(sign))
        .ok_or(OsError::WBEM_INVALID_QUERY)?;
    let token = Token::Sign(if sign == "!=" { "<>" } else { sign });
    Ok((token, &text[sign.len()..]))
}
