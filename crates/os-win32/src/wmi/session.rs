//! The COM calls of one connection.

use std::marker::PhantomData;
use std::ptr;

use os::{Clock as _, Instance, Namespace, OsError, OsResult, Returned, Time, Value};
use windows::Win32::System::Com::{
    CLSCTX_INPROC_SERVER, COINIT_MULTITHREADED, CoCreateInstance, CoInitializeEx, CoInitializeSecurity,
    CoSetProxyBlanket, CoUninitialize, EOAC_NONE, RPC_C_AUTHN_LEVEL_PKT_PRIVACY, RPC_C_IMP_LEVEL_IMPERSONATE,
};
use windows::Win32::System::Rpc::{RPC_C_AUTHN_WINNT, RPC_C_AUTHZ_NONE};
use windows::Win32::System::Wmi::{
    IEnumWbemClassObject, IWbemClassObject, IWbemLocator, IWbemServices, WBEM_FLAG_CONNECT_USE_MAX_WAIT,
    WBEM_FLAG_FORWARD_ONLY, WBEM_FLAG_RETURN_IMMEDIATELY, WBEM_GENERIC_FLAG_TYPE, WBEM_S_TIMEDOUT, WbemLocator,
};
use windows::core::{BSTR, HSTRING, IUnknown, Param};

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
        // SAFETY: COM is initialised on this thread, by `apartment`.
        let locator: IWbemLocator =
            unsafe { CoCreateInstance(&WbemLocator, None, CLSCTX_INPROC_SERVER) }.map_err(com)?;
        let none = BSTR::new();
        // SAFETY: the interface and all strings are live; empty ones mean the defaults: this machine, this account.
        let services = unsafe {
            locator.ConnectServer(
                &BSTR::from(self.namespace.path()),
                &none,
                &none,
                &none,
                WBEM_FLAG_CONNECT_USE_MAX_WAIT.0, // two minutes at most, where the default is for ever
                &none,
                None,
            )
        }
        .map_err(com)?;
        encrypt(&services)?;
        Ok(Session { services, clock: self.clock, _apartment: apartment })
    }
}

/// A connection to a namespace.
pub(super) struct Session {
    services: IWbemServices,
    clock: Monotonic,
    // After the interface, which must be gone before its apartment is.
    _apartment: Apartment,
}

/// A method call, ready to be sent.
pub(super) struct Prepared {
    path: BSTR,
    method: BSTR,
    input: Option<IWbemClassObject>,
}

impl pool::Session for Session {
    type Prepared = Prepared;

    fn query(&self, wql: &str, deadline: Time) -> OsResult<Vec<Instance>> {
        let flags = WBEM_FLAG_FORWARD_ONLY | WBEM_FLAG_RETURN_IMMEDIATELY;
        // SAFETY: the interface and the strings are live.
        let answers =
            unsafe { self.services.ExecQuery(&BSTR::from("WQL"), &BSTR::from(wql), flags, None) }.map_err(com)?;
        encrypt(&answers)?;
        let mut instances = Vec::new();
        loop {
            let left = (deadline - self.clock.now()).as_millis();
            if left == 0 {
                return Err(OsError::WAIT_TIMEOUT); // dropping the enumerator tells WMI to stop
            }
            let mut batch = [const { None }; 16];
            let more = next(&answers, i32::try_from(left).unwrap_or(i32::MAX), &mut batch)?;
            for object in batch.into_iter().flatten() {
                instances.push(value::instance(&object)?);
            }
            if !more {
                return Ok(instances);
            }
        }
    }

    fn prepare(&self, method: &Method) -> OsResult<Prepared> {
        let class = self.object(class_of(&method.path))?;
        let mut signature = None;
        // SAFETY: the interface and the name are live; `signature` outlives the call; null: the output's signature
        // is not wanted.
        unsafe { class.GetMethod(&HSTRING::from(&method.name), 0, &raw mut signature, ptr::null_mut()) }
            .map_err(com)?;
        let input = match signature {
            // SAFETY: the interface is live.
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
        Ok(Prepared { path: BSTR::from(&method.path), method: BSTR::from(&method.name), input })
    }

    fn execute(&self, prepared: Prepared) -> OsResult<Returned> {
        let Prepared { path, method, input } = prepared;
        let mut output = None;
        // SAFETY: the interfaces and the strings are live; `output` outlives the call.
        unsafe {
            self.services.ExecMethod(
                &path,
                &method,
                WBEM_GENERIC_FLAG_TYPE(0),
                None,
                input.as_ref(),
                Some(&raw mut output),
                None,
            )
        }
        .map_err(com)?;
        let mut out = output.map(|output| value::instance(&output)).transpose()?.unwrap_or_default();
        let code = out.u32("ReturnValue").unwrap_or(0);
        out.properties.retain(|name, _| !name.eq_ignore_ascii_case("ReturnValue"));
        Ok(Returned { code, out })
    }
}

impl Session {
    /// The class or instance at `path`.
    fn object(&self, path: &str) -> OsResult<IWbemClassObject> {
        let mut object = None;
        // SAFETY: the interface and the path are live; `object` outlives the call.
        unsafe {
            self.services.GetObject(&BSTR::from(path), WBEM_GENERIC_FLAG_TYPE(0), None, Some(&raw mut object), None)
        }
        .map_err(com)?;
        object.ok_or(OsError::WBEM_FAILED)
    }
}

/// Fills `batch` with the next objects and says whether there may be more.
fn next(
    answers: &IEnumWbemClassObject,
    milliseconds: i32,
    batch: &mut [Option<IWbemClassObject>; 16],
) -> OsResult<bool> {
    let mut count = 0;
    // SAFETY: the interface is live; the batch and `count` outlive the call, and every place of the batch is empty.
    let code = unsafe { answers.Next(milliseconds, batch, &raw mut count) };
    code.ok().map_err(com)?;
    Ok(code.0 == WBEM_S_TIMEDOUT.0 || count as usize == batch.len())
}

/// The class in `MSFT_Disk.ObjectId="..."`, `MSFT_StorageSetting=@` or `MSFT_Disk`.
fn class_of(path: &str) -> &str {
    path.split(['.', '=']).next().unwrap_or(path)
}

/// Makes calls through this proxy encrypted and lets WMI act in this account's name, whatever the process says.
///
/// The settings are those of one interface's proxy: the very pointer that will be called, and not another interface
/// of the object, must get there.
fn encrypt(proxy: impl Param<IUnknown>) -> OsResult<()> {
    // SAFETY: the interface is live; null means the account of this process.
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

/// COM on this thread, in the multithreaded apartment; it stays on the thread.
struct Apartment(PhantomData<*mut ()>);

impl Apartment {
    fn enter() -> OsResult<Self> {
        // SAFETY: paired with the CoUninitialize of `drop`, on the same thread since this type is not Send.
        unsafe { CoInitializeEx(None, COINIT_MULTITHREADED) }.ok().map_err(com)?;
        // For the objects that queries return, which take the process's settings. Only the first call of a process
        // counts, and where a program that uses this crate has chosen others, they stand.
        // SAFETY: COM is initialised; null means the defaults.
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
        // SAFETY: paired with a successful CoInitializeEx on this thread.
        unsafe { CoUninitialize() };
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err hands it over")]
fn com(error: windows::core::Error) -> OsError {
    from_hresult(error.code().0)
}

#[cfg(test)]
mod tests;
