//! Numbers by which parts of the simulator refer to one another.

/// One end of a connection: connection `k` has the ends `2 k` and `2 k + 1`.
pub(crate) type EndIndex = u32;

/// No port, end, segment or list entry.
pub(crate) const NIL: u32 = u32::MAX;

/// Returns the other end of a connection.
pub(crate) const fn peer(end: EndIndex) -> EndIndex {
    end ^ 1
}
