//! The M21TCP stage (Adesanmi and Mhamdi, "M21TCP", §III). It counts the flows to each output. It lowers the window in the TCP
//! option of frames to that output, and with `rewrite_echo` in its echo on the way back. It changes no other field of TCP.
//!
//! The worker of an output counts its flows and publishes their window in [`SharedCounts`], because another worker may serve the reverse path.
//!
//! The option: kind 253 (RFC 4727), length 8, a 16-bit identifier (forward or echo), and 32 bits of window in bytes.

use std::sync::Arc;

use fanin_queueing::{FlowStage, Layout, M21Charge, M21Switch, M21WindowRule};
use fanin_units::{Bytes, Instant, MIX_STEP};

use crate::config::Config;
use crate::frame::{Ethernet, IpHeader, checksum_update};
use crate::workers::{NO_WINDOW, SharedCounts};

/// The option's kind.
pub const M21_KIND: u8 = 253;
/// The option on the way to the receiver.
pub const M21_FORWARD: u16 = 1;
/// The receiver's answer on the way back to the sender.
pub const M21_ECHO: u16 = 2;
const OPTION_BYTES: usize = 8;
const NO_OPERATION: u8 = 1;
const END: u8 = 0;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;

/// The stage of a switch.
#[derive(Debug)]
pub(crate) struct M21Stage {
    switch: M21Switch,
    /// Least window (one segment) of each port with the stage enabled.
    segments: Vec<Option<u32>>,
    rewrites_echo: bool,
    shared: Arc<SharedCounts>,
}

impl M21Stage {
    /// Makes the stage; `None` if no port has one.
    pub(crate) fn new(config: &Config, shared: &Arc<SharedCounts>) -> Option<Self> {
        let first = config.port.iter().find_map(|port| port.m21)?;
        // An output's buffer limits its flows; an output without the stage limits none.
        let limits = config.port.iter().map(|port| match port.m21 {
            Some(m21) => m21.buffer.or(port.buffer).unwrap_or(config.switch.buffer),
            None => Bytes::MAX,
        });
        let rule = M21WindowRule { charge: M21Charge::Packet, mss: first.mss, header: first.header };
        let layout = Layout::dedicated(limits.collect());
        let stage = Self {
            switch: M21Switch::new(&layout, rule, first.flows, first.idle),
            segments: config.port.iter().map(|port| port.m21.map(|m21| m21.mss.get() as u32)).collect(),
            rewrites_echo: first.rewrite_echo,
            shared: Arc::clone(shared),
        };
        for port in 0..config.port.len() {
            stage.settle(port);
        }
        Some(stage)
    }

    /// Returns the number of flows to a port; `None` if the stage is off there.
    pub(crate) fn flows(&self, port: usize) -> Option<u32> {
        self.segments[port].map(|_| self.switch.flows().to_output(port))
    }

    /// Counts a frame from an input to an output, and lowers the windows in its options. `bytes` is its length. `head` holds at
    /// least its headers.
    pub(crate) fn handle_frame(
        &mut self,
        now: Instant,
        input: usize,
        output: usize,
        head: &mut [u8],
        bytes: u32,
        ethernet: &Ethernet,
    ) {
        if self.segments[input].is_none() && self.segments[output].is_none() {
            return;
        }
        let network = IpHeader::parse(head, ethernet);
        let Some(segment) = SegmentHeader::parse(head, bytes, ethernet, &network) else { return };
        if self.segments[output].is_some() {
            self.switch.handle_frame(now, flow(&network), segment.stage(), input, output);
            segment.lower(head, M21_FORWARD, self.settle(output));
        }
        // The echo's input is the output of the data.
        if self.rewrites_echo && self.segments[input].is_some() {
            segment.lower(head, M21_ECHO, self.shared.window(input));
        }
    }

    /// Forgets flows to these outputs that have been idle for too long.
    pub(crate) fn expire(&mut self, now: Instant, outputs: &[usize]) {
        self.switch.expire(now);
        for &output in outputs {
            self.settle(output);
        }
    }

    /// Computes the window of each flow to an output from the number of flows, and publishes the window.
    fn settle(&self, output: usize) -> u32 {
        let window = match (self.segments[output], self.switch.window(output, output)) {
            // A sender cannot go below a segment.
            (Some(least), Some(window)) => u32::try_from(window.get()).unwrap_or(NO_WINDOW).max(least),
            _ => NO_WINDOW,
        };
        self.shared.set_window(output, window);
        window
    }
}

/// Hashes one direction of a connection to a number.
fn flow(network: &IpHeader) -> u64 {
    let fold = |value: u128| (value as u64) ^ (value >> 64) as u64;
    let ports = u64::from(network.ports.0) << 16 | u64::from(network.ports.1);
    let mut hash = 0u64;
    for word in [fold(network.source), fold(network.destination), ports] {
        hash = (hash.rotate_left(23) ^ word).wrapping_mul(MIX_STEP);
    }
    hash ^ (hash >> 29)
}

/// A TCP segment's header in a frame.
#[derive(Debug, Clone, Copy)]
struct SegmentHeader {
    start: usize,
    options_end: usize,
    flags: u8,
    payload: u32,
}

impl SegmentHeader {
    fn parse(head: &[u8], bytes: u32, ethernet: &Ethernet, network: &IpHeader) -> Option<Self> {
        if network.protocol != 6 || network.transport == 0 {
            return None;
        }
        let start = network.transport;
        let header = head.get(start..start + 20)?;
        let options_end = start + usize::from(header[12] >> 4) * 4;
        if options_end < start + 20 || options_end > head.len() {
            return None;
        }
        // Ethernet pads short frames, so the length comes from IP.
        let packet = &head[ethernet.payload..];
        let ip = match network.version {
            4 => u32::from(u16::from_be_bytes([packet[2], packet[3]])),
            _ => u32::from(u16::from_be_bytes([packet[4], packet[5]])) + 40,
        };
        let end = (ethernet.payload as u32 + ip).min(bytes);
        Some(Self { start, options_end, flags: header[13], payload: end.saturating_sub(options_end as u32) })
    }

    const fn stage(&self) -> FlowStage {
        if self.flags & (FIN | RST) != 0 {
            FlowStage::Closes
        } else if self.flags & SYN != 0 {
            FlowStage::Opens
        } else if self.payload > 0 {
            FlowStage::Carries
        } else {
            FlowStage::Acknowledges
        }
    }

    /// Lowers the window of the option with this identifier, if it is larger.
    fn lower(&self, head: &mut [u8], id: u16, window: u32) {
        let mut at = self.start + 20;
        while at < self.options_end {
            let len = match head[at] {
                END => return,
                NO_OPERATION => 1,
                _ => match head.get(at + 1) {
                    Some(&len) if len >= 2 && at + usize::from(len) <= self.options_end => usize::from(len),
                    _ => return,
                },
            };
            if head[at] == M21_KIND && len == OPTION_BYTES && head[at + 2..at + 4] == id.to_be_bytes() {
                let place = at + 4;
                let stated =
                    u32::from_be_bytes([head[place], head[place + 1], head[place + 2], head[place + 3]]);
                if stated > window {
                    self.write(head, place, window.to_be_bytes());
                }
                return;
            }
            at += len;
        }
    }

    /// Writes four bytes, and updates the checksum for the words around them (RFC 1624).
    fn write(&self, head: &mut [u8], place: usize, value: [u8; 4]) {
        let first = self.start + (place - self.start) / 2 * 2;
        let words = (place + 4 - first).div_ceil(2);
        let word = |head: &[u8], number: usize| {
            u16::from_be_bytes([head[first + 2 * number], head[first + 2 * number + 1]])
        };
        // The options end on a multiple of four, so that the last word is whole.
        let mut before = [0; 3];
        (0..words).for_each(|number| before[number] = word(head, number));
        head[place..place + 4].copy_from_slice(&value);
        let at = self.start + 16;
        let mut sum = u16::from_be_bytes([head[at], head[at + 1]]);
        for (number, &old) in before[..words].iter().enumerate() {
            sum = checksum_update(sum, old, word(head, number));
        }
        head[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::{M21Spec, PortSpec};
    use crate::frame::checksum;
    use proptest::prelude::*;

    /// A segment with its option behind `padding` bytes.
    pub(crate) fn segment(
        source: u8,
        flags: u8,
        id: u16,
        window: u32,
        padding: usize,
        payload: usize,
    ) -> Vec<u8> {
        let mut options = vec![NO_OPERATION; padding];
        options.extend([M21_KIND, 8]);
        options.extend(id.to_be_bytes());
        options.extend(window.to_be_bytes());
        options.resize(options.len().next_multiple_of(4), END);
        let tcp = 20 + options.len();
        let mut frame = vec![2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, source, 8, 0, 0x45, 0];
        frame.extend(((20 + tcp + payload) as u16).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, source, 10, 0, 0, 7]);
        frame.extend([
            0x13,
            0x88,
            0x1f,
            0x90,
            0,
            0,
            0,
            1,
            0,
            0,
            0,
            2,
            ((tcp / 4) << 4) as u8,
            flags,
            1,
            0,
            0,
            0,
            0,
            0,
        ]);
        frame.extend(options);
        frame.resize(34 + tcp + payload, 0x5a);
        let sum = !(tcp_sum(&frame) as u16);
        frame[50..52].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    /// The sum over pseudo header and segment: 0xffff where the checksum is right.
    pub(crate) fn tcp_sum(frame: &[u8]) -> u32 {
        let pseudo = checksum(&frame[26..34], 6 + (frame.len() - 34) as u32);
        checksum(&frame[34..], pseudo)
    }

    fn stage() -> M21Stage {
        stage_of(M21Spec::default())
    }

    fn stage_of(spec: M21Spec) -> M21Stage {
        let mut config =
            Config { port: (0..3).map(|n| PortSpec::new(&format!("p{n}"))).collect(), ..Config::default() };
        config.port[2].m21 = Some(M21Spec { buffer: Some(Bytes::new(40 * 1522)), ..spec });
        M21Stage::new(&config, &Arc::new(SharedCounts::new(1, 3))).unwrap()
    }

    fn pass(stage: &mut M21Stage, input: usize, output: usize, frame: &mut [u8]) -> u32 {
        let ethernet = Ethernet::parse(frame).unwrap();
        let bytes = frame.len() as u32;
        let before = frame.to_vec();
        stage.handle_frame(Instant::START, input, output, frame, bytes, &ethernet);
        assert_eq!(tcp_sum(frame), 0xffff, "the checksum is wrong");
        let changed: Vec<usize> = (0..frame.len()).filter(|&at| frame[at] != before[at]).collect();
        let option = (54..frame.len()).find(|&at| frame[at] == M21_KIND).unwrap();
        assert!(
            changed.iter().all(|at| (option + 4..option + 8).contains(at) || (50..52).contains(at)),
            "{changed:?}"
        );
        u32::from_be_bytes(frame[option + 4..option + 8].try_into().unwrap())
    }

    #[test]
    fn windows_are_shared_by_the_flows_and_only_lowered() {
        let mut stage = stage();
        let no_limit = u32::MAX;
        let data = |source, window| segment(source, 0x18, M21_FORWARD, window, 2, 100);
        assert_eq!(pass(&mut stage, 0, 2, &mut data(1, no_limit)), 40 * 1448);
        assert_eq!(pass(&mut stage, 1, 2, &mut data(2, no_limit)), 20 * 1448);
        assert_eq!(pass(&mut stage, 0, 2, &mut data(1, 3 * 1448)), 3 * 1448, "a lower window stays");
        // On the reverse path the echo arrives by port 2.
        let mut echo = segment(7, 0x10, M21_ECHO, 40 * 1448, 2, 0);
        assert_eq!(pass(&mut stage, 2, 0, &mut echo), 20 * 1448);
        // Frames between other ports pass unchanged, in both directions.
        assert_eq!(pass(&mut stage, 0, 1, &mut data(3, no_limit)), no_limit);
        assert_eq!(pass(&mut stage, 0, 2, &mut segment(1, 0x10, M21_ECHO, no_limit, 0, 0)), no_limit);
        // A FIN ends a flow; with many, the least window is a segment.
        pass(&mut stage, 1, 2, &mut segment(2, 0x11, M21_FORWARD, 0, 0, 0));
        assert_eq!(stage.flows(2), Some(1));
        for source in 10..110 {
            pass(&mut stage, 0, 2, &mut segment(source, SYN, M21_FORWARD, no_limit, 0, 0));
        }
        assert_eq!(pass(&mut stage, 0, 2, &mut data(1, no_limit)), 1448);
        assert_eq!(stage.flows(1), None);
    }

    #[test]
    fn an_echo_is_lowered_only_with_its_key() {
        for (rewrite_echo, wanted) in [(true, 20 * 1448), (false, 40 * 1448)] {
            let mut stage = stage_of(M21Spec { rewrite_echo, ..M21Spec::default() });
            for source in 1..=2 {
                pass(&mut stage, 0, 2, &mut segment(source, 0x18, M21_FORWARD, u32::MAX, 2, 100));
            }
            let mut echo = segment(7, 0x10, M21_ECHO, 40 * 1448, 2, 0);
            assert_eq!(pass(&mut stage, 2, 0, &mut echo), wanted);
        }
    }

    #[test]
    fn the_header_has_an_earlier_name() {
        for key in ["header", "overhead"] {
            let text = format!(
                "[[port]]\nname = 'a'\ninterface = 'a'\nbuffer = '64 kB'\nm21 = {{ {key} = '80 B' }}"
            );
            let loaded =
                crate::config::load_text("switch", &text).unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(loaded.config.port[0].m21.unwrap().header, Bytes::new(80), "{key}");
        }
    }

    proptest! {
        /// At any offset of the option, only its window and the checksum change, and the checksum is right.
        #[test]
        fn checksums_are_updated_at_any_offset(padding in 0..24usize, window: u32, payload in 0..300usize) {
            let mut stage = stage();
            let mut frame = segment(1, 0x18, M21_FORWARD, window, padding, payload);
            prop_assert_eq!(pass(&mut stage, 0, 2, &mut frame), window.min(40 * 1448));
        }

        /// The stage does not panic at any bytes.
        #[test]
        fn any_bytes_pass(mut frame in prop::collection::vec(any::<u8>(), 14..120), at in 0..100usize, byte: u8) {
            let mut near = segment(1, 0x18, M21_FORWARD, 1 << 20, 1, 30);
            let len = near.len();
            near[at % len] = byte;
            near.truncate(frame.len().max(14));
            for frame in [&mut frame, &mut near] {
                let bytes = frame.len() as u32;
                if let Some(ethernet) = Ethernet::parse(frame) {
                    stage().handle_frame(Instant::START, 0, 2, frame, bytes, &ethernet);
                }
            }
        }
    }
}
