//! The arguments and results of WMI method calls.

use os::{Instance, OsError, OsResult, Returned, Secret, Value};

use crate::wmi::wql::ObjectPath;

/// `WBEM_E_TYPE_MISMATCH`.
pub(crate) const TYPE_MISMATCH: OsError = OsError(0x8004_1005);
/// `WBEM_E_INVALID_METHOD_PARAMETERS`.
pub(crate) const INVALID_METHOD_PARAMETERS: OsError = OsError(0x8004_102f);

/// The arguments of a method call. One that is left out is null.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a>(&'a [(&'a str, Value)]);

impl<'a> Arguments<'a> {
    /// Checks that the method has a parameter for each argument; its parameters are `known`.
    pub(crate) fn new(arguments: &'a [(&'a str, Value)], known: &[&str]) -> OsResult<Self> {
        let is_known = |name: &str| known.iter().any(|known| known.eq_ignore_ascii_case(name));
        let all_known = arguments.iter().all(|(name, _)| is_known(name));
        if all_known { Ok(Self(arguments)) } else { Err(INVALID_METHOD_PARAMETERS) }
    }

    /// Returns the `string` argument `name`.
    pub(crate) fn text(self, name: &str) -> OsResult<Option<&'a str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(Value::Secret(secret)) => Ok(Some(secret.expose())),
            Some(_) => Err(TYPE_MISMATCH),
        }
    }

    /// Returns the `string` argument `name` as a secret, whether the caller passed it as one or as plain text.
    pub(crate) fn secret(self, name: &str) -> OsResult<Option<Secret>> {
        Ok(self.text(name)?.map(|text| Secret::new(text.to_owned())))
    }

    /// Returns the `boolean` argument `name`.
    pub(crate) fn bool(self, name: &str) -> OsResult<Option<bool>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(_) => Err(TYPE_MISMATCH),
        }
    }

    /// Returns the integer argument `name` of at most 32 bits.
    pub(crate) fn u32(self, name: &str) -> OsResult<Option<u32>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::U32(number)) => Ok(Some(*number)),
            Some(_) => Err(TYPE_MISMATCH),
        }
    }

    /// Returns the 64-bit integer argument `name`, which WMI passes as text.
    pub(crate) fn u64(self, name: &str) -> OsResult<Option<u64>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| TYPE_MISMATCH)
    }

    /// Returns the integer argument `name` of at most 16 bits.
    pub(crate) fn u16(self, name: &str) -> OsResult<Option<u16>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::U32(number)) => u16::try_from(*number).map(Some).map_err(|_| TYPE_MISMATCH),
            Some(_) => Err(TYPE_MISMATCH),
        }
    }

    fn get(self, name: &str) -> Option<&'a Value> {
        let (_, value) = self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        (*value != Value::Null).then_some(value)
    }
}

/// Returns a text as the value of a property.
pub(crate) fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// Returns an object with these properties.
pub(crate) fn instance<const N: usize>(path: &ObjectPath, properties: [(&str, Value); N]) -> Instance {
    let properties = properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Instance { path: path.to_string(), properties }
}

/// Returns the result of a method without output parameters.
pub(crate) fn returned(code: u32) -> Returned {
    Returned { code, ..Returned::default() }
}

/// Returns the result of a method that created an object and returns it as the output parameter `name`.
pub(crate) fn created(name: &str, object: Instance) -> Returned {
    let properties = [(name.to_owned(), Value::Object(Box::new(object)))].into();
    Returned { code: 0, out: Instance { path: String::new(), properties } }
}

#[cfg(test)]
mod tests {
    use os::Value;

    use super::{Arguments, INVALID_METHOD_PARAMETERS, TYPE_MISMATCH};

    #[test]
    fn an_argument_needs_the_name_and_type_of_a_parameter() {
        let arguments = [("force", Value::Bool(true)), ("Port", Value::U32(70_000)), ("Path", Value::Null)];
        let arguments = Arguments::new(&arguments, &["Force", "Port", "Path"]).expect("known names");
        assert_eq!(arguments.bool("Force"), Ok(Some(true)));
        assert_eq!(arguments.text("Force"), Err(TYPE_MISMATCH));
        assert_eq!(arguments.u16("Port"), Err(TYPE_MISMATCH));
        assert_eq!(arguments.text("Path"), Ok(None));
        assert_eq!(Arguments::new(&[("x", Value::Null)], &["y"]).err(), Some(INVALID_METHOD_PARAMETERS));
    }
}
