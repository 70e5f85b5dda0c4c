//! A connection to a WMI namespace: the COM calls.

use std::marker::PhantomData;
use std::ptr;

use os::{
    Clock as _, Instance, MAX_OBJECTS, Namespace, OsError, OsResult, Returned, Time, Value,
    class_of,
};
use windows::Win32::System::Com::{
    CLSCTX_INPROC_SERVER, COINIT_MULTITHREADED, CoCreateInstance, CoInitializeEx,
    CoInitializeSecurity, CoSetProxyBlanket, CoUninitialize, EOAC_NONE,
    RPC_C_AUTHN_LEVEL_PKT_PRIVACY, RPC_C_IMP_LEVEL_IMPERSONATE,
};
use windows::Win32::System::Rpc::{RPC_C_AUTHN_WINNT, RPC_C_AUTHZ_NONE};
use windows::Win32::System::Wmi::{
    IEnumWbemClassObject, IWbemClassObject, IWbemLocator, IWbemServices,
    WBEM_FLAG_CONNECT_USE_MAX_WAIT, WBEM_FLAG_FORWARD_ONLY, WBEM_FLAG_RETURN_IMMEDIATELY,
    WBEM_GENERIC_FLAG_TYPE, WBEM_S_TIMEDOUT, WbemLocator,
};
use windows::core::{BSTR, HSTRING, IUnknown, Interface as _, Param};

use super::pool::{self, Method};
use super::value;
use crate::clock::Monotonic;
use crate::error::from_hresult;

/// Makes connections to one namespace.
pub(super) struct Connector {
    pub(super) namespace: Namespace,
    pub(super) clock: Monotonic,
}

impl pool::Connect for Connector {
    type Session = Session;

    fn connect(&self) -> OsResult<Session> {
        let apartment = Apartment::enter()?;
        // SAFETY: `apartment` has initialized COM on this thread.
        let locator: IWbemLocator =
            unsafe { CoCreateInstance(&WbemLocator, None, CLSCTX_INPROC_SERVER) }.map_err(com)?;
        let none = BSTR::new();
        // SAFETY: the interface and the strings are valid; empty strings select the defaults, such
        // as this account.
        let services = unsafe {
            locator.ConnectServer(
                &BSTR::from(self.namespace.path()),
                &none,
                &none,
                &none,
                WBEM_FLAG_CONNECT_USE_MAX_WAIT.0, // waits two minutes at most; the default is no limit
                &none,
                None,
            )
        }
        .map_err(com)?;
        encrypt(&services)?;
        Ok(Session {
            services,
            clock: self.clock,
            _apartment: apartment,
        })
    }
}

/// A connection to a namespace.
pub(super) struct Session {
    services: IWbemServices,
    clock: Monotonic,
    // Dropped after the interface, which must be released before COM is uninitialized.
    _apartment: Apartment,
}

/// A method call that is ready to be sent.
pub(super) struct Prepared {
    path: BSTR,
    method: BSTR,
    input: Option<IWbemClassObject>,
}

impl pool::Session for Session {
    type Prepared = Prepared;

    fn query(&self, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        let flags = WBEM_FLAG_FORWARD_ONLY | WBEM_FLAG_RETURN_IMMEDIATELY;
        // SAFETY: the interface and the strings are valid.
        let objects = unsafe {
            self.services
                .ExecQuery(&BSTR::from("WQL"), &BSTR::from(wql), flags, None)
        }
        .map_err(com)?;
        encrypt(&objects)?;
        let mut instances = Vec::new();
        loop {
            let left = (deadline - self.clock.now()).as_millis();
            if left == 0 {
                return Err(OsError::WMI_TIMED_OUT); // dropping the enumerator cancels the query
            }
            let mut batch = [const { None }; 16];
            let more = next(
                &objects,
                i32::try_from(left).unwrap_or(i32::MAX),
                &mut batch,
            )?;
            for object in batch.into_iter().flatten() {
                if instances.len() == MAX_OBJECTS {
                    return Err(OsError::WMI_TOO_MANY_OBJECTS);
                }
                instances.push(value::instance(&object)?);
            }
            if !more {
                break;
            }
        }
        // Not every implementation of WMI refuses to query a class that does not exist: Wine's
        // finds no instance of it.
        if let Some(class) = class_in(wql).filter(|_| instances.is_empty()) {
            self.class(class)?;
        }
        Ok(instances)
    }

    fn prepare(&self, method: &Method) -> OsResult<Prepared> {
        let class = self.class(class_of(&method.path))?;
        let mut signature = None;
        // SAFETY: the interface and the name are valid; `signature` outlives the call; a null
        // pointer means that the signature of the output is not returned.
        unsafe {
            class.GetMethod(
                &HSTRING::from(&method.name),
                0,
                &raw mut signature,
                ptr::null_mut(),
            )
        }
        .map_err(com)?;
        let input = match signature {
            // SAFETY: the interface is valid.
            Some(signature) => Some(unsafe { signature.SpawnInstance(0) }.map_err(com)?),
            None => None,
        };
        for (name, argument) in &method.arguments {
            // A method without a signature takes no arguments.
            let input = input.as_ref().ok_or(OsError::INVALID_PARAMETER)?;
            if *argument != Value::Null {
                value::put(input, name, argument)?;
            }
        }
        Ok(Prepared {
            path: BSTR::from(&method.path),
            method: BSTR::from(&method.name),
            input,
        })
    }

    fn execute(&self, prepared: Prepared) -> OsResult<OsResult<Returned>> {
        let Prepared {
            path,
            method,
            input,
        } = prepared;
        let mut output = None;
        // SAFETY: the interfaces and the strings are valid; `output` outlives the call.
        let executed = unsafe {
            self.services.ExecMethod(
                &path,
                &method,
                WBEM_GENERIC_FLAG_TYPE(0),
                None,
                input.as_ref(),
                Some(&raw mut output),
                None,
            )
        };
        if let Err(error) = executed {
            return posted(&error).map_or_else(|| Err(com(error)), |code| Ok(Err(code)));
        }
        let mut out = output
            .map(|output| value::instance(&output))
            .transpose()?
            .unwrap_or_default();
        let code = out.u32("ReturnValue").unwrap_or(0);
        out.properties
            .retain(|name, _| !name.eq_ignore_ascii_case("ReturnValue"));
        Ok(Ok(Returned { code, out }))
    }
}

impl Session {
    /// Returns the definition of a class.
    fn class(&self, name: &str) -> OsResult<IWbemClassObject> {
        let mut class = None;
        // SAFETY: the interface and the name are valid; `class` outlives the call.
        unsafe {
            self.services.GetObject(
                &BSTR::from(name),
                WBEM_GENERIC_FLAG_TYPE(0),
                None,
                Some(&raw mut class),
                None,
            )
        }
        .map_err(|error| match com(error) {
            OsError::WBEM_NOT_FOUND => OsError::WBEM_INVALID_CLASS,
            code => code,
        })?;
        class.ok_or(OsError::WBEM_FAILED)
    }
}

/// Writes the next objects to `batch` and returns whether more may follow.
fn next(
    objects: &IEnumWbemClassObject,
    milliseconds: i32,
    batch: &mut [Option<IWbemClassObject>; 16],
) -> OsResult<bool> {
    let mut count = 0;
    // SAFETY: the interface is valid; `batch` and `count` outlive the call, and every element of
    // `batch` is `None`.
    let code = unsafe { objects.Next(milliseconds, batch, &raw mut count) };
    code.ok().map_err(com)?;
    Ok(code.0 == WBEM_S_TIMEDOUT.0 || count as usize == batch.len())
}

/// Returns the class whose instances a query `SELECT ... FROM <class>` returns.
fn class_in(wql: &str) -> Option<&str> {
    wql.split_once(" FROM ")
        .and_then(|(_, rest)| rest.split_whitespace().next())
}

/// Encrypts the calls through this proxy and lets WMI impersonate this account, regardless of the
/// defaults of the process.
///
/// The settings belong to one interface pointer. `proxy` must be the pointer that is called, and
/// not another interface of the same object.
fn encrypt(proxy: impl Param<IUnknown>) -> OsResult<()> {
    // SAFETY: the interface is valid; null selects the account of this process.
    unsafe {
        CoSetProxyBlanket(
            proxy,
            RPC_C_AUTHN_WINNT,
            RPC_C_AUTHZ_NONE,
            None,
            RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
            RPC_C_IMP_LEVEL_IMPERSONATE,
            None,
            EOAC_NONE,
        )
    }
    .map_err(com)
}

/// The initialization of COM on this thread, in the multithreaded apartment. It stays on the
/// thread.
struct Apartment(PhantomData<*mut ()>);

impl Apartment {
    fn enter() -> OsResult<Self> {
        // SAFETY: `drop` calls CoUninitialize, on the same thread because this type is not Send.
        unsafe { CoInitializeEx(None, COINIT_MULTITHREADED) }
            .ok()
            .map_err(com)?;
        // The objects that queries return use the settings of the process. Only the first call in a
        // process has an effect, so the settings of a program that has made this call stay. SAFETY:
        // COM is initialized; null selects the defaults.
        let _ = unsafe {
            CoInitializeSecurity(
                None,
                -1,
                None,
                None,
                RPC_C_AUTHN_LEVEL_PKT_PRIVACY,
                RPC_C_IMP_LEVEL_IMPERSONATE,
                None,
                EOAC_NONE,
                None,
            )
        };
        Ok(Self(PhantomData))
    }
}

impl Drop for Apartment {
    fn drop(&mut self) {
        // SAFETY: CoInitializeEx has succeeded on this thread.
        unsafe { CoUninitialize() };
    }
}

#[expect(clippy::needless_pass_by_value, reason = "map_err passes it by value")]
fn com(error: windows::core::Error) -> OsError {
    from_hresult(error.code().0)
}

/// Returns the code that the provider of a failed method has posted.
///
/// A provider may post an object with a code of its own, such as 1219. WMI fails with a general
/// code then, and has the object as the error object of the call.
fn posted(error: &windows::core::Error) -> Option<OsError> {
    let object = error.as_ptr();
    // SAFETY: the pointer is null or to an object that `error` owns and that has `IUnknown`.
    let object = unsafe { IUnknown::from_raw_borrowed(&object) };
    let object = object.and_then(|object| object.cast::<IWbemClassObject>().ok());
    object.and_then(|object| value::instance(&object).ok()?.posted_code())
}

#[cfg(test)]
mod tests;
