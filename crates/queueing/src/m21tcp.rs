//! The window that an M21TCP switch grants each flow (Adesanmi and Mhamdi, "M21TCP", §III.C).

use fanin_units::Bytes;

/// What is set aside for headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum M21Accounting {
    /// One header a flow, as equation (1) has it: `(B - header * N) / N`. The paper uses 42 bytes.
    /// With more than one packet a window the headers of the others are not covered, so that a full buffer can still overflow.
    HeaderPerFlow {
        /// Header bytes.
        header: Bytes,
    },
    /// Whole segments, each with everything it takes in the buffer beside its payload: `floor(B / N / (mss + overhead)) * mss`.
    /// Ethernet, IPv4, TCP with timestamps, the option of 8 bytes and bookkeeping: see `overhead`.
    FramePerPacket {
        /// Payload of a full segment.
        mss: Bytes,
        /// What a full segment's frame takes beyond that.
        overhead: Bytes,
    },
}

/// The largest window, in payload bytes, such that `flows` flows sending it at once fit `buffer`.
///
/// Zero where not even that fits: senders cannot go below a segment, so the caller decides what then.
/// Without flows, the window of a single one.
pub const fn m21tcp_window(buffer: Bytes, flows: u32, accounting: M21Accounting) -> Bytes {
    let flows = if flows == 0 { 1 } else { flows as u64 };
    match accounting {
        // Equation (1).
        M21Accounting::HeaderPerFlow { header } => match header.checked_mul(flows) {
            Some(headers) => Bytes::new(buffer.saturating_sub(headers).get() / flows),
            None => Bytes::ZERO,
        },
        M21Accounting::FramePerPacket { mss, overhead } => {
            let frame = mss.saturating_add(overhead).get();
            if frame == 0 {
                return Bytes::ZERO;
            }
            Bytes::new(buffer.get() / flows / frame * mss.get())
        }
    }
}

/// How many flows get at least one segment of `mss`; beyond that the technique cannot prevent loss.
pub const fn m21tcp_flows_max(buffer: Bytes, mss: Bytes, accounting: M21Accounting) -> u64 {
    let frame = match accounting {
        M21Accounting::HeaderPerFlow { header } => mss.saturating_add(header).get(),
        M21Accounting::FramePerPacket { mss, overhead } => mss.saturating_add(overhead).get(),
    };
    match buffer.get().checked_div(frame) {
        Some(flows) => flows,
        None => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: M21Accounting = M21Accounting::HeaderPerFlow { header: Bytes::new(42) };
    const WIRE: M21Accounting =
        M21Accounting::FramePerPacket { mss: Bytes::new(1448), overhead: Bytes::new(74) };

    #[test]
    fn equation_1_with_the_figures_of_the_paper() {
        let buffer = Bytes::new(64_000);
        assert_eq!(m21tcp_window(buffer, 8, PAPER), Bytes::new(7_958));
        assert_eq!(m21tcp_window(Bytes::new(65_536), 106, PAPER), Bytes::new(576));
        assert_eq!(m21tcp_flows_max(Bytes::new(65_536), Bytes::new(576), PAPER), 106);
        assert_eq!(m21tcp_flows_max(Bytes::new(65_536), Bytes::new(1460), PAPER), 43);
        assert_eq!(m21tcp_window(buffer, u32::MAX, PAPER), Bytes::ZERO);
    }

    #[test]
    fn whole_frames_never_overflow_the_buffer() {
        for buffer in [9_000, 64_000, 65_536, 8_000_000] {
            for flows in 1..200 {
                let window = m21tcp_window(Bytes::new(buffer), flows, WIRE).get();
                let packets = window / 1448;
                assert!(packets * 1522 * u64::from(flows) <= buffer);
                assert!((packets + 1) * 1522 * u64::from(flows) > buffer);
            }
        }
        assert_eq!(m21tcp_window(Bytes::new(64_000), 43, WIRE), Bytes::ZERO);
        assert_eq!(m21tcp_window(Bytes::new(64_000), 42, WIRE), Bytes::new(1448));
    }
}
