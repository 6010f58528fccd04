//! JSON text that is kept verbatim: offsets of sources, whose form only connectors know.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value as text. Numbers of any size stay as they are. Its serde encoding is for JSON only, and so is a
/// manifest's.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Box<str>);

impl Json {
    /// Checks that a text is a JSON value.
    ///
    /// # Errors
    ///
    /// The error, and its position.
    pub fn new(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        let value = RawValue::from_string(text.into())?;
        Ok(Json(value.get().into()))
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let value = RawValue::from_string(self.0.to_string()).map_err(serde::ser::Error::custom)?;
        value.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(from)?;
        Ok(Json(value.get().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_as_it_is() {
        let text = r#"{"partition": 3, "offset": 123456789012345678901234567890, "x": [1.10]}"#;
        let json = Json::new(text).unwrap();
        let there = serde_json::to_string(&json).unwrap();
        assert_eq!(there, text);
        assert_eq!(serde_json::from_str::<Json>(&there).unwrap(), json);
        assert!(Json::new("{").is_err());
        assert!(Json::new("1 2").is_err());
    }
}
