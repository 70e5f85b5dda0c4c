//! The arguments and results of WMI method calls.

use os::{Instance, OsError, OsResult, Returned, Secret, Value};

use crate::wmi::wql::ObjectPath;

/// `WBEM_E_TYPE_MISMATCH`.
pub(crate) const TYPE_MISMATCH: OsError = OsError(0x8004_1005);
/// `WBEM_E_INVALID_METHOD_PARAMETERS`.
pub(crate) const INVALID_METHOD_PARAMETERS: OsError = OsError(0x8004_102f);

/// A method of a class.
pub(crate) struct Method {
    pub class: &'static str,
    pub name: &'static str,
    /// The names of its parameters, separated by spaces.
    parameters: &'static str,
}

pub(crate) const fn method(
    class: &'static str,
    name: &'static str,
    parameters: &'static str,
) -> Method {
    Method {
        class,
        name,
        parameters,
    }
}

impl Method {
    /// Returns the method `name` of the class of `object`, if it is among `methods`.
    pub(crate) fn find(
        methods: &'static [Self],
        object: &ObjectPath,
        name: &str,
    ) -> Option<&'static Self> {
        methods
            .iter()
            .find(|method| object.is_of(method.class) && method.name.eq_ignore_ascii_case(name))
    }

    /// Returns the arguments of a call. Fails if the method has no parameter for one of them.
    pub(crate) fn arguments<'a>(&self, given: &'a [(&'a str, Value)]) -> OsResult<Arguments<'a>> {
        let is_known = |name: &str| {
            self.parameters
                .split_whitespace()
                .any(|known| known.eq_ignore_ascii_case(name))
        };
        if given.iter().all(|(name, _)| is_known(name)) {
            Ok(Arguments(given))
        } else {
            Err(INVALID_METHOD_PARAMETERS)
        }
    }
}

/// The arguments of a method call. A null argument counts as left out.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a>(&'a [(&'a str, Value)]);

impl<'a> Arguments<'a> {
    /// Returns the `string` argument `name`.
    pub(crate) fn text(self, name: &str) -> OsResult<Option<&'a str>> {
        self.typed(name, |value| match value {
            Value::Text(text) => Some(text.as_str()),
            Value::Secret(secret) => Some(secret.expose()),
            _ => None,
        })
    }

    /// Returns the `string` argument `name` as a secret. The caller may have passed it as a secret
    /// or as plain text.
    pub(crate) fn secret(self, name: &str) -> OsResult<Option<Secret>> {
        Ok(self.text(name)?.map(|text| Secret::new(text.to_owned())))
    }

    /// Returns the `boolean` argument `name`.
    pub(crate) fn bool(self, name: &str) -> OsResult<Option<bool>> {
        self.typed(name, |value| {
            if let Value::Bool(value) = value {
                Some(*value)
            } else {
                None
            }
        })
    }

    /// Returns the integer argument `name` of at most 32 bits.
    pub(crate) fn u32(self, name: &str) -> OsResult<Option<u32>> {
        self.typed(name, |value| {
            if let Value::U32(number) = value {
                Some(*number)
            } else {
                None
            }
        })
    }

    /// Returns the 64-bit integer argument `name`, which WMI passes as text.
    pub(crate) fn u64(self, name: &str) -> OsResult<Option<u64>> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| TYPE_MISMATCH)
    }

    /// Returns the integer argument `name` of at most 16 bits.
    pub(crate) fn u16(self, name: &str) -> OsResult<Option<u16>> {
        self.u32(name)?
            .map(u16::try_from)
            .transpose()
            .map_err(|_| TYPE_MISMATCH)
    }

    /// Returns the value of an argument, `None` if it is missing or NULL, or an error if `convert`
    /// does not know its type.
    fn typed<T>(
        self,
        name: &str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> OsResult<Option<T>> {
        let given = self
            .0
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value);
        let value = given.filter(|value| **value != Value::Null);
        value
            .map(|value| convert(value).ok_or(TYPE_MISMATCH))
            .transpose()
    }
}

/// Returns a text as the value of a property.
pub(crate) fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

/// Returns an object with these properties.
pub(crate) fn instance<const N: usize>(
    path: &ObjectPath,
    properties: [(&str, Value); N],
) -> Instance {
    let properties = properties
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    Instance {
        path: path.to_string(),
        properties,
    }
}

/// Returns the result of a method without output parameters.
pub(crate) fn returned(code: u32) -> Returned {
    Returned {
        code,
        ..Returned::default()
    }
}

/// Returns the result of a method that returns a new object as the output parameter `name`. An
/// embedded object has no path.
pub(crate) fn created(name: &str, object: Instance) -> Returned {
    let object = Instance {
        path: String::new(),
        ..object
    };
    let properties = [(name.to_owned(), Value::Object(Box::new(object)))].into();
    Returned {
        code: 0,
        out: Instance {
            path: String::new(),
            properties,
        },
    }
}

#[cfg(test)]
mod tests {
    use os::Value;

    use super::{INVALID_METHOD_PARAMETERS, TYPE_MISMATCH, method};

    #[test]
    fn an_argument_needs_the_name_and_type_of_a_parameter() {
        let arguments = [
            ("force", Value::Bool(true)),
            ("Port", Value::U32(70_000)),
            ("Path", Value::Null),
        ];
        let arguments = method("", "", "Force Port Path")
            .arguments(&arguments)
            .expect("known names");
        assert_eq!(arguments.bool("Force"), Ok(Some(true)));
        assert_eq!(arguments.text("Force"), Err(TYPE_MISMATCH));
        assert_eq!(arguments.u16("Port"), Err(TYPE_MISMATCH));
        assert_eq!(arguments.text("Path"), Ok(None));
        assert_eq!(
            method("", "", "y").arguments(&[("x", Value::Null)]).err(),
            Some(INVALID_METHOD_PARAMETERS)
        );
    }
}
