//! The frames seen on one link, and their bytes.

use std::io::{self, Write};

use fanin_network::{FrameOverhead, PortIndex};
use fanin_tcp::{Flags, Segment, SynOptions};
use fanin_units::{Bytes, Instant, Rate, wire};

/// A frame seen on a tapped link, when its last bit arrived at the far end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameSeen {
    /// Time at which the frame's last bit arrived at the far end.
    pub at: Instant,
    /// Link and direction of the frame.
    pub port: PortIndex,
    /// The connection end that receives the frame.
    pub end: u32,
    /// Bytes on the wire, everything counted.
    pub wire_bytes: u32,
    /// The segment that the frame carries.
    pub segment: Segment,
}

/// Frames seen on one link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkCapture {
    /// The link's name, from the scenario's `record.capture`.
    pub link: String,
    /// The link's rate.
    pub rate: Rate,
    /// The bytes that the link adds to an IP packet.
    pub framing: FrameOverhead,
    /// Right shift of the windows in the headers.
    pub window_scale: u8,
    /// The frames, in the order of time.
    pub frames: Vec<FrameSeen>,
    /// Destination and source node of the frames to each connection end, by the end's number.
    pub ends: Vec<[u32; 2]>,
    /// Names of the nodes.
    pub nodes: Vec<String>,
}

/// The TCP port of a connection's second end.
const SERVER_PORT: u16 = 9_000;
/// The TCP port of the first connection's first end; later ones count up.
const CLIENT_PORT: u16 = 32_768;

const ETHERNET_HEADER: usize = wire::ETHERNET_HEADER as usize;
const IP_BYTES: usize = wire::IP_HEADER as usize;
const TCP_BYTES: usize = wire::TCP_HEADER as usize;
/// The protocol field of PPP for IPv4 (RFC 1332): the only header of a point-to-point link.
const PPP_IPV4: [u8; wire::PPP_HEADER as usize] = [0x00, 0x21];
/// The check sequence of Ethernet, which captures leave out.
const CHECK_BYTES: u32 = wire::ETHERNET_CHECK;

impl LinkCapture {
    /// Writes the frames as pcapng, with the headers of real frames and correct checksums. The payload is all zeros and
    /// left out.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let application = concat!("fanin ", env!("CARGO_PKG_VERSION"));
        let mut capture = fanin_report::Capture::new(out, application, 0)?;
        let (link, uncaptured_bytes) = if self.framing == FrameOverhead::POINT_TO_POINT {
            (capture.add_ppp_interface(&self.link, self.rate)?, 0)
        } else {
            (capture.add_interface(&self.link, self.rate, Bytes::ZERO)?, CHECK_BYTES)
        };
        for seen in &self.frames {
            let head = self.head(seen);
            let length = self.framing.frame_bytes(seen.segment.ip_bytes()) - uncaptured_bytes;
            capture.write_frame(link, seen.at, &head[..head.len().min(length as usize)], length)?;
        }
        capture.finish()?;
        Ok(())
    }

    /// Returns the headers of a frame: link (Ethernet or PPP), IPv4 and TCP.
    pub fn head(&self, seen: &FrameSeen) -> Vec<u8> {
        let [from, to] = {
            let [to_node, from_node] = self.ends[seen.end as usize];
            [from_node, to_node]
        };
        let segment = &seen.segment;
        let client = CLIENT_PORT + (seen.end / 2 % u32::from(u16::MAX - CLIENT_PORT)) as u16;
        // The first end of a connection is the client; a frame to it comes from the server.
        let (source, destination) =
            if seen.end.is_multiple_of(2) { (SERVER_PORT, client) } else { (client, SERVER_PORT) };
        let mut bytes = Vec::with_capacity(ETHERNET_HEADER + IP_BYTES + TCP_BYTES + 40);
        if self.framing == FrameOverhead::POINT_TO_POINT {
            bytes.extend(PPP_IPV4);
        } else {
            for node in [to, from] {
                // A locally administered address.
                bytes.extend([2, 0]);
                bytes.extend(node.to_be_bytes());
            }
            bytes.extend([0x08, 0x00]);
        }
        ip_header(&mut bytes, segment, [address(from), address(to)]);
        self.tcp_header(&mut bytes, segment, [address(from), address(to)], [source, destination]);
        bytes
    }

    fn tcp_header(&self, bytes: &mut Vec<u8>, segment: &Segment, addresses: [[u8; 4]; 2], ports: [u16; 2]) {
        let start = bytes.len();
        let flags = segment.flags;
        let is_syn = flags.contains(Flags::SYN);
        bytes.extend(ports[0].to_be_bytes());
        bytes.extend(ports[1].to_be_bytes());
        // A SYN takes the number before the first byte of the stream.
        let sequence = if is_syn { 0 } else { (segment.offset as u32).wrapping_add(1) };
        bytes.extend(sequence.to_be_bytes());
        let acks = flags.contains(Flags::ACK);
        let ack = if acks { (segment.ack as u32).wrapping_add(1) } else { 0 };
        bytes.extend(ack.to_be_bytes());
        let header_bytes = TCP_BYTES + segment.option_bytes() as usize;
        let bit = |flag: Flags, value: u8| if flags.contains(flag) { value } else { 0 };
        bytes.push((header_bytes as u8 / 4) << 4);
        bytes.push(
            bit(Flags::FIN, 0x01)
                | bit(Flags::SYN, 0x02)
                | bit(Flags::RST, 0x04)
                | bit(Flags::PSH, 0x08)
                | bit(Flags::ACK, 0x10)
                | bit(Flags::ECE, 0x40)
                | bit(Flags::CWR, 0x80),
        );
        // The window of a SYN is never scaled.
        let window = if is_syn { segment.window } else { segment.window >> self.window_scale };
        bytes.extend(u16::try_from(window).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend([0; 4]);
        self.tcp_options(bytes, segment);
        bytes.resize(start + header_bytes, 1);

        let tcp_bytes = header_bytes as u16 + segment.payload;
        let mut sum = Sum::default();
        sum.add(&addresses[0]);
        sum.add(&addresses[1]);
        sum.add(&[0, 6]);
        sum.add(&tcp_bytes.to_be_bytes());
        sum.add(&bytes[start..]);
        bytes[start + 16..start + 18].copy_from_slice(&sum.checksum());
    }

    fn tcp_options(&self, bytes: &mut Vec<u8>, segment: &Segment) {
        const PADDING: [u8; 2] = [1, 1];
        let flags = segment.flags;
        let mut permitted = PADDING;
        if flags.contains(Flags::SYN) {
            let SynOptions { mss, window_scale, sack_permitted } = segment.syn_options();
            bytes.extend([2, 4]);
            bytes.extend(mss.to_be_bytes());
            bytes.extend(window_scale.map_or([1; 4], |scale| [1, 3, 3, scale]));
            if sack_permitted {
                permitted = [4, 2];
            }
            if !flags.contains(Flags::TIMESTAMP) {
                bytes.extend(PADDING);
                bytes.extend(permitted);
            }
        }
        if flags.contains(Flags::TIMESTAMP) {
            bytes.extend(permitted);
            bytes.extend([8, 10]);
            bytes.extend(segment.ts_value.to_be_bytes());
            bytes.extend(segment.ts_echo.to_be_bytes());
        }
        for (flag, id, window) in [
            (Flags::PATH_WINDOW, 1, segment.path_window),
            (Flags::PATH_WINDOW_ECHO, 2, segment.path_window_echo),
        ] {
            if flags.contains(flag) {
                // Kind 253 for experiments, the length, the identifier of forward or echo, and the window.
                bytes.extend([253, 8, 0, id]);
                bytes.extend(window.to_be_bytes());
            }
        }
        let blocks = segment.sack_count();
        if blocks > 0 {
            bytes.extend([1, 1, 5, 2 + 8 * blocks as u8]);
            let number = |relative: i32| (segment.ack as u32).wrapping_add_signed(relative).wrapping_add(1);
            for block in &segment.sack[..blocks] {
                bytes.extend(number(block.start).to_be_bytes());
                bytes.extend(number(block.end).to_be_bytes());
            }
        }
    }
}

/// Returns a node's address in 10.0.0.0/8.
fn address(node: u32) -> [u8; 4] {
    let [_, high, middle, low] = (node + 1).to_be_bytes();
    [10, high, middle, low]
}

fn ip_header(bytes: &mut Vec<u8>, segment: &Segment, addresses: [[u8; 4]; 2]) {
    let start = bytes.len();
    let ecn = if segment.flags.contains(Flags::CE) {
        3
    } else if segment.flags.contains(Flags::ECT) {
        2
    } else {
        0
    };
    bytes.extend([0x45, ecn]);
    bytes.extend((segment.ip_bytes() as u16).to_be_bytes());
    // No identification, since the packet must not be fragmented; 64 hops; TCP.
    bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    bytes.extend(addresses[0]);
    bytes.extend(addresses[1]);
    let mut sum = Sum::default();
    sum.add(&bytes[start..]);
    bytes[start + 10..start + 12].copy_from_slice(&sum.checksum());
}

/// The Internet checksum (RFC 1071).
#[derive(Default)]
struct Sum(u32);

impl Sum {
    /// Adds bytes to the sum; only the last addition may have an odd length.
    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks(2) {
            self.0 += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        }
    }

    fn checksum(&self) -> [u8; 2] {
        let folded = (self.0 & 0xffff) + (self.0 >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        (!(folded as u16)).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanin_tcp::SackBlock;

    fn capture() -> LinkCapture {
        LinkCapture {
            link: "tor:0->collector:0".into(),
            rate: Rate::new(1_000_000_000),
            framing: FrameOverhead::ETHERNET,
            window_scale: 7,
            frames: Vec::new(),
            ends: vec![[0, 1], [1, 0]],
            nodes: vec!["collector:0".into(), "readout:0".into()],
        }
    }

    fn seen(segment: Segment, end: u32) -> FrameSeen {
        FrameSeen { at: Instant::new(1_000_000), port: 0, end, wire_bytes: 0, segment }
    }

    #[test]
    fn headers_add_up() {
        let mut segment = Segment {
            offset: u64::from(u32::MAX),
            ack: 70_000,
            window: 65_535 << 7,
            ts_value: 0x0102_0304,
            payload: 1000,
            flags: Flags::ACK | Flags::PSH | Flags::TIMESTAMP,
            ..Segment::default()
        };
        segment.sack[0] = SackBlock { start: 1448, end: 2896 };
        let head = capture().head(&seen(segment, 0));
        assert_eq!(head.len(), 14 + segment.ip_bytes() as usize - 1000);
        // For the collector, from the readout, by the server's port.
        assert_eq!(head[..14], [2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(head[26..34], [10, 0, 0, 2, 10, 0, 0, 1]);
        assert_eq!(head[34..36], SERVER_PORT.to_be_bytes());
        // The number after a SYN, wrapped.
        assert_eq!(head[38..42], [0, 0, 0, 0]);
        assert_eq!(head[48..50], [0xff, 0xff]);
        // A header with its checksum sums to all ones.
        let mut sum = Sum::default();
        sum.add(&head[14..34]);
        assert_eq!(sum.checksum(), [0, 0]);
        let mut sum = Sum::default();
        sum.add(&head[26..34]);
        sum.add(&[0, 6]);
        sum.add(&(head.len() as u16 - 34 + 1000).to_be_bytes());
        sum.add(&head[34..]);
        assert_eq!(sum.checksum(), [0, 0]);
    }

    #[test]
    fn a_syn_announces_what_its_end_accepts_and_other_flags_are_written() {
        let mut syn = Segment { flags: Flags::SYN | Flags::TIMESTAMP, ..Segment::default() };
        syn.set_syn_options(SynOptions { mss: 576, window_scale: Some(9), sack_permitted: true });
        let head = capture().head(&seen(syn, 0));
        assert_eq!((head[47], &head[54..64]), (0x02, &[2, 4, 2, 64, 1, 3, 3, 9, 4, 2][..]));
        let last = Segment { flags: Flags::FIN | Flags::ACK, ..Segment::default() };
        assert_eq!(capture().head(&seen(last, 0))[47], 0x11);
        let reset = Segment { flags: Flags::RST, ..Segment::default() };
        assert_eq!(capture().head(&seen(reset, 0))[47], 0x04);
    }

    #[test]
    fn every_kind_of_option_has_its_length() {
        let kinds = [
            Flags::SYN,
            Flags::SYN | Flags::TIMESTAMP,
            Flags::PATH_WINDOW | Flags::TIMESTAMP,
            Flags::PATH_WINDOW_ECHO,
        ]
        .into_iter()
        .chain([Flags::PATH_WINDOW | Flags::PATH_WINDOW_ECHO]);
        for flags in kinds {
            let segment = Segment { flags: flags | Flags::ACK, ..Segment::default() };
            let mut options = Vec::new();
            capture().tcp_options(&mut options, &segment);
            assert_eq!(options.len(), segment.option_bytes() as usize, "{flags:?}");
        }
    }

    #[test]
    fn a_capture_is_pcapng() {
        let ack = Segment { flags: Flags::ACK, ..Segment::default() };
        let full = Segment { payload: 1460, flags: Flags::ACK, ..Segment::default() };
        let capture = LinkCapture { frames: vec![seen(ack, 1), seen(full, 0)], ..capture() };
        let mut file = Vec::new();
        capture.write(&mut file).unwrap();
        assert_eq!(file[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
        assert!(file.windows(4).any(|bytes| bytes == 1514_u32.to_le_bytes()));
        assert!(file.windows(4).any(|bytes| bytes == 60_u32.to_le_bytes()));
    }

    #[test]
    fn a_point_to_point_link_has_two_bytes_before_the_packet() {
        let full = Segment { payload: 1460, flags: Flags::ACK, ..Segment::default() };
        let capture =
            LinkCapture { framing: FrameOverhead::POINT_TO_POINT, frames: vec![seen(full, 0)], ..capture() };
        assert_eq!(capture.head(&capture.frames[0])[..3], [0x00, 0x21, 0x45]);
        let mut file = Vec::new();
        capture.write(&mut file).unwrap();
        // All of the frame: 2 bytes and a packet of 1500.
        assert!(file.windows(4).any(|bytes| bytes == 1502_u32.to_le_bytes()));
    }
}
