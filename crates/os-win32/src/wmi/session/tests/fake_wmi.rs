//! A fake of WMI: the COM objects that a session calls.
#![allow(non_snake_case, reason = "the names of COM")]
#![allow(
    clippy::inline_always,
    clippy::ref_as_ptr,
    reason = "code that `implement` generates"
)]

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, Once};
use std::thread;
use std::time::Duration;

use os::lock;
use windows::Win32::Foundation::E_NOTIMPL;
use windows::Win32::System::Com::{
    CLSCTX_INPROC_SERVER, CoIncrementMTAUsage, CoRegisterClassObject, CoRevokeClassObject,
    EOLE_AUTHENTICATION_CAPABILITIES, IClassFactory, IClassFactory_Impl, IClientSecurity,
    IClientSecurity_Impl, IErrorInfo, IErrorInfo_Impl, REGCLS_MULTIPLEUSE, RPC_C_AUTHN_LEVEL,
    RPC_C_IMP_LEVEL, SAFEARRAY, SetErrorInfo,
};
use windows::Win32::System::Ole::{SafeArrayCreateVector, SafeArrayPutElement};
use windows::Win32::System::Variant::{VARIANT, VT_BOOL, VT_BSTR, VT_I4, VT_NULL};
use windows::Win32::System::Wmi::{
    CIM_BOOLEAN, CIM_FLAG_ARRAY, CIM_OBJECT, CIM_STRING, CIM_UINT16, CIM_UINT32, CIM_UINT64,
    CIMTYPE_ENUMERATION, IEnumWbemClassObject, IEnumWbemClassObject_Impl, IWbemCallResult,
    IWbemClassObject, IWbemClassObject_Impl, IWbemContext, IWbemLocator, IWbemLocator_Impl,
    IWbemObjectSink, IWbemQualifierSet, IWbemServices, IWbemServices_Impl, WBEM_COMPARISON_FLAG,
    WBEM_CONDITION_FLAG_TYPE, WBEM_E_NOT_FOUND, WBEM_GENERIC_FLAG_TYPE, WBEM_S_FALSE,
    WBEM_S_NO_ERROR, WBEM_S_TIMEDOUT, WbemLocator,
};
use windows::core::{
    BOOL, BSTR, GUID, HRESULT, IUnknown, IUnknownImpl as _, Interface as _, OutRef, PCWSTR, Ref,
    Result, implement,
};

use super::super::Apartment;

/// The behaviour of the fake, and the calls that it has recorded.
pub(super) struct State {
    /// The number of objects that a query returns.
    pub(super) results: usize,
    /// Whether queries return no results, without an end.
    pub(super) hangs: bool,
    /// The error that methods return.
    pub(super) method_error: Option<HRESULT>,
    /// What methods post before they return the error: `error_Type` and `error_Code`.
    pub(super) posted: Option<(&'static str, u32)>,
    /// The calls of `SetBlanket`: the object, whether the pointer is the one that is called, and
    /// the two levels.
    pub(super) blankets: Vec<(&'static str, (bool, u32, u32))>,
    /// The timeout of each call of `Next`, in milliseconds.
    pub(super) timeouts: Vec<i32>,
    /// The arguments that were set: name, variant type and value.
    pub(super) arguments: Vec<(String, String, String)>,
    /// The methods that were called: object path and name.
    pub(super) called: Vec<(String, String)>,
}

type SharedState = Arc<Mutex<State>>;

/// The registration of the fake in place of WMI, until dropped. Only one exists at a time, because
/// it applies to the whole process.
pub(super) struct FakeWmi {
    state: SharedState,
    registration: u32,
    _apartment: Apartment,
    _turn: MutexGuard<'static, ()>,
}

impl FakeWmi {
    pub(super) fn new() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        static APARTMENT: Once = Once::new();
        let turn = lock(&TURN);
        // The apartment stays. Under Wine, one that ends revokes the classes of its successor,
        // which has the same id.
        APARTMENT.call_once(|| {
            // SAFETY: the call has no arguments. The cookie is not needed, because the use never
            // ends.
            unsafe { CoIncrementMTAUsage() }.unwrap();
        });
        let apartment = Apartment::enter().unwrap();
        let state = Arc::new(Mutex::new(State {
            results: 1,
            hangs: false,
            method_error: None,
            posted: None,
            blankets: Vec::new(),
            timeouts: Vec::new(),
            arguments: Vec::new(),
            called: Vec::new(),
        }));
        let factory: IClassFactory = Factory(Arc::clone(&state)).into();
        // SAFETY: COM is initialized, and the factory can be called from any thread of the
        // apartment.
        let registration = unsafe {
            CoRegisterClassObject(
                &WbemLocator,
                &factory,
                CLSCTX_INPROC_SERVER,
                REGCLS_MULTIPLEUSE,
            )
        }
        .unwrap();
        Self {
            state,
            registration,
            _apartment: apartment,
            _turn: turn,
        }
    }

    /// Calls `access` with the state, to read or change it.
    pub(super) fn with_state<T>(&self, access: impl FnOnce(&mut State) -> T) -> T {
        access(&mut lock(&self.state))
    }
}

impl Drop for FakeWmi {
    fn drop(&mut self) {
        // SAFETY: the registration is from `new` and is revoked only here.
        unsafe { CoRevokeClassObject(self.registration) }.unwrap();
    }
}

/// Implements methods that no session calls.
macro_rules! uncalled {
    ($(fn $name:ident($($argument:ty),*) -> $output:ty;)*) => {
        $(fn $name(&self, $(_: $argument),*) -> Result<$output> { Err(E_NOTIMPL.into()) })*
    };
}

#[implement(IClassFactory)]
struct Factory(SharedState);

impl IClassFactory_Impl for Factory_Impl {
    fn CreateInstance(
        &self,
        _: Ref<'_, IUnknown>,
        id: *const GUID,
        object: *mut *mut c_void,
    ) -> Result<()> {
        let locator: IWbemLocator = Locator(Arc::clone(&self.0)).into();
        // SAFETY: the caller passes valid pointers, as COM requires.
        unsafe { locator.query(id, object) }.ok()
    }

    uncalled! { fn LockServer(BOOL) -> (); }
}

#[implement(IWbemLocator)]
struct Locator(SharedState);

impl IWbemLocator_Impl for Locator_Impl {
    fn ConnectServer(
        &self,
        _: &BSTR,
        _: &BSTR,
        _: &BSTR,
        _: &BSTR,
        _: i32,
        _: &BSTR,
        _: Ref<'_, IWbemContext>,
    ) -> Result<IWbemServices> {
        Ok(Services(Arc::clone(&self.0)).into())
    }
}

/// Implements `IClientSecurity`, recording the calls of `SetBlanket`.
macro_rules! client_security {
    ($name:literal, $interface:ty) => {
        fn SetBlanket(
            &self,
            proxy: Ref<'_, IUnknown>,
            _: u32,
            _: u32,
            _: &PCWSTR,
            authentication: RPC_C_AUTHN_LEVEL,
            impersonation: RPC_C_IMP_LEVEL,
            _: *const c_void,
            _: &EOLE_AUTHENTICATION_CAPABILITIES,
        ) -> Result<()> {
            let called: $interface = self.to_interface();
            let same = proxy
                .as_ref()
                .is_some_and(|proxy| proxy.as_raw() == called.as_raw());
            lock(&self.0)
                .blankets
                .push(($name, (same, authentication.0, impersonation.0)));
            Ok(())
        }

        fn QueryBlanket(
            &self,
            _: Ref<'_, IUnknown>,
            _: *mut u32,
            _: *mut u32,
            _: *mut *mut u16,
            _: *mut RPC_C_AUTHN_LEVEL,
            _: *mut RPC_C_IMP_LEVEL,
            _: *mut *mut c_void,
            _: *mut u32,
        ) -> Result<()> {
            Err(E_NOTIMPL.into())
        }

        uncalled! { fn CopyProxy(Ref<'_, IUnknown>) -> IUnknown; }
    };
}

/// A connection.
#[implement(IWbemServices, IClientSecurity)]
struct Services(SharedState);

impl IClientSecurity_Impl for Services_Impl {
    client_security! { "services", IWbemServices }
}

type Flags = WBEM_GENERIC_FLAG_TYPE;
type Context<'a> = Ref<'a, IWbemContext>;
type Sink<'a> = Ref<'a, IWbemObjectSink>;
type Object<'a> = Ref<'a, IWbemClassObject>;
type Later<'a> = OutRef<'a, IWbemCallResult>;

impl IWbemServices_Impl for Services_Impl {
    fn ExecQuery(
        &self,
        language: &BSTR,
        _: &BSTR,
        _: Flags,
        _: Context<'_>,
    ) -> Result<IEnumWbemClassObject> {
        assert_eq!(language.to_string(), "WQL");
        let results = (0..lock(&self.0).results).map(|_| partition()).collect();
        Ok(Enumerator(Arc::clone(&self.0), Mutex::new(results)).into())
    }

    fn GetObject(
        &self,
        _: &BSTR,
        _: Flags,
        _: Context<'_>,
        object: OutRef<'_, IWbemClassObject>,
        _: Later<'_>,
    ) -> Result<()> {
        object.write(Some(
            ClassObject {
                state: Some(Arc::clone(&self.0)),
                ..ClassObject::default()
            }
            .into(),
        ))
    }

    fn ExecMethod(
        &self,
        path: &BSTR,
        method: &BSTR,
        _: Flags,
        _: Context<'_>,
        _: Object<'_>,
        output: OutRef<'_, IWbemClassObject>,
        _: Later<'_>,
    ) -> Result<()> {
        let mut state = lock(&self.0);
        state.called.push((path.to_string(), method.to_string()));
        if let Some((kind, code)) = state.posted {
            post(kind, code)?;
        }
        if let Some(code) = state.method_error {
            return Err(code.into());
        }
        let properties = vec![
            ("ReturnValue", CIM_UINT32, VARIANT::from(42_002)),
            (
                "CreatedPartition",
                CIM_OBJECT,
                VARIANT::from(IUnknown::from(partition())),
            ),
        ];
        output.write(Some(
            ClassObject {
                properties,
                ..ClassObject::default()
            }
            .into(),
        ))
    }

    uncalled! {
        fn OpenNamespace(&BSTR, Flags, Context<'_>, OutRef<'_, IWbemServices>, Later<'_>) -> ();
        fn CancelAsyncCall(Sink<'_>) -> ();
        fn QueryObjectSink(Flags) -> IWbemObjectSink;
        fn GetObjectAsync(&BSTR, Flags, Context<'_>, Sink<'_>) -> ();
        fn PutClass(Object<'_>, Flags, Context<'_>, Later<'_>) -> ();
        fn PutClassAsync(Object<'_>, Flags, Context<'_>, Sink<'_>) -> ();
        fn DeleteClass(&BSTR, Flags, Context<'_>, Later<'_>) -> ();
        fn DeleteClassAsync(&BSTR, Flags, Context<'_>, Sink<'_>) -> ();
        fn CreateClassEnum(&BSTR, Flags, Context<'_>) -> IEnumWbemClassObject;
        fn CreateClassEnumAsync(&BSTR, Flags, Context<'_>, Sink<'_>) -> ();
        fn PutInstance(Object<'_>, Flags, Context<'_>, Later<'_>) -> ();
        fn PutInstanceAsync(Object<'_>, Flags, Context<'_>, Sink<'_>) -> ();
        fn DeleteInstance(&BSTR, Flags, Context<'_>, Later<'_>) -> ();
        fn DeleteInstanceAsync(&BSTR, Flags, Context<'_>, Sink<'_>) -> ();
        fn CreateInstanceEnum(&BSTR, Flags, Context<'_>) -> IEnumWbemClassObject;
        fn CreateInstanceEnumAsync(&BSTR, Flags, Context<'_>, Sink<'_>) -> ();
        fn ExecQueryAsync(&BSTR, &BSTR, Flags, Context<'_>, Sink<'_>) -> ();
        fn ExecNotificationQuery(&BSTR, &BSTR, Flags, Context<'_>) -> IEnumWbemClassObject;
        fn ExecNotificationQueryAsync(&BSTR, &BSTR, Flags, Context<'_>, Sink<'_>) -> ();
        fn ExecMethodAsync(&BSTR, &BSTR, Flags, Context<'_>, Object<'_>, Sink<'_>) -> ();
    }
}

#[implement(IEnumWbemClassObject, IClientSecurity)]
struct Enumerator(SharedState, Mutex<Vec<IWbemClassObject>>);

impl IClientSecurity_Impl for Enumerator_Impl {
    client_security! { "enumerator", IEnumWbemClassObject }
}

impl IEnumWbemClassObject_Impl for Enumerator_Impl {
    fn Next(
        &self,
        timeout: i32,
        capacity: u32,
        objects: *mut Option<IWbemClassObject>,
        count: *mut u32,
    ) -> HRESULT {
        let hangs = {
            let mut state = lock(&self.0);
            state.timeouts.push(timeout);
            state.hangs
        };
        if hangs {
            thread::sleep(Duration::from_millis(timeout.unsigned_abs().into()));
            return HRESULT(WBEM_S_TIMEDOUT.0);
        }
        let mut results = self.1.lock().unwrap();
        let ready = results.len().min(capacity as usize);
        for (index, result) in results.drain(..ready).enumerate() {
            // SAFETY: the caller's array has `capacity` elements, all `None`.
            unsafe { objects.add(index).write(Some(result)) };
        }
        // SAFETY: the caller's pointer is to a count that can be written.
        unsafe { *count = u32::try_from(ready).unwrap() };
        HRESULT(if ready == capacity as usize {
            WBEM_S_NO_ERROR.0
        } else {
            WBEM_S_FALSE.0
        })
    }

    fn NextAsync(&self, _: u32, _: Sink<'_>) -> HRESULT {
        E_NOTIMPL
    }

    fn Skip(&self, _: i32, _: u32) -> HRESULT {
        E_NOTIMPL
    }

    uncalled! {
        fn Reset() -> ();
        fn Clone() -> IEnumWbemClassObject;
    }
}

/// A class, the input of a method, or an object. Only an input records the arguments, and so only
/// an input has the state.
#[implement(IWbemClassObject, IErrorInfo)]
#[derive(Default)]
struct ClassObject {
    state: Option<SharedState>,
    properties: Vec<(&'static str, CIMTYPE_ENUMERATION, VARIANT)>,
}

fn null() -> VARIANT {
    let mut null = VARIANT::default();
    // SAFETY: VT_NULL means that the union has no value, so any content is valid.
    unsafe { (*null.Anonymous.Anonymous).vt = VT_NULL };
    null
}

fn partition() -> IWbemClassObject {
    let disk = vec![(
        "FriendlyName",
        CIM_STRING,
        VARIANT::from(BSTR::from("Größe 🦀")),
    )];
    let disk: IWbemClassObject = ClassObject {
        properties: disk,
        ..ClassObject::default()
    }
    .into();
    let properties = vec![
        (
            "__RELPATH",
            CIM_STRING,
            VARIANT::from(BSTR::from(r#"MSFT_Partition.ObjectId="1""#)),
        ),
        (
            "Size",
            CIM_UINT64,
            VARIANT::from(BSTR::from(u64::MAX.to_string())),
        ),
        ("DiskNumber", CIM_UINT32, VARIANT::from(-1)),
        ("IsReadOnly", CIM_BOOLEAN, VARIANT::from(true)),
        (
            "AccessPaths",
            CIMTYPE_ENUMERATION(CIM_STRING.0 | CIM_FLAG_ARRAY.0),
            null(),
        ),
        ("Disk", CIM_OBJECT, VARIANT::from(IUnknown::from(disk))),
    ];
    ClassObject {
        properties,
        ..ClassObject::default()
    }
    .into()
}

/// Makes an `MSFT_WmiError` the error object of the call.
fn post(kind: &str, code: u32) -> Result<()> {
    let properties = vec![
        ("error_Code", CIM_UINT32, VARIANT::from(code.cast_signed())),
        ("error_Type", CIM_STRING, VARIANT::from(BSTR::from(kind))),
    ];
    let object: IErrorInfo = ClassObject {
        properties,
        ..ClassObject::default()
    }
    .into();
    // SAFETY: the object is valid; the first parameter is reserved.
    unsafe { SetErrorInfo(0, &object) }
}

impl IErrorInfo_Impl for ClassObject_Impl {
    uncalled! {
        fn GetGUID() -> GUID;
        fn GetSource() -> BSTR;
        fn GetDescription() -> BSTR;
        fn GetHelpFile() -> BSTR;
        fn GetHelpContext() -> u32;
    }
}

/// Returns the input of `CreatePartition`, with an additional password.
fn input(state: Option<SharedState>) -> IWbemClassObject {
    let properties = [
        ("Size", CIM_UINT64),
        ("UseMaximumSize", CIM_BOOLEAN),
        ("MbrType", CIM_UINT16),
        ("Alignment", CIM_UINT32),
        ("GptType", CIM_STRING),
        ("Password", CIM_STRING),
        ("DriveLetter", CIM_STRING),
    ];
    let properties = properties
        .into_iter()
        .map(|(name, cim_type)| (name, cim_type, null()))
        .collect();
    ClassObject { state, properties }.into()
}

impl IWbemClassObject_Impl for ClassObject_Impl {
    fn Get(
        &self,
        name: &PCWSTR,
        _: i32,
        value: *mut VARIANT,
        cim_type: *mut i32,
        _: *mut i32,
    ) -> Result<()> {
        // SAFETY: the caller's string is zero-terminated.
        let name = unsafe { name.to_string() }?;
        let found = self
            .properties
            .iter()
            .find(|(property, ..)| *property == name);
        let (_, found_type, found_value) = found.ok_or(HRESULT(WBEM_E_NOT_FOUND.0))?;
        // SAFETY: the caller's variant is empty, and both values can be written.
        unsafe {
            value.write(found_value.clone());
            *cim_type = found_type.0;
        }
        Ok(())
    }

    fn Put(&self, name: &PCWSTR, _: i32, value: *const VARIANT, cim_type: i32) -> Result<()> {
        assert_eq!(cim_type, 0);
        // SAFETY: the caller's string is zero-terminated, and its variant is valid.
        let (name, value) = unsafe { (name.to_string()?, &*value) };
        // SAFETY: the field of the union that is read is the one that `vt` names.
        let (variant_type, text) = unsafe {
            let union = &value.Anonymous.Anonymous.Anonymous;
            match value.vt() {
                VT_BSTR => ("BSTR", union.bstrVal.to_string()),
                VT_I4 => ("I4", union.lVal.to_string()),
                VT_BOOL => ("BOOL", union.boolVal.as_bool().to_string()),
                other => panic!("{other:?}"),
            }
        };
        if let Some(state) = &self.state {
            lock(state)
                .arguments
                .push((name, variant_type.to_owned(), text));
        }
        Ok(())
    }

    fn GetNames(
        &self,
        _: &PCWSTR,
        _: WBEM_CONDITION_FLAG_TYPE,
        _: *const VARIANT,
    ) -> Result<*mut SAFEARRAY> {
        let names: Vec<_> = self
            .properties
            .iter()
            .map(|(name, ..)| *name)
            .filter(|name| *name != "__RELPATH")
            .collect();
        // SAFETY: the function has only numbers as parameters.
        let array =
            unsafe { SafeArrayCreateVector(VT_BSTR, 0, u32::try_from(names.len()).unwrap()) };
        for (index, name) in (0..).zip(names) {
            let name = BSTR::from(name);
            // SAFETY: the array has an element at the index, and copies the string.
            unsafe { SafeArrayPutElement(array, &raw const index, name.as_ptr().cast()) }?;
        }
        Ok(array)
    }

    fn GetMethod(
        &self,
        _: &PCWSTR,
        _: i32,
        signature: OutRef<'_, IWbemClassObject>,
        _: OutRef<'_, IWbemClassObject>,
    ) -> Result<()> {
        signature.write(Some(input(self.state.clone())))
    }

    fn SpawnInstance(&self, _: i32) -> Result<IWbemClassObject> {
        Ok(input(self.state.clone()))
    }

    uncalled! {
        fn GetQualifierSet() -> IWbemQualifierSet;
        fn Delete(&PCWSTR) -> ();
        fn BeginEnumeration(i32) -> ();
        fn Next(i32, *mut BSTR, *mut VARIANT, *mut i32, *mut i32) -> ();
        fn EndEnumeration() -> ();
        fn GetPropertyQualifierSet(&PCWSTR) -> IWbemQualifierSet;
        fn Clone() -> IWbemClassObject;
        fn GetObjectText(i32) -> BSTR;
        fn SpawnDerivedClass(i32) -> IWbemClassObject;
        fn CompareTo(WBEM_COMPARISON_FLAG, Object<'_>) -> ();
        fn GetPropertyOrigin(&PCWSTR) -> BSTR;
        fn InheritsFrom(&PCWSTR) -> ();
        fn PutMethod(&PCWSTR, i32, Object<'_>, Object<'_>) -> ();
        fn DeleteMethod(&PCWSTR) -> ();
        fn BeginMethodEnumeration(i32) -> ();
        fn NextMethod(i32, *mut BSTR, OutRef<'_, IWbemClassObject>, OutRef<'_, IWbemClassObject>) -> ();
        fn EndMethodEnumeration() -> ();
        fn GetMethodQualifierSet(&PCWSTR) -> IWbemQualifierSet;
        fn GetMethodOrigin(&PCWSTR) -> BSTR;
    }
}
