//! Refuses a mapping to the node itself, without credentials.
//!
//! csi-proxy runs as LocalSystem. A mapping without a user to a share of the node itself, such as
//! `\\localhost\C$`, would give its caller all files of the node with the rights of LocalSystem.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use os::{Namespace, Value};

use crate::error::{ErrorKind, OperationError, OperationResult};
use crate::node::run::Run;
use crate::provider::wmi::{query, query_one};

/// The domain in which Windows writes IPv6 addresses in names.
const IPV6_LITERAL: &str = ".ipv6-literal.net";

fn refused(why: &str) -> OperationResult<()> {
    let reason = format!(
        "{why}; a mapping without a user would use the rights of LocalSystem on the node itself"
    );
    Err(OperationError::new(ErrorKind::PermissionDenied, reason))
}

/// Refuses `server`, the name or address of a server in lower case, if it is the node itself.
///
/// Refuses a name with other characters than host names have too: Windows replaces, decodes or
/// ignores some.
pub(crate) fn refuse(run: Run<'_>, server: &str) -> OperationResult<()> {
    // The part after an `@` selects TLS and the port, for WebDAV.
    let (server, port) = server
        .split_once('@')
        .map_or((server, None), |(server, port)| (server, Some(port)));
    if server.is_empty()
        || !server
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        || !port.is_none_or(|port| {
            port.split('@')
                .all(|part| part == "ssl" || part.parse::<u16>().is_ok())
        })
    {
        return refused(
            "without a user, the name of the server may have only ASCII letters, digits, '.', '-' \
             and '_'",
        );
    }
    let server = server.trim_end_matches('.');
    let is_own = match address(server) {
        Some(address) => is_local(address) || own_addresses(run)?.contains(&address),
        None => is_localhost(server) || is_own_name(run, server)?,
    };
    if is_own {
        refused(&format!("{server} is this node"))
    } else {
        Ok(())
    }
}

/// Returns whether an address is one of every node: a loopback address, or the unspecified one.
fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified()
}

fn is_localhost(server: &str) -> bool {
    server.split('.').any(|label| label == "localhost")
}

/// Returns whether the name is that of the node: its NetBIOS name or its host name, whatever domain
/// follows.
fn is_own_name(run: Run<'_>, server: &str) -> OperationResult<bool> {
    let computer = query_one(
        run,
        Namespace::CimV2,
        "SELECT * FROM Win32_ComputerSystem",
        "name of the node",
    )?;
    let names: Vec<&str> = ["Name", "DNSHostName"]
        .into_iter()
        .filter_map(|name| computer.text(name))
        .collect();
    if names.is_empty() {
        return Err(OperationError::new(
            ErrorKind::Internal,
            "WMI returned no name of the node",
        ));
    }
    let label = server.split('.').next().unwrap_or_default();
    Ok(names
        .iter()
        .any(|name| name.eq_ignore_ascii_case(label) || name.eq_ignore_ascii_case(server)))
}

fn own_addresses(run: Run<'_>) -> OperationResult<Vec<IpAddr>> {
    let adapters = "SELECT * FROM Win32_NetworkAdapterConfiguration WHERE IPEnabled = TRUE";
    let mut addresses = Vec::new();
    for adapter in query(run, Namespace::CimV2, adapters)? {
        let Some(Value::Array(texts)) = adapter.get("IPAddress") else {
            continue;
        };
        for text in texts {
            let Value::Text(text) = text else { continue };
            addresses.extend(
                text.split('%')
                    .next()
                    .and_then(|text| text.parse().ok())
                    .map(canonical),
            );
        }
    }
    if addresses.is_empty() {
        return Err(OperationError::new(
            ErrorKind::Internal,
            "WMI returned no address of the node",
        ));
    }
    Ok(addresses)
}

/// Returns the address that a name of a server is, in any spelling that Windows accepts, or `None`
/// if it is a name.
fn address(server: &str) -> Option<IpAddr> {
    if let Some(literal) = server.strip_suffix(IPV6_LITERAL) {
        // An `s` stands for the `%` before the zone.
        let literal = literal
            .split('s')
            .next()
            .unwrap_or_default()
            .replace('-', ":");
        return literal
            .parse::<Ipv6Addr>()
            .ok()
            .map(|address| canonical(address.into()));
    }
    ipv4(server).map(Into::into)
}

/// Returns an IPv4 address for an IPv6 address that contains one.
fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6
            .to_ipv4_mapped()
            .or_else(|| compatible(v6))
            .map_or(address, Into::into),
        IpAddr::V4(_) => address,
    }
}

/// Returns the IPv4 address in an "IPv4-compatible" IPv6 address, `::a.b.c.d`. `::` and `::1` are
/// not IPv4-compatible.
fn compatible(address: Ipv6Addr) -> Option<Ipv4Addr> {
    if address.is_loopback() || address.is_unspecified() {
        None
    } else {
        address.to_ipv4()
    }
}

/// Parses an IPv4 address as `inet_aton` does: one to four decimal, octal or hexadecimal numbers.
/// The last number fills the rest of the address.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = text.split('.').collect();
    let (last, first) = parts.split_last()?;
    if first.len() > 3 {
        return None;
    }
    let mut address = 0_u32;
    for (part, shift) in first.iter().zip([24, 16, 8]) {
        address |= u32::from(u8::try_from(number(part)?).ok()?) << shift;
    }
    let rest = number(last)?;
    let fits = u64::from(rest) < 1 << (32 - 8 * first.len());
    fits.then(|| Ipv4Addr::from_bits(address | rest))
}

fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_number {
        u32::from_str_radix(digits, radix).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};

    use super::{address, is_local, is_localhost};

    #[test]
    fn a_loopback_address_is_recognized_in_every_spelling() {
        for text in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "127.255.255.254",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.01",
            "017700000001",
            "0.0.0.0",
            "0",
            "--1.ipv6-literal.net",
            "0-0-0-0-0-0-0-1.ipv6-literal.net",
            "0000-0000-0000-0000-0000-0000-0000-0001.ipv6-literal.net",
            "--1s1.ipv6-literal.net",
            "--.ipv6-literal.net",
            "--ffff-127.0.0.1.ipv6-literal.net",
            "--ffff-7f00-1.ipv6-literal.net",
            "--7f00-1.ipv6-literal.net",
        ] {
            assert!(address(text).is_some_and(is_local), "{text}");
        }
        for text in [
            "10.0.0.1",
            "128.0.0.1",
            "2130706432.1",
            "1.2",
            "--2.ipv6-literal.net",
            "fe80--1s4.ipv6-literal.net",
        ] {
            assert!(!address(text).is_some_and(is_local), "{text}");
        }
        // The groups are hexadecimal: this address contains no IPv4 address.
        let other = address("--ffff-127-0-0-1.ipv6-literal.net");
        assert_eq!(
            other,
            Some(IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0xffff, 0x127, 0, 0, 1)))
        );
        assert!(!other.is_some_and(is_local));
        for text in [
            "",
            "files",
            "1.2.3.4.5",
            "256.0.0.1",
            "1.2.3.256",
            "4294967296",
            "0x",
            "+1",
            "08",
            "a.1",
            "1..2",
        ] {
            assert_eq!(address(text), None, "{text}");
        }
    }

    #[test]
    fn localhost_is_recognized_as_any_label() {
        for (text, is) in [
            ("localhost", true),
            ("localhost.localdomain", true),
            ("a.localhost", true),
            ("local", false),
        ] {
            assert_eq!(is_localhost(text), is, "{text}");
        }
    }
}
