//! Reads and writes bytes as hexadecimal text. The module is also for `#[serde(with)]`.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let pairs = digits?;
    let bytes = pairs
        .chunks(2)
        .map(|pair| u8::try_from(pair[0] << 4 | pair.get(1)?).ok());
    bytes.collect()
}

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&encode(bytes))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    decode(&text).ok_or_else(|| {
        D::Error::custom(format!(
            "not an even number of hexadecimal digits: {text:?}"
        ))
    })
}
