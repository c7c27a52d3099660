//! The switch's part of M21TCP (Adesanmi and Mhamdi, "M21TCP", §III.C): counts flows, and grants a window to each.

use alloc::vec::Vec;

use fanin_units::{Bytes, Duration, Instant};

use crate::buffering::BufferingSettings;
use crate::flows::{FlowCounter, FlowStage};
use crate::layout::Layout;

/// Header bytes in the buffer that an M21TCP switch subtracts before it divides the rest (equation (1)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "schemars",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "kebab-case")
)]
pub enum M21Charge {
    /// The headers of every packet: the buffer cannot overflow if it holds a segment of each flow.
    Packet,
    /// `header` once for each flow, as in equation (1) of the paper: windows of many packets overflow the buffer.
    Flow,
}

/// The rule by which a buffer is divided into windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct M21WindowRule {
    /// The headers that a window leaves room for.
    pub charge: M21Charge,
    /// Payload of a full segment.
    pub mss: Bytes,
    /// The bytes that [`charge`](Self::charge) adds: to a flow, 42 in the paper; to a packet, its frame in the buffer without the payload.
    pub header: Bytes,
}

impl M21WindowRule {
    /// Returns the largest window, in payload bytes, with which the windows of `flows` flows fit `buffer` at once.
    ///
    /// With [`M21Charge::Flow`] it is `(B - header * N) / N`, equation (1); with [`M21Charge::Packet`] whole segments,
    /// `floor(B / N / (mss + header)) * mss`. Zero if no payload fits, or less than one segment of each flow where packets are
    /// charged. A sender cannot go below a segment, so the caller decides about smaller windows. No flow counts as one.
    pub const fn window(self, buffer: Bytes, flows: u32) -> Bytes {
        let flows = if flows == 0 { 1 } else { flows as u64 };
        match self.charge {
            M21Charge::Flow => match self.header.checked_mul(flows) {
                Some(headers) => Bytes::new(buffer.saturating_sub(headers).get() / flows),
                None => Bytes::ZERO,
            },
            M21Charge::Packet => match (buffer.get() / flows).checked_div(self.frame()) {
                Some(packets) => Bytes::new(packets * self.mss.get()),
                None => Bytes::ZERO,
            },
        }
    }

    /// Returns the largest number of flows whose windows in `buffer` each hold at least one segment. With more flows, the
    /// technique cannot prevent loss.
    pub const fn flows_max(self, buffer: Bytes) -> u64 {
        match buffer.get().checked_div(self.frame()) {
            Some(flows) => flows,
            None => u64::MAX,
        }
    }

    /// A full segment with the bytes that are charged for it.
    const fn frame(self) -> u64 {
        self.mss.saturating_add(self.header).get()
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
    rule: M21WindowRule,
    output_limits: Vec<u64>,
    pools: Vec<u64>,
    memory: BufferingSettings,
    flows_most: u32,
}

impl M21Switch {
    /// Makes the M21TCP part of a switch with this memory; flows are counted as in [`FlowCounter::new`].
    pub fn new(layout: &Layout, rule: M21WindowRule, flows_max: u32, idle: Duration) -> Self {
        let bytes = |limits: &[Bytes]| limits.iter().map(|limit| limit.get()).collect::<Vec<u64>>();
        let pools = bytes(&layout.pool_sizes());
        Self {
            flows: FlowCounter::new(layout.ports(), pools.len(), flows_max, idle),
            rule,
            output_limits: bytes(layout.output_limits()),
            pools,
            memory: layout.buffering().clone(),
            flows_most: 0,
        }
    }

    #[inline]
    fn pool(&self, input: usize, output: usize) -> Option<usize> {
        self.memory.pool_of(input, output)
    }

    /// Counts a frame of a flow from an input to an output.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn handle_frame(&mut self, now: Instant, flow: u64, stage: FlowStage, input: usize, output: usize) {
        let pool = self.pool(input, output).map(|pool| pool as u32);
        self.flows.handle_frame(now, flow, stage, output, pool);
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
        let share =
            |limit: u64, flows| (limit != u64::MAX).then(|| self.rule.window(Bytes::new(limit), flows));
        let of_output = share(self.output_limits[output], self.flows.to_output(output));
        let pool = self.pool(input, output);
        let of_pool = pool.and_then(|pool| share(self.pools[pool], self.flows.in_pool(pool)));
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

    const PAPER: M21WindowRule =
        M21WindowRule { charge: M21Charge::Flow, mss: Bytes::new(576), header: Bytes::new(42) };
    const WIRE: M21WindowRule =
        M21WindowRule { charge: M21Charge::Packet, mss: Bytes::new(1448), header: Bytes::new(74) };

    #[test]
    fn equation_1_with_the_figures_of_the_paper() {
        let buffer = Bytes::new(64_000);
        assert_eq!(PAPER.window(buffer, 8), Bytes::new(7_958));
        assert_eq!(PAPER.window(Bytes::new(65_536), 106), Bytes::new(576));
        assert_eq!(PAPER.flows_max(Bytes::new(65_536)), 106);
        assert_eq!(M21WindowRule { mss: Bytes::new(1460), ..PAPER }.flows_max(Bytes::new(65_536)), 43);
        assert_eq!(PAPER.window(buffer, u32::MAX), Bytes::ZERO);
    }

    #[test]
    fn whole_frames_never_overflow_the_buffer() {
        for buffer in [9_000, 64_000, 65_536, 8_000_000] {
            for flows in 1..200 {
                let window = WIRE.window(Bytes::new(buffer), flows).get();
                let packets = window / 1448;
                assert!(packets * 1522 * u64::from(flows) <= buffer);
                assert!((packets + 1) * 1522 * u64::from(flows) > buffer);
            }
        }
        assert_eq!(WIRE.window(Bytes::new(64_000), 43), Bytes::ZERO);
        assert_eq!(WIRE.window(Bytes::new(64_000), 42), Bytes::new(1448));
    }
}
