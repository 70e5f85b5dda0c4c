//! Conversion between WMI's objects and variants and [`Value`].
//!
//! The crate `wmi` converts variants and their arrays. This module maps WMI's types to those of
//! `os`, and passes passwords.

use std::slice;

use os::{Instance, OsError, OsResult, Secret, Value};
use windows::Win32::System::Variant::{VARIANT, VT_BSTR, VT_EMPTY, VT_NULL};
use windows::Win32::System::Wmi::{CIMTYPE_ENUMERATION, IWbemClassObject};
use windows::core::{BSTR, HSTRING};
use wmi::{IWbemClassWrapper, Variant, WMIError};
use zeroize::{Zeroize as _, Zeroizing};

use crate::error::from_hresult;

/// Copies an object.
pub(super) fn instance(object: &IWbemClassObject) -> OsResult<Instance> {
    let object = IWbemClassWrapper::new(object.clone());
    let mut instance = Instance::default();
    for name in object.list_properties().map_err(wmi)? {
        // A property of a type that cannot be converted is null, so that the others can be read.
        let value = property(&object, &name).unwrap_or(Value::Null);
        instance.properties.insert(name, value);
    }
    // An embedded object and the result of a query without the key have no path.
    if let Ok(Value::Text(path)) = property(&object, "__RELPATH") {
        // Wine includes terminating zeros.
        path.trim_end_matches('\0').clone_into(&mut instance.path);
    }
    Ok(instance)
}

fn property(object: &IWbemClassWrapper, name: &str) -> OsResult<Value> {
    let (variant, cim_type) = get(&object.inner, name)?;
    // The crate `wmi` converts a null array to an empty one.
    if [VT_NULL, VT_EMPTY].contains(&variant.vt()) {
        return Ok(Value::Null);
    }
    let variant = Variant::from_variant(&variant).map_err(wmi)?;
    value(variant.convert_into_cim_type(cim_type).map_err(wmi)?)
}

/// Returns the variant of the property, and its CIM type, which the variant does not have.
fn get(object: &IWbemClassObject, name: &str) -> OsResult<(VARIANT, CIMTYPE_ENUMERATION)> {
    let mut variant = VARIANT::default();
    let mut cim_type = 0;
    // SAFETY: the interface and the name are valid; `variant`, which is empty, and `cim_type`
    // outlive the call.
    unsafe {
        object.Get(
            &HSTRING::from(name),
            0,
            &raw mut variant,
            Some(&raw mut cim_type),
            None,
        )
    }
    .map_err(|error| from_hresult(error.code().0))?;
    Ok((variant, CIMTYPE_ENUMERATION(cim_type)))
}

fn value(variant: Variant) -> OsResult<Value> {
    Ok(match variant {
        Variant::Empty | Variant::Null | Variant::Unknown(_) => Value::Null,
        Variant::Bool(value) => Value::Bool(value),
        Variant::UI1(number) => Value::U32(number.into()),
        Variant::UI2(number) => Value::U32(number.into()),
        Variant::UI4(number) => Value::U32(number),
        Variant::I1(number) => Value::U32(i32::from(number).cast_unsigned()),
        Variant::I2(number) => Value::U32(i32::from(number).cast_unsigned()),
        Variant::I4(number) => Value::U32(number.cast_unsigned()),
        Variant::UI8(number) => Value::Text(number.to_string()),
        Variant::I8(number) => Value::Text(number.to_string()),
        Variant::R4(number) => Value::Text(number.to_string()),
        Variant::R8(number) => Value::Text(number.to_string()),
        Variant::String(text) => Value::Text(text),
        Variant::Array(values) => {
            Value::Array(values.into_iter().map(value).collect::<OsResult<_>>()?)
        }
        Variant::Object(object) => Value::Object(Box::new(instance(&object.inner)?)),
    })
}

/// Sets the argument `name` of a method's input, converted to the type in the method's signature.
pub(super) fn put(input: &IWbemClassObject, name: &str, argument: &Value) -> OsResult<()> {
    if let Value::Secret(secret) = argument {
        return put_secret(input, name, secret);
    }
    let (_, cim_type) = get(input, name)?;
    set(input, name, &encode(argument, cim_type)?)
}

/// Returns the variant that WMI expects for a property of that type: `uint16` in 32 bits, `uint64`
/// in decimal.
fn encode(argument: &Value, cim_type: CIMTYPE_ENUMERATION) -> OsResult<VARIANT> {
    let variant = variant(argument)?
        .convert_into_cim_type(cim_type)
        .map_err(wmi)?;
    VARIANT::try_from(variant).map_err(wmi)
}

fn variant(argument: &Value) -> OsResult<Variant> {
    Ok(match argument {
        Value::Null => Variant::Null,
        Value::Bool(value) => Variant::Bool(*value),
        Value::U32(number) => Variant::UI4(*number),
        Value::Text(text) => Variant::String(text.clone()),
        // csi-proxy passes no such argument, and `put_secret` handles a secret.
        Value::Array(_) | Value::Object(_) | Value::Secret(_) => {
            return Err(OsError::NOT_SUPPORTED);
        }
    })
}

/// Sets a string and overwrites each copy that this function makes. The copies of WMI, in `input`
/// and in the message to the provider, cannot be overwritten.
fn put_secret(input: &IWbemClassObject, name: &str, secret: &Secret) -> OsResult<()> {
    // UTF-16 has no more units than UTF-8 has bytes, so the vector never grows and leaves no copy.
    let mut units = Zeroizing::new(Vec::with_capacity(secret.expose().len()));
    units.extend(secret.expose().encode_utf16());
    let mut variant = VARIANT::from(BSTR::from_wide(&units));
    let result = set(input, name, &variant);
    overwrite(&mut variant);
    result
}

/// Overwrites the string in a variant.
fn overwrite(variant: &mut VARIANT) {
    if variant.vt() != VT_BSTR {
        return;
    }
    // SAFETY: `vt` states that the union has a BSTR.
    let text: &BSTR = unsafe { &variant.Anonymous.Anonymous.Anonymous.bstrVal };
    if text.is_empty() {
        return; // the pointer may be null
    }
    // SAFETY: a BSTR is a separate allocation, with `len` units that can be written, and the
    // variant, which owns it, is borrowed mutably.
    let units = unsafe { slice::from_raw_parts_mut(text.as_ptr().cast_mut(), text.len()) };
    units.zeroize();
}

fn set(input: &IWbemClassObject, name: &str, variant: &VARIANT) -> OsResult<()> {
    // SAFETY: the interface, the name and the variant are valid; type 0 keeps the type of the
    // property.
    unsafe { input.Put(&HSTRING::from(name), 0, variant, 0) }
        .map_err(|error| from_hresult(error.code().0))
}

#[expect(clippy::needless_pass_by_value, reason = "map_err passes it by value")]
fn wmi(error: WMIError) -> OsError {
    match error {
        WMIError::HResultError { hres } => from_hresult(hres),
        _ => OsError::WBEM_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::{encode, overwrite, value};
    use os::{OsError, Secret, Value};
    use windows::Win32::System::Variant::{VARIANT, VT_BOOL, VT_BSTR, VT_I4, VT_UI1};
    use windows::Win32::System::Wmi::{
        CIM_BOOLEAN, CIM_STRING, CIM_UINT8, CIM_UINT16, CIM_UINT32, CIM_UINT64,
    };
    use windows::core::BSTR;
    use wmi::Variant;

    #[test]
    fn numbers_of_up_to_32_bits_keep_their_bits_and_longer_ones_are_text() {
        assert_eq!(value(Variant::I4(-1)), Ok(Value::U32(u32::MAX)));
        assert_eq!(value(Variant::UI2(7)), Ok(Value::U32(7)));
        assert_eq!(
            value(Variant::UI8(u64::MAX)),
            Ok(Value::Text("18446744073709551615".into()))
        );
        let array = Variant::Array(vec![Variant::UI2(1), Variant::UI2(2)]);
        assert_eq!(
            value(array),
            Ok(Value::Array(vec![Value::U32(1), Value::U32(2)]))
        );
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn an_argument_is_encoded_as_its_cim_type_requires() {
        for (argument, cim_type, form) in [
            (Value::Bool(true), CIM_BOOLEAN, VT_BOOL),
            (Value::Bool(false), CIM_BOOLEAN, VT_BOOL),
            (Value::U32(255), CIM_UINT8, VT_UI1),
            (Value::U32(65_535), CIM_UINT16, VT_I4),
            (Value::U32(u32::MAX), CIM_UINT32, VT_I4),
            (text("18446744073709551615"), CIM_UINT64, VT_BSTR),
            (text("Größe 🦀"), CIM_STRING, VT_BSTR),
        ] {
            let variant = encode(&argument, cim_type).unwrap();
            assert_eq!(variant.vt(), form, "{argument:?}");
            let back = Variant::from_variant(&variant)
                .unwrap()
                .convert_into_cim_type(cim_type)
                .unwrap();
            assert_eq!(value(back), Ok(argument));
        }
    }

    #[test]
    fn a_value_that_cannot_be_an_argument_is_refused() {
        for argument in [
            Value::Object(Box::default()),
            Value::Array(Vec::new()),
            Value::Secret(Secret::new("x".into())),
        ] {
            assert_eq!(
                encode(&argument, CIM_STRING).err(),
                Some(OsError::NOT_SUPPORTED)
            );
        }
        assert!(encode(&text("many"), CIM_UINT64).is_err());
        assert!(encode(&Value::Bool(true), CIM_UINT32).is_err());
    }

    #[test]
    fn a_secret_is_overwritten_in_place() {
        let mut variant = VARIANT::from(BSTR::from("hunter2"));
        overwrite(&mut variant);
        assert_eq!(
            Variant::from_variant(&variant).unwrap(),
            Variant::String("\0".repeat(7))
        );
    }
}
