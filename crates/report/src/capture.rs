//! Packet captures in pcapng, with nanosecond stamps and several named interfaces.
//!
//! The format is that of draft-ietf-opsawg-pcapng: one section, an interface description for each link, and an enhanced packet
//! block for each frame. Wireshark and tshark read it.

use std::io::{self, Write};

use fanin_units::{Bytes, Instant, Rate};

/// An interface of a [`Capture`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Writes a capture, frame by frame.
#[derive(Debug)]
pub struct Capture<W: Write> {
    out: W,
    epoch_ns: u64,
    /// The most bytes kept of a frame, by interface.
    snap_lengths: Vec<u32>,
    block: Vec<u8>,
}

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const LINKTYPE_ETHERNET: u16 = 1;
const LINKTYPE_PPP: u16 = 9;

const OPTION_END: u16 = 0;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_SPEED: u16 = 8;
const IF_TSRESOL: u16 = 9;
const ISB_IFDROP: u16 = 5;

/// Stamps count 10^-9 seconds.
const NANOSECONDS: u8 = 9;
/// The most bytes of a name that are kept; the format allows 65 535.
const NAME_BYTES_MAX: usize = 256;

impl<W: Write> Capture<W> {
    /// Starts a capture. `application` names the program; `epoch_ns` is the start of the run in
    /// nanoseconds since 1970 (0 for a simulation, which has no date).
    ///
    /// # Errors
    /// If `out` fails, as for the other methods.
    pub fn new(out: W, application: &str, epoch_ns: u64) -> io::Result<Self> {
        let mut capture = Self { out, epoch_ns, snap_lengths: Vec::new(), block: Vec::new() };
        capture.begin(SECTION_HEADER);
        capture.put(&BYTE_ORDER_MAGIC.to_le_bytes());
        capture.put(&1u16.to_le_bytes());
        capture.put(&0u16.to_le_bytes());
        // The section's length is not known beforehand.
        capture.put(&u64::MAX.to_le_bytes());
        capture.option(SHB_USERAPPL, name_bytes(application));
        capture.option(OPTION_END, &[]);
        capture.end()?;
        Ok(capture)
    }

    /// Adds an Ethernet link; keeps the first `snap` bytes of each frame (all if zero).
    ///
    /// # Errors
    /// If writing fails.
    pub fn add_interface(&mut self, name: &str, rate: Rate, snap: Bytes) -> io::Result<InterfaceId> {
        self.add_link(LINKTYPE_ETHERNET, name, rate, snap)
    }

    /// Adds a point-to-point link. Its frames begin with PPP's two-byte protocol field, and are kept whole.
    ///
    /// # Errors
    /// If writing fails.
    pub fn add_ppp_interface(&mut self, name: &str, rate: Rate) -> io::Result<InterfaceId> {
        self.add_link(LINKTYPE_PPP, name, rate, Bytes::ZERO)
    }

    fn add_link(&mut self, link_type: u16, name: &str, rate: Rate, snap: Bytes) -> io::Result<InterfaceId> {
        let id = InterfaceId(u32::try_from(self.snap_lengths.len()).expect("fewer than 2^32 links"));
        let snap = u32::try_from(snap.get()).unwrap_or(0);
        self.begin(INTERFACE_DESCRIPTION);
        self.put(&link_type.to_le_bytes());
        self.put(&0u16.to_le_bytes());
        self.put(&snap.to_le_bytes());
        self.option(IF_NAME, name_bytes(name));
        self.option(IF_SPEED, &rate.get().to_le_bytes());
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.option(OPTION_END, &[]);
        self.end()?;
        self.snap_lengths.push(if snap == 0 { u32::MAX } else { snap });
        Ok(id)
    }

    /// Writes a frame that passed the interface at `at`. `head` is the known beginning of the frame, from the destination
    /// address on and without the check sequence. `length` is the length of the whole frame in bytes.
    ///
    /// # Errors
    /// If writing fails.
    ///
    /// # Panics
    /// If `head` is longer than the frame, or the interface belongs to another capture.
    pub fn write_frame(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        head: &[u8],
        length: u32,
    ) -> io::Result<()> {
        assert!(head.len() as u64 <= u64::from(length), "{} bytes of a frame of {length}", head.len());
        let snap = self.snap_lengths[interface.0 as usize];
        let kept = &head[..head.len().min(snap as usize)];
        let stamp = self.epoch_ns.saturating_add(at.get() / 1_000);
        self.begin(ENHANCED_PACKET);
        self.put(&interface.0.to_le_bytes());
        self.put(&((stamp >> 32) as u32).to_le_bytes());
        self.put(&(stamp as u32).to_le_bytes());
        self.put(&(kept.len() as u32).to_le_bytes());
        self.put(&length.to_le_bytes());
        self.put_padded(kept);
        self.end()
    }

    /// Writes the number of an interface's frames that are missing from the capture until `at`, because their copies were
    /// dropped.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_dropped(&mut self, interface: InterfaceId, at: Instant, dropped: u64) -> io::Result<()> {
        let stamp = self.epoch_ns.saturating_add(at.get() / 1_000);
        self.begin(INTERFACE_STATISTICS);
        self.put(&interface.0.to_le_bytes());
        self.put(&((stamp >> 32) as u32).to_le_bytes());
        self.put(&(stamp as u32).to_le_bytes());
        self.option(ISB_IFDROP, &dropped.to_le_bytes());
        self.option(OPTION_END, &[]);
        self.end()
    }

    /// Returns the writer, for instance to take out the bytes written so far.
    pub fn writer_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Flushes the writer, and returns it.
    ///
    /// # Errors
    /// If flushing fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.put(&kind.to_le_bytes());
        // The length, once it is known.
        self.put(&[0; 4]);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn put_padded(&mut self, bytes: &[u8]) {
        self.put(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put_padded(value);
    }

    fn end(&mut self) -> io::Result<()> {
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.put(&length);
        self.out.write_all(&self.block)
    }
}

/// Returns the bytes of a name up to [`NAME_BYTES_MAX`], cut between characters.
fn name_bytes(name: &str) -> &[u8] {
    let end = (0..=name.len().min(NAME_BYTES_MAX)).rev().find(|&end| name.is_char_boundary(end));
    &name.as_bytes()[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::skip;

    /// An Ethernet, IPv4 and TCP header of a segment with 1000 bytes of payload.
    fn segment_head(sequence: u32) -> Vec<u8> {
        let mut head = Vec::new();
        head.extend([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
        head.extend([0x45, 0, 0x04, 0x10, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        head.extend([0x1F, 0x90, 0x9C, 0x40]);
        head.extend(sequence.to_be_bytes());
        head.extend([0, 0, 0, 1, 0x50, 0x10, 0xFF, 0xFF, 0, 0, 0, 0]);
        head
    }

    fn capture() -> Vec<u8> {
        let mut capture = Capture::new(Vec::new(), "fanin 0.1.0", 1_700_000_000_000_000_000).unwrap();
        let gigabit = Rate::new(1_000_000_000);
        let trunk = capture.add_interface("tor→core-1", Rate::new(10_000_000_000), Bytes::ZERO).unwrap();
        let hop = capture.add_interface("tor→collector-1", gigabit, Bytes::new(40)).unwrap();
        capture.write_frame(trunk, Instant::new(1_234), &segment_head(1), 1054).unwrap();
        capture.write_frame(hop, Instant::new(2_000_123_456_789), &segment_head(1001), 1054).unwrap();
        capture.write_dropped(hop, Instant::new(2_000_123_456_789), 7).unwrap();
        capture.finish().unwrap()
    }

    /// The blocks of a capture: kind and body.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let length = word(bytes, 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(bytes, length - 4) as usize, length, "a block ends with its length");
            blocks.push((word(bytes, 0), &bytes[8..length - 4]));
            bytes = &bytes[length..];
        }
        blocks
    }

    #[test]
    fn blocks_are_laid_out_as_the_draft_says() {
        let capture = capture();
        let blocks = blocks(&capture);
        let kinds: Vec<u32> = blocks.iter().map(|block| block.0).collect();
        assert_eq!(kinds, [SECTION_HEADER, 1, 1, 6, 6, 5]);
        assert_eq!(blocks[5].1[12..24], [5, 0, 8, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        let (_, body) = blocks[4];
        assert_eq!(body[..4], 1u32.to_le_bytes());
        let stamp: u64 = 1_700_000_002_000_123_456;
        assert_eq!(body[4..8], ((stamp >> 32) as u32).to_le_bytes());
        assert_eq!(body[8..12], (stamp as u32).to_le_bytes());
        assert_eq!(body[12..16], 40u32.to_le_bytes(), "cut to the snap length");
        assert_eq!(body[16..20], 1054u32.to_le_bytes());
        assert_eq!(body.len(), 20 + 40);
        // The first interface keeps all 54 bytes that were known, and pads them.
        assert_eq!((blocks[3].1[12], blocks[3].1.len()), (54, 20 + 56));
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let name = "é".repeat(200);
        assert_eq!(name_bytes(&name).len(), 256);
        assert_eq!(name_bytes(&format!("x{name}")).len(), 255);
        assert_eq!(name_bytes(""), b"");
    }

    #[test]
    #[should_panic(expected = "54 bytes of a frame of 53")]
    fn a_head_longer_than_its_frame_is_a_mistake() {
        let mut capture = Capture::new(Vec::new(), "", 0).unwrap();
        let link = capture.add_interface("x", Rate::ZERO, Bytes::ZERO).unwrap();
        let _ = capture.write_frame(link, Instant::START, &segment_head(0), 53);
    }

    /// Wireshark's own reader agrees.
    #[test]
    fn tshark_reads_it() {
        let path = std::env::temp_dir().join(format!("fanin-report-{}.pcapng", std::process::id()));
        std::fs::write(&path, capture()).unwrap();
        let fields =
            ["frame.time_epoch", "frame.interface_name", "frame.len", "frame.cap_len", "tcp.seq_raw"];
        let mut command = std::process::Command::new("tshark");
        command.arg("-n").arg("-r").arg(&path).args(["-T", "fields", "-E", "separator=|"]);
        command.args(fields.iter().flat_map(|field| ["-e", field]));
        let output = command.output();
        std::fs::remove_file(&path).unwrap();
        let output = match output {
            Ok(output) => output,
            Err(error) => return skip(format!("tshark: {error}")),
        };
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(!complaints.contains("damaged") && !complaints.contains("cut short"), "{complaints}");
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}{complaints}");
        assert!(lines[0].starts_with("1700000000.000000001"), "{}", lines[0]);
        assert!(lines[0].ends_with("|tor→core-1|1054|54|1"), "{}", lines[0]);
        // 40 bytes end within the TCP header: the sequence number is just kept.
        assert!(lines[1].starts_with("1700000002.000123456"), "{}", lines[1]);
        assert!(lines[1].contains("|tor→collector-1|1054|40|"), "{}", lines[1]);
    }
}
