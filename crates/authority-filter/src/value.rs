//! The value of `:authority`: what a server takes, and what stands in for what it does not.

use http::uri::Authority;

/// Whether the server's own parser takes the value.
///
/// An empty value is left to the server, which answers that stream with an error: nothing of the same length can
/// replace it. No client is known to send one.
pub(crate) fn is_accepted(value: &[u8]) -> bool {
    // The common case without the copy that the parser makes.
    value.iter().copied().all(is_plain) || Authority::try_from(value).is_ok()
}

/// Replaces every octet that could be at fault, so that the result is a host name of the same length.
///
/// More than one rule may have been broken, by octets each allowed (`a:b:c`, `a@`); so what stays is not what an
/// authority allows somewhere, but what it allows everywhere.
pub(crate) fn mend(value: &mut [u8]) {
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

    fn mended(value: &str) -> String {
        let mut value = value.as_bytes().to_vec();
        if !is_accepted(&value) {
            mend(&mut value);
        }
        String::from_utf8(value).unwrap()
    }

    #[test]
    fn a_pipes_path_becomes_a_host_name() {
        assert_eq!(mended(r"\\.\\pipe\\csi-proxy-disk-v1"), "--.--pipe--csi-proxy-disk-v1");
        assert_eq!(mended("%5C%5C.%5Cpipe%5Ccsi-proxy-disk-v1"), "-5C-5C.-5Cpipe-5Ccsi-proxy-disk-v1");
    }

    #[test]
    fn a_value_that_servers_take_stays() {
        for value in ["localhost", "localhost:443", "[::1]:443", "user@host", "a_b~c", ""] {
            assert_eq!(mended(value), value);
        }
    }

    #[test]
    fn a_value_of_allowed_octets_in_a_wrong_order_is_mended() {
        for value in ["a:b:c", "a@", "[::1", "a/b", "a?b", "]", "%"] {
            assert!(Authority::try_from(value).is_err(), "{value}");
            assert!(Authority::try_from(mended(value)).is_ok(), "{value}");
        }
    }

    proptest! {
        #[test]
        fn a_mended_value_is_always_accepted(mut value in prop::collection::vec(any::<u8>(), 1..80)) {
            let length = value.len();
            mend(&mut value);
            prop_assert!(Authority::try_from(&value[..]).is_ok());
            prop_assert_eq!(value.len(), length);
        }

        #[test]
        fn a_plain_value_needs_no_parser(value in "[A-Za-z0-9.-]{1,300}") {
            prop_assert!(Authority::try_from(&value[..]).is_ok());
        }

        #[test]
        fn what_is_accepted_is_what_the_server_parses(value in "[a-z:@/%\\[\\]0-9]{1,12}") {
            prop_assert_eq!(is_accepted(value.as_bytes()), Authority::try_from(&value[..]).is_ok());
        }
    }
}
