//! TCP segments, with their payload reduced to a length.

use core::fmt::Write;

use fanin_units::wire;

/// Bits of a segment: TCP flags, ECN marks of the IP header, and the options that it carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Flags(u16);

impl Flags {
    /// No bit set.
    pub const NONE: Self = Self(0);
    /// The acknowledgement field is valid. Set on every segment but the first SYN and some RSTs.
    pub const ACK: Self = Self(1);
    /// Opens a connection. Unlike in RFC 9293 it occupies no offset: the stream's first byte has offset 0.
    pub const SYN: Self = Self(1 << 1);
    /// The segment ends with the last byte that the application has written.
    pub const PSH: Self = Self(1 << 2);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(1 << 3);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(1 << 4);
    /// ECN-capable transport (IP header).
    pub const ECT: Self = Self(1 << 5);
    /// Congestion experienced: set by a switch.
    pub const CE: Self = Self(1 << 6);
    /// Carries the timestamp option (RFC 7323).
    pub const TIMESTAMP: Self = Self(1 << 7);
    /// Carries a path window for its own direction, which switches lower.
    pub const PATH_WINDOW: Self = Self(1 << 8);
    /// Carries the echo of the path window that the other end received last.
    pub const PATH_WINDOW_ECHO: Self = Self(1 << 9);
    /// The next segment belongs to the same segmentation-offload burst.
    pub const BURST_CONTINUES: Self = Self(1 << 10);
    /// A retransmission. Not on the wire.
    pub const RETRANSMISSION: Self = Self(1 << 11);
    /// The first SACK block reports a duplicate (RFC 2883; implied by its place on the wire).
    pub const DSACK: Self = Self(1 << 12);
    /// The sender's stream ends here. A FIN occupies one offset, after the last byte.
    pub const FIN: Self = Self(1 << 13);
    /// Resets the connection.
    pub const RST: Self = Self(1 << 14);

    /// Returns true if all bits of `other` are set.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns true if any bit of `other` is set.
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The bits that are set in either.
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The bits that are set in both.
    #[inline]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Number of set bits.
    #[inline]
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Sets the bits of `other`.
    #[inline]
    pub const fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Clears the bits of `other`.
    #[inline]
    pub const fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    /// The bits, as they are stored.
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }
}

/// The flags of the TCP header in tcpdump's letters, such as `S.` for SYN and ACK; `-` for none.
impl core::fmt::Display for Flags {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let letters = [
            (Self::SYN, 'S'),
            (Self::FIN, 'F'),
            (Self::RST, 'R'),
            (Self::PSH, 'P'),
            (Self::ECE, 'E'),
            (Self::CWR, 'W'),
            (Self::ACK, '.'),
        ];
        let mut is_empty = true;
        for (flag, letter) in letters {
            if self.contains(flag) {
                f.write_char(letter)?;
                is_empty = false;
            }
        }
        if is_empty { f.write_char('-') } else { Ok(()) }
    }
}

impl core::ops::BitOr for Flags {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// A block of received bytes, relative to the acknowledgement number of its segment; negative for a
/// duplicate below it (RFC 2883). Reaches 2 GiB either way, which no window exceeds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct SackBlock {
    /// First byte received.
    pub start: i32,
    /// One past the last byte received.
    pub end: i32,
}

/// A segment: plain data of 64 bytes, aligned to a cache line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(align(64))]
pub struct Segment {
    /// Stream offset of the first payload byte; for a pure ACK, the next offset to be sent.
    pub offset: u64,
    /// Offset in the other direction's stream up to which all bytes were received.
    pub ack: u64,
    /// Receive window in bytes, after scaling.
    pub window: u32,
    /// Timestamp value in ticks of the sender's timestamp clock, 0 without the option.
    pub ts_value: u32,
    /// Timestamp echoed, 0 without the option.
    pub ts_echo: u32,
    /// The path window in bytes (with [`Flags::PATH_WINDOW`]).
    pub path_window: u32,
    /// The echoed path window in bytes (with [`Flags::PATH_WINDOW_ECHO`]).
    pub path_window_echo: u32,
    /// SACK blocks. An empty block (start = end) is absent, and no block follows it.
    pub sack: [SackBlock; 3],
    /// Payload in bytes.
    pub payload: u16,
    /// TCP flags, IP ECN bits, options.
    pub flags: Flags,
}

/// Flags, stream offsets with the payload's length in brackets, acknowledgement, window and SACK blocks, as tcpdump prints
/// them: `P. 0:1448(1448) ack 0 win 64240`.
impl core::fmt::Display for Segment {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let end = self.offset + u64::from(self.payload);
        write!(f, "{} {}:{end}({})", self.flags, self.offset, self.payload)?;
        if self.flags.contains(Flags::ACK) {
            write!(f, " ack {}", self.ack)?;
        }
        write!(f, " win {}", self.window)?;
        for block in &self.sack[..self.sack_count()] {
            let [start, end] = [block.start, block.end].map(|edge| self.ack.wrapping_add_signed(edge.into()));
            write!(f, " sack {start}:{end}")?;
        }
        Ok(())
    }
}

/// Options that only a SYN carries (RFC 9293 §3.2, RFC 7323, RFC 2018). Timestamps are [`Flags::TIMESTAMP`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SynOptions {
    /// Largest segment that the sender of the SYN accepts, TCP options included.
    pub mss: u16,
    /// Window scale of the SYN's sender, `None` without the option.
    pub window_scale: Option<u8>,
    /// True if the sender of the SYN accepts SACK blocks.
    pub sack_permitted: bool,
}

/// A SYN without options: RFC 9293 §3.7.1 assumes an MSS of 536 bytes.
impl Default for SynOptions {
    fn default() -> Self {
        Self { mss: 536, window_scale: None, sack_permitted: false }
    }
}

/// Largest TCP option space in bytes (RFC 9293 §3.1).
const OPTION_BYTES_MAX: u32 = wire::TCP_OPTIONS_MAX;
/// Timestamp option with its two bytes of padding (RFC 7323 appendix A).
pub(crate) const TIMESTAMP_BYTES: u32 = wire::TCP_TIMESTAMPS;
/// The flags of segments that carry path windows.
const PATH_WINDOWS: Flags = Flags::PATH_WINDOW.union(Flags::PATH_WINDOW_ECHO);
/// Bytes of M21TCP's path-window option: kind, length, 16-bit id for forward or echo, 32-bit window.
pub(crate) const PATH_WINDOW_BYTES: u32 = wire::TCP_M21;

impl Segment {
    /// The options of a SYN. They are stored in the place of the third SACK block, as a SYN has none.
    pub fn syn_options(&self) -> SynOptions {
        let SackBlock { start: mss, end: bits } = self.sack[2];
        if !self.flags.contains(Flags::SYN) || mss == 0 {
            return SynOptions::default();
        }
        let scale = bits & 0xff;
        SynOptions {
            mss: mss as u16,
            window_scale: (scale > 0).then(|| scale as u8 - 1),
            sack_permitted: bits & 0x100 != 0,
        }
    }

    /// Sets the options of a SYN. A window scale above 14 counts as 14 (RFC 7323 §2.3).
    ///
    /// # Panics
    /// If the segment is no SYN, or if the MSS is zero.
    pub fn set_syn_options(&mut self, options: SynOptions) {
        assert!(
            self.flags.contains(Flags::SYN) && options.mss > 0,
            "{options:?} are written on {:?}",
            self.flags
        );
        let scale = options.window_scale.map_or(0, |scale| i32::from(scale.min(14)) + 1);
        let bits = scale | if options.sack_permitted { 0x100 } else { 0 };
        self.sack[2] = SackBlock { start: i32::from(options.mss), end: bits };
    }

    /// The offset after the segment: payload and FIN occupy offsets.
    #[inline]
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.payload) + u64::from(self.flags.contains(Flags::FIN))
    }

    /// Number of SACK blocks in the segment.
    #[inline]
    pub fn sack_count(&self) -> usize {
        self.sack.iter().take_while(|block| block.start != block.end).count()
    }

    /// Bytes of TCP options, padded to four as Linux lays them out (`tcp_options_write`).
    #[inline]
    pub fn option_bytes(&self) -> u32 {
        let bytes = if self.flags.contains(Flags::TIMESTAMP) { TIMESTAMP_BYTES } else { 0 };
        let has_others =
            self.flags.intersects(Flags::SYN.union(PATH_WINDOWS)) || self.sack[0].start != self.sack[0].end;
        if has_others { bytes + self.other_option_bytes() } else { bytes }
    }

    /// Bytes of the options of a SYN, of path windows and of SACK blocks.
    fn other_option_bytes(&self) -> u32 {
        let mut bytes = PATH_WINDOW_BYTES * self.flags.intersection(PATH_WINDOWS).count();
        if self.flags.contains(Flags::SYN) {
            // MSS 4, window scale 4 with padding, SACK permitted 4. In Linux the latter's 2 bytes share the timestamp's
            // padding; the difference is 4 bytes on a SYN.
            bytes += 8 + if self.flags.contains(Flags::TIMESTAMP) { 0 } else { 4 };
        }
        if self.sack[0].start != self.sack[0].end {
            bytes += 4 + 8 * self.sack_count() as u32;
        }
        bytes
    }

    /// Number of SACK blocks that fit into a segment with the options of these flags.
    #[inline]
    pub fn sack_blocks_max(flags: Flags) -> usize {
        let bare = Self { flags, ..Self::default() };
        ((OPTION_BYTES_MAX - bare.option_bytes()).saturating_sub(4) / 8).min(3) as usize
    }

    /// Size of the IP packet in bytes.
    #[inline]
    pub fn ip_bytes(&self) -> u32 {
        wire::IP_TCP_HEADERS + self.option_bytes() + u32::from(self.payload)
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn options_of_a_syn() {
        let mut syn = Segment { flags: Flags::SYN, ..Segment::default() };
        assert_eq!(syn.syn_options(), SynOptions::default());
        for options in [
            SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true },
            SynOptions { mss: 65_535, window_scale: Some(0), sack_permitted: false },
            SynOptions { mss: 536, window_scale: None, sack_permitted: true },
        ] {
            syn.set_syn_options(options);
            assert_eq!((syn.syn_options(), syn.sack_count()), (options, 0));
        }
        let fin = Segment { offset: 10, payload: 5, flags: Flags::FIN | Flags::ACK, ..Segment::default() };
        assert_eq!((syn.end(), fin.end()), (0, 16));
    }

    #[test]
    fn segments_print_as_tcpdump_does() {
        let mut segment = Segment { offset: 5, payload: 10, window: 7, ack: 100, ..Segment::default() };
        assert_eq!(segment.to_string(), "- 5:15(10) win 7");
        segment.flags = Flags::SYN | Flags::ACK | Flags::ECE | Flags::TIMESTAMP;
        assert_eq!(segment.to_string(), "SE. 5:15(10) ack 100 win 7");
        segment.flags = Flags::ACK;
        segment.sack[0] = SackBlock { start: -20, end: 30 };
        assert_eq!(segment.to_string(), ". 5:15(10) ack 100 win 7 sack 80:130");
    }

    #[test]
    fn sizes_of_packets() {
        assert_eq!((size_of::<Segment>(), align_of::<Segment>()), (64, 64));
        let full = Segment { payload: 1460, flags: Flags::ACK, ..Segment::default() };
        assert_eq!(full.ip_bytes(), 1500);
        let stamped = Segment { payload: 1448, flags: Flags::ACK | Flags::TIMESTAMP, ..Segment::default() };
        assert_eq!(stamped.ip_bytes(), 1500);
        let ack = Segment { flags: Flags::ACK, ..Segment::default() };
        assert_eq!(ack.ip_bytes(), 40);
        let mut sacked = Segment { flags: Flags::ACK | Flags::TIMESTAMP, ..Segment::default() };
        sacked.sack[0] = SackBlock { start: 1448, end: 2896 };
        assert_eq!(sacked.option_bytes(), 24);
        assert_eq!(Segment::sack_blocks_max(Flags::TIMESTAMP), 3);
        assert_eq!(Segment::sack_blocks_max(Flags::TIMESTAMP | Flags::PATH_WINDOW), 2);
    }
}
