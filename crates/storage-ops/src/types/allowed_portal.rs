//! iSCSI target portals that an administrator names.

use std::net::{IpAddr, Ipv6Addr};

use crate::error::{OperationError, OperationResult, quoted};
use crate::types::{TargetPortal, is_mistyped_address};

/// The target portals that may be used: one address or name, or all addresses of a network, each
/// with one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedPortal {
    /// The portals at the addresses of a network.
    Network {
        /// Its first address.
        first: IpAddr,
        /// The number of bits that all its addresses have in common.
        prefix: u32,
        /// The TCP port.
        port: u16,
    },
    /// One portal. A host name is not resolved but compared, without case, with that of a request.
    One(TargetPortal),
}

impl AllowedPortal {
    /// Parses `host`, `host:port`, `[IPv6 address]:port` or an IPv6 address. The host may be a
    /// network, such as `10.0.0.0/24`. Without a port, the port is 3260.
    pub fn parse(text: &str) -> OperationResult<Self> {
        let refused = || {
            let reason = format!(
                "{} is not an address[:port], such as 10.0.0.5, 10.0.0.0/24 or [fd00::1]:3260",
                quoted(text)
            );
            OperationError::invalid(reason)
        };
        let (host, port) = split(text).ok_or_else(refused)?;
        let port = match port {
            None => 0,
            Some(digits) => digits
                .parse()
                .ok()
                .filter(|port: &u32| *port > 0)
                .ok_or_else(refused)?,
        };
        if is_mistyped_address(host) {
            return Err(refused());
        }
        let Some((first, prefix)) = host.split_once('/') else {
            return TargetPortal::parse(host, port)
                .map(Self::One)
                .map_err(|_| refused());
        };
        let (first, prefix) = network(first, prefix).ok_or_else(refused)?;
        let port = TargetPortal::parse(&first.to_string(), port)
            .map_err(|_| refused())?
            .port;
        Ok(Self::Network {
            first,
            prefix,
            port,
        })
    }

    /// Returns whether `portal` is one of these. An address in a spelling that only some programs
    /// understand, such as `10.5` or `0xa000005`, is a name here.
    pub(crate) fn contains(&self, portal: &TargetPortal) -> bool {
        let address: Option<IpAddr> = portal.address.parse().ok();
        match self {
            Self::Network {
                first,
                prefix,
                port,
            } => {
                *port == portal.port
                    && address.is_some_and(|address| {
                        first.is_ipv4() == address.is_ipv4()
                            && (bits(*first) ^ bits(address)) & mask(*prefix) == 0
                    })
            }
            Self::One(one) => {
                let is_same = match (one.address.parse::<IpAddr>(), address) {
                    (Ok(one), Some(address)) => one == address,
                    _ => one.address.eq_ignore_ascii_case(&portal.address),
                };
                is_same && one.port == portal.port
            }
        }
    }
}

/// Separates the host, without brackets, and the port.
fn split(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        let port = if rest.is_empty() {
            None
        } else {
            Some(rest.strip_prefix(':')?)
        };
        return is_ipv6(host).then_some((host, port));
    }
    match text.split_once(':') {
        None => Some((text, None)),
        Some((host, port)) if !port.contains(':') => Some((host, Some(port))),
        Some(_) => is_ipv6(text).then_some((text, None)),
    }
}

/// Returns whether a text is an IPv6 address, with or without a zone or the length of a prefix.
fn is_ipv6(text: &str) -> bool {
    text.split(['%', '/'])
        .next()
        .is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

/// Parses a network, whose address has no bits beyond the prefix.
fn network(first: &str, prefix: &str) -> Option<(IpAddr, u32)> {
    let (first, prefix): (IpAddr, u32) = (first.parse().ok()?, prefix.parse().ok()?);
    let most = if first.is_ipv4() { 32 } else { 128 };
    (prefix <= most && bits(first) & !mask(prefix) == 0).then_some((first, prefix))
}

/// Returns the bits of an address, the first of them as the most significant.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns a number whose first `prefix` bits are ones.
fn mask(prefix: u32) -> u128 {
    !u128::MAX.checked_shr(prefix).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::AllowedPortal;
    use crate::types::TargetPortal;

    fn is_listed(allowed: &str, address: &str, port: u32) -> bool {
        AllowedPortal::parse(allowed)
            .unwrap()
            .contains(&TargetPortal::parse(address, port).unwrap())
    }

    #[test]
    fn a_portal_is_an_address_or_name_with_a_port() {
        for (allowed, address, port) in [
            ("10.0.0.5", "10.0.0.5", 0),
            ("10.0.0.5:3260", "10.0.0.5", 3260),
            ("10.0.0.5:860", "10.0.0.5", 860),
            ("San.Example.com:860", "san.example.COM", 860),
            ("fd00::1", "FD00:0:0::1", 3260),
            ("[fd00:0::1]:860", "fd00::1", 860),
            ("[fd00::1]", "fd00::1", 0),
            ("[fe80::1%4]:3260", "fe80::1%4", 0),
        ] {
            assert!(
                is_listed(allowed, address, port),
                "{allowed} {address} {port}"
            );
        }
    }

    #[test]
    fn another_port_address_or_spelling_is_another_portal() {
        for (allowed, address, port) in [
            ("10.0.0.5", "10.0.0.5", 860),
            ("10.0.0.5:860", "10.0.0.5", 0),
            ("10.0.0.5", "10.0.0.50", 0),
            ("10.0.0.5", "10.5", 0),
            ("10.0.0.5", "0xa000005", 0),
            ("10.0.0.5", "010.0.0.5", 0),
            ("10.0.0.5", "::ffff:10.0.0.5", 0),
            ("fd00::1", "[fd00::1]", 0),
            ("[fe80::1%4]", "fe80::1", 0),
            ("san", "san.example.com", 0),
            ("san", "san.", 0),
        ] {
            assert!(
                !is_listed(allowed, address, port),
                "{allowed} {address} {port}"
            );
        }
    }

    #[test]
    fn a_network_has_the_addresses_of_its_prefix_and_no_names() {
        for (allowed, inside, outside) in [
            ("10.42.0.0/16", "10.42.255.255", "10.43.0.0"),
            ("10.0.0.4/31", "10.0.0.5", "10.0.0.6"),
            ("10.0.0.5/32", "10.0.0.5", "10.0.0.4"),
            ("0.0.0.0/0", "192.0.2.1", "fd00::1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::/0", "::ffff:10.0.0.5", "10.0.0.5"),
            ("fd00::1/128", "fd00::1", "fd00::2"),
            ("10.0.0.0/8", "10.0.0.5", "san"),
        ] {
            assert!(
                is_listed(allowed, inside, 0) && !is_listed(allowed, outside, 0),
                "{allowed}"
            );
            assert!(!is_listed(allowed, inside, 860), "{allowed}");
        }
        assert!(
            is_listed("10.0.0.0/8:860", "10.1.2.3", 860)
                && is_listed("[fd00::/8]:860", "fd01::1", 860)
        );
    }

    #[test]
    fn an_invalid_portal_is_refused() {
        for text in [
            "",
            ":",
            ":3260",
            "san:",
            "san:0",
            "san:65536",
            "san:x",
            "[fd00::1",
            "[fd00::1]860",
            "[san]:860",
            "fd00::x",
            "10.0.0.5/24",
            "10.0.0.0/33",
            "fd00::/129",
            "10.0.0.0/",
            "/8",
            "san/24",
            "10.0.0.300",
            "10.0.0:3260",
            "a b",
            "[]",
            "[fd00::x]",
            "10.0.0.0/-1",
        ] {
            assert!(AllowedPortal::parse(text).is_err(), "{text:?}");
        }
    }
}
