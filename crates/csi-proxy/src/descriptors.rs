//! How many connections the limit on open descriptors leaves room for.
//!
//! A connection over a Unix socket is a descriptor. If there are fewer than connections, accepting fails while idle
//! connections, which could be evicted, hold all of them.

#[cfg(unix)]
#[path = "descriptors/unix.rs"]
mod imp;

#[cfg(not(unix))]
#[path = "descriptors/unlimited.rs"]
mod imp;

/// Descriptors for everything else: endpoints, evicted connections that have not closed, metrics, the log, the runtime.
const OTHERS: usize = 256;

/// Raises the limit on open descriptors as far as `wanted` connections need it and the system allows, and returns how
/// many connections it leaves room for: `wanted`, or fewer.
pub(crate) fn room_for(wanted: usize) -> usize {
    imp::raise(wanted.saturating_add(OTHERS)).map_or(wanted, |limit| room_within(limit, wanted))
}

fn room_within(limit: usize, wanted: usize) -> usize {
    // With very few descriptors at all, the others still need some.
    limit.saturating_sub(OTHERS).max(limit / 4).clamp(1, wanted.max(1))
}

#[cfg(test)]
mod tests {
    use super::room_within;

    #[test]
    fn connections_leave_descriptors_for_the_rest() {
        for (limit, wanted, room) in
            [(1 << 20, 1024, 1024), (1280, 1024, 1024), (1279, 1024, 1023), (1024, 1024, 768), (256, 1024, 64)]
        {
            assert_eq!(room_within(limit, wanted), room, "{limit} descriptors");
        }
        assert_eq!((room_within(100, 10), room_within(2, 10), room_within(2, 0)), (10, 1, 1));
    }
}
