//! The value of `:authority`: which values a server accepts, and how others are rewritten.

use http::uri::Authority;

/// Whether the server's parser accepts the value.
///
/// An empty value counts as accepted, because no valid value has the same length. The server then answers with an
/// error. No client is known to send an empty value.
pub(crate) fn is_accepted(value: &[u8]) -> bool {
    // The common case, without the allocation of the parser.
    value.iter().copied().all(is_plain) || Authority::try_from(value).is_ok()
}

/// Replaces every octet that could be invalid, so that the result is a host name of the same length.
///
/// An authority may be invalid although each octet is valid somewhere (`a:b:c`, `a@`). Therefore only octets that are
/// valid everywhere are kept.
pub(crate) fn sanitize(value: &mut [u8]) {
    for octet in value.iter_mut().filter(|octet| !is_plain(**octet)) {
        *octet = b'-';
    }
}

fn is_plain(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || octet == b'.' || octet == b'-'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sanitized(value: &str) -> String {
        let mut value = value.as_bytes().to_vec();
        if !is_accepted(&value) {
            sanitize(&mut value);
        }
        String::from_utf8(value).unwrap()
    }

    #[test]
    fn the_path_of_a_pipe_becomes_a_host_name() {
        assert_eq!(sanitized(r"\\.\\pipe\\csi-proxy-disk-v1"), "--.--pipe--csi-proxy-disk-v1");
        assert_eq!(sanitized("%5C%5C.%5Cpipe%5Ccsi-proxy-disk-v1"), "-5C-5C.-5Cpipe-5Ccsi-proxy-disk-v1");
    }

    #[test]
    fn a_value_that_servers_accept_is_kept() {
        for value in ["localhost", "localhost:443", "[::1]:443", "user@host", "a_b~c", ""] {
            assert_eq!(sanitized(value), value);
        }
    }

    #[test]
    fn an_invalid_value_of_valid_octets_is_sanitized() {
        for value in ["a:b:c", "a@", "[::1", "a/b", "a?b", "]", "%"] {
            assert!(Authority::try_from(value).is_err(), "{value}");
            assert!(Authority::try_from(sanitized(value)).is_ok(), "{value}");
        }
    }

    proptest! {
        #[test]
        fn a_sanitized_value_is_always_accepted(mut value in prop::collection::vec(any::<u8>(), 1..80)) {
            let length = value.len();
            sanitize(&mut value);
            prop_assert!(Authority::try_from(&value[..]).is_ok());
            prop_assert_eq!(value.len(), length);
        }

        #[test]
        fn a_plain_value_is_valid_without_the_parser(value in "[A-Za-z0-9.-]{1,300}") {
            prop_assert!(Authority::try_from(&value[..]).is_ok());
        }

        #[test]
        fn a_value_is_accepted_exactly_if_the_server_parses_it(value in "[a-z:@/%\\[\\]0-9]{1,12}") {
            prop_assert_eq!(is_accepted(value.as_bytes()), Authority::try_from(&value[..]).is_ok());
        }
    }
}
