//! The switch's part of M21TCP (Adesanmi and Mhamdi, "M21TCP", §III.C): counts flows, and grants a window to each.

use alloc::vec::Vec;

use fanin_units::{Bytes, Duration, Instant};

use crate::buffering::BufferingSettings;
use crate::flows::{FlowCounter, FlowStage};
use crate::layout::Layout;

/// The rule by which memory is reserved for headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum M21Accounting {
    /// One header a flow, as in equation (1): `(B - header * N) / N`. The paper uses 42 bytes. The second and later
    /// packets of a window have no reserved headers, so that a full buffer can still overflow.
    Flow {
        /// Bytes of a header.
        header: Bytes,
    },
    /// Whole segments, each with its headers and bookkeeping in the buffer: `floor(B / N / (mss + overhead)) * mss`. The
    /// headers are Ethernet, IPv4, TCP with timestamps and the option of 8 bytes.
    Packet {
        /// Payload of a full segment.
        mss: Bytes,
        /// Bytes of a full segment's frame without its payload.
        overhead: Bytes,
    },
}

/// The largest window, in payload bytes, with which the windows of `flows` flows fit `buffer` at once.
///
/// Zero if no payload fits; [`M21Accounting::Packet`] also returns zero if less than one segment of each flow fits. A sender
/// cannot go below a segment, so the caller decides about smaller windows. No flow counts as one.
pub const fn m21tcp_window(buffer: Bytes, flows: u32, accounting: M21Accounting) -> Bytes {
    let flows = if flows == 0 { 1 } else { flows as u64 };
    match accounting {
        // Equation (1).
        M21Accounting::Flow { header } => match header.checked_mul(flows) {
            Some(headers) => Bytes::new(buffer.saturating_sub(headers).get() / flows),
            None => Bytes::ZERO,
        },
        M21Accounting::Packet { mss, overhead } => {
            let frame = mss.saturating_add(overhead).get();
            if frame == 0 {
                return Bytes::ZERO;
            }
            Bytes::new(buffer.get() / flows / frame * mss.get())
        }
    }
}

/// The largest number of flows whose windows each hold at least one segment of `mss` bytes. With more flows, the technique
/// cannot prevent loss.
pub const fn m21tcp_flows_max(buffer: Bytes, mss: Bytes, accounting: M21Accounting) -> u64 {
    let frame = match accounting {
        M21Accounting::Flow { header } => mss.saturating_add(header).get(),
        M21Accounting::Packet { mss, overhead } => mss.saturating_add(overhead).get(),
    };
    match buffer.get().checked_div(frame) {
        Some(flows) => flows,
        None => u64::MAX,
    }
}

/// The M21TCP part of one switch: counts the flows, and computes the bytes that each may have in flight.
///
/// A flow is granted the smaller of two shares: of its output's limit, and of its pool. Each is divided among the flows
/// that use it. The caller lowers the window in the option of a passing frame to [`Self::window`], and never raises it.
/// Over several switches the smallest window arrives (§III.B). The caller may also lower the echo in a returning
/// acknowledgement. The echo enters by the port by which the data left; the bound is the present [`Self::window`] of that
/// port.
#[derive(Debug, Clone)]
pub struct M21Switch {
    flows: FlowCounter,
    accounting: M21Accounting,
    output_limits: Vec<u64>,
    pools: Vec<u64>,
    memory: BufferingSettings,
    flows_most: u32,
}

impl M21Switch {
    /// Makes the M21TCP part of a switch with this memory; flows are counted as in [`FlowCounter::new`].
    pub fn new(layout: &Layout, accounting: M21Accounting, flows_max: u32, idle_max: Duration) -> Self {
        let bytes = |limits: &[Bytes]| limits.iter().map(|limit| limit.get()).collect::<Vec<u64>>();
        let pools = bytes(&layout.pool_sizes());
        Self {
            flows: FlowCounter::new(layout.ports(), pools.len(), flows_max, idle_max),
            accounting,
            output_limits: bytes(layout.output_limits()),
            pools,
            memory: layout.buffering().clone(),
            flows_most: 0,
        }
    }

    #[inline]
    fn pool(&self, input: usize, output: usize) -> usize {
        self.memory.pool_of(input, output).unwrap_or(usize::MAX)
    }

    /// Counts a frame of a flow from an input to an output.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn handle_frame(&mut self, now: Instant, flow: u64, stage: FlowStage, input: usize, output: usize) {
        self.flows.handle_frame(now, flow, stage, output, self.pool(input, output));
        self.flows_most = self.flows_most.max(self.flows.to_output(output));
    }

    /// Forgets flows that have been idle for too long. Only a switch without traffic needs this: a frame does the same.
    pub fn expire(&mut self, now: Instant) {
        self.flows.expire(now);
    }

    /// The window of each flow from an input to an output; `None` if no limit applies.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn window(&self, input: usize, output: usize) -> Option<Bytes> {
        let share = |limit: u64, flows| {
            (limit != u64::MAX).then(|| m21tcp_window(Bytes::new(limit), flows, self.accounting))
        };
        let of_output = share(self.output_limits[output], self.flows.to_output(output));
        let pool = self.pool(input, output);
        let of_pool = self.pools.get(pool).and_then(|&limit| share(limit, self.flows.in_pool(pool)));
        match (of_output, of_pool) {
            (Some(output), Some(pool)) => Some(output.min(pool)),
            (one, other) => one.or(other),
        }
    }

    /// The counter of the switch's flows.
    pub const fn flows(&self) -> &FlowCounter {
        &self.flows
    }

    /// The largest number of flows that one output has had at once.
    pub const fn flows_most(&self) -> u32 {
        self.flows_most
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn the_tightest_of_output_and_pool_counts() {
        let open = |layout: &Layout, flows: &[(usize, usize)]| {
            let mut switch = M21Switch::new(layout, WIRE, 1000, Duration::MAX);
            for (flow, &(input, output)) in flows.iter().enumerate() {
                switch.handle_frame(Instant::START, flow as u64, FlowStage::Opens, input, output);
            }
            switch
        };
        let window = |packets: u64| Some(Bytes::new(packets * 1448));
        // 40 frames for each output.
        let own = open(&Layout::dedicated(vec![Bytes::new(40 * 1522); 3]), &[(0, 2), (1, 2), (0, 1)]);
        assert_eq!((own.window(0, 2), own.window(0, 1)), (window(20), window(40)));
        // A pool of 40 frames for all three flows.
        let shared = open(&Layout::shared(3, Bytes::new(40 * 1522)), &[(0, 2), (1, 2), (0, 1)]);
        assert_eq!((shared.window(0, 2), shared.window(0, 1)), (window(13), window(13)));
        // Two modules: the flows that enter by the first share it.
        let modules = Layout::voq(4, 2, Bytes::new(40 * 1522), Bytes::MAX);
        let modules = open(&modules, &[(0, 3), (1, 3), (2, 3)]);
        assert_eq!((modules.window(0, 3), modules.window(2, 3)), (window(20), window(40)));
        assert_eq!((modules.flows().flows(), modules.flows_most()), (3, 3));
        assert_eq!(open(&Layout::unlimited(2), &[(0, 1)]).window(0, 1), None);
    }

    const PAPER: M21Accounting = M21Accounting::Flow { header: Bytes::new(42) };
    const WIRE: M21Accounting = M21Accounting::Packet { mss: Bytes::new(1448), overhead: Bytes::new(74) };

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
