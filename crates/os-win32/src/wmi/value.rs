//! WMI's objects and variants, to and from [`Value`].
//!
//! The crate `wmi` knows variants and arrays of them; what is here is what WMI's types mean to `os`, and passwords.

use std::slice;

use os::{Instance, OsError, OsResult, Secret, Value};
use windows::Win32::System::Variant::{VARIANT, VT_BSTR, VT_EMPTY, VT_NULL};
use windows::Win32::System::Wmi::{CIMTYPE_ENUMERATION, IWbemClassObject};
use windows::core::{BSTR, HSTRING};
use wmi::{IWbemClassWrapper, Variant, WMIError};
use zeroize::{Zeroize as _, Zeroizing};

use crate::error::from_hresult;

/// A copy of an object.
pub(super) fn instance(object: &IWbemClassObject) -> OsResult<Instance> {
    let object = IWbemClassWrapper::new(object.clone());
    let mut instance = Instance::default();
    for name in object.list_properties().map_err(wmi)? {
        // One property of a type that storage has no use for must not cost the whole object.
        let value = property(&object, &name).unwrap_or(Value::Null);
        instance.properties.insert(name, value);
    }
    // An embedded object, or a row of a query that left the key out, has no path.
    if let Ok(Value::Text(path)) = property(&object, "__RELPATH") {
        // Wine counts zeros behind it as part of it.
        path.trim_end_matches('\0').clone_into(&mut instance.path);
    }
    Ok(instance)
}

fn property(object: &IWbemClassWrapper, name: &str) -> OsResult<Value> {
    let (variant, cim_type) = get(&object.inner, name)?;
    // The crate would make an array without a value an empty one.
    if [VT_NULL, VT_EMPTY].contains(&variant.vt()) {
        return Ok(Value::Null);
    }
    let variant = Variant::from_variant(&variant).map_err(wmi)?;
    value(variant.convert_into_cim_type(cim_type).map_err(wmi)?)
}

/// The property as it is, and its type, which the variant alone does not say.
fn get(object: &IWbemClassObject, name: &str) -> OsResult<(VARIANT, CIMTYPE_ENUMERATION)> {
    let mut variant = VARIANT::default();
    let mut cim_type = 0;
    // SAFETY: the interface and the name are live; the variant, which is empty, and the type outlive the call.
    unsafe { object.Get(&HSTRING::from(name), 0, &raw mut variant, Some(&raw mut cim_type), None) }
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
        Variant::Array(values) => Value::Array(values.into_iter().map(value).collect::<OsResult<_>>()?),
        Variant::Object(object) => Value::Object(Box::new(instance(&object.inner)?)),
    })
}

/// Sets the argument `name` of a method's input, in the type its signature has.
pub(super) fn put(input: &IWbemClassObject, name: &str, argument: &Value) -> OsResult<()> {
    if let Value::Secret(secret) = argument {
        return put_secret(input, name, secret);
    }
    let (_, cim_type) = get(input, name)?;
    set(input, name, &encoded(argument, cim_type)?)
}

/// The argument as WMI wants a property of that type: `uint16` in 32 bits, `uint64` in decimal.
fn encoded(argument: &Value, cim_type: CIMTYPE_ENUMERATION) -> OsResult<VARIANT> {
    let variant = variant(argument)?.convert_into_cim_type(cim_type).map_err(wmi)?;
    VARIANT::try_from(variant).map_err(wmi)
}

fn variant(argument: &Value) -> OsResult<Variant> {
    Ok(match argument {
        Value::Null => Variant::Null,
        Value::Bool(value) => Variant::Bool(*value),
        Value::U32(number) => Variant::UI4(*number),
        Value::Text(text) => Variant::String(text.clone()),
        // No argument that csi-proxy gives is one of these; a secret has its own way in.
        Value::Array(_) | Value::Object(_) | Value::Secret(_) => return Err(OsError::NOT_SUPPORTED),
    })
}

/// Sets a string and overwrites each copy of it made on the way. WMI's own copies, in `input` and in what it sends
/// to the provider, are out of reach.
fn put_secret(input: &IWbemClassObject, name: &str, secret: &Secret) -> OsResult<()> {
    // No longer than its UTF-8, so it never moves and leaves no copy behind.
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
    // SAFETY: a BSTR is the part of the union that `vt` names.
    let text: &BSTR = unsafe { &variant.Anonymous.Anonymous.Anonymous.bstrVal };
    if text.is_empty() {
        return; // and may be null
    }
    // SAFETY: a BSTR is writable memory of its own allocation, as long as it says, and the variant, which owns it, is
    // borrowed for writing.
    let units = unsafe { slice::from_raw_parts_mut(text.as_ptr().cast_mut(), text.len()) };
    units.zeroize();
}

fn set(input: &IWbemClassObject, name: &str, variant: &VARIANT) -> OsResult<()> {
    // SAFETY: the interface, the name and the variant are live; type 0 keeps the property's own.
    unsafe { input.Put(&HSTRING::from(name), 0, variant, 0) }.map_err(|error| from_hresult(error.code().0))
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err hands it over")]
fn wmi(error: WMIError) -> OsError {
    match error {
        WMIError::HResultError { hres } => from_hresult(hres),
        _ => OsError::WBEM_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::{encoded, overwrite, value};
    use os::{OsError, Secret, Value};
    use windows::Win32::System::Variant::{VARIANT, VT_BOOL, VT_BSTR, VT_I4, VT_UI1};
    use windows::Win32::System::Wmi::{CIM_BOOLEAN, CIM_STRING, CIM_UINT8, CIM_UINT16, CIM_UINT32, CIM_UINT64};
    use windows::core::BSTR;
    use wmi::Variant;

    #[test]
    fn numbers_of_32_bits_keep_their_bits_and_longer_ones_are_text() {
        assert_eq!(value(Variant::I4(-1)), Ok(Value::U32(u32::MAX)));
        assert_eq!(value(Variant::UI2(7)), Ok(Value::U32(7)));
        assert_eq!(value(Variant::UI8(u64::MAX)), Ok(Value::Text("18446744073709551615".into())));
        let array = Variant::Array(vec![Variant::UI2(1), Variant::UI2(2)]);
        assert_eq!(value(array), Ok(Value::Array(vec![Value::U32(1), Value::U32(2)])));
    }

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    #[test]
    fn an_argument_has_the_form_that_its_type_wants() {
        for (argument, cim_type, form) in [
            (Value::Bool(true), CIM_BOOLEAN, VT_BOOL),
            (Value::Bool(false), CIM_BOOLEAN, VT_BOOL),
            (Value::U32(255), CIM_UINT8, VT_UI1),
            (Value::U32(65_535), CIM_UINT16, VT_I4),
            (Value::U32(u32::MAX), CIM_UINT32, VT_I4),
            (text("18446744073709551615"), CIM_UINT64, VT_BSTR),
            (text("Größe 🦀"), CIM_STRING, VT_BSTR),
        ] {
            let variant = encoded(&argument, cim_type).unwrap();
            assert_eq!(variant.vt(), form, "{argument:?}");
            let back = Variant::from_variant(&variant).unwrap().convert_into_cim_type(cim_type).unwrap();
            assert_eq!(value(back), Ok(argument));
        }
    }

    #[test]
    fn what_no_method_takes_is_refused() {
        for argument in
            [Value::Object(Box::default()), Value::Array(Vec::new()), Value::Secret(Secret::new("x".into()))]
        {
            assert_eq!(encoded(&argument, CIM_STRING).err(), Some(OsError::NOT_SUPPORTED));
        }
        assert!(encoded(&text("many"), CIM_UINT64).is_err());
        assert!(encoded(&Value::Bool(true), CIM_UINT32).is_err());
    }

    #[test]
    fn a_secret_is_overwritten_where_it_lies() {
        let mut variant = VARIANT::from(BSTR::from("hunter2"));
        overwrite(&mut variant);
        assert_eq!(Variant::from_variant(&variant).unwrap(), Variant::String("\0".repeat(7)));
    }
}
