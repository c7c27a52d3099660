//! Messages between a collector and a unit, and the layout of an event in shared memory.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use fanin_dataflow::{Decision, L1Id, Selection};
use fanin_message::Versions;
use fanin_units::Ratio;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use crate::data::{Data, FragmentError};

/// Versions of the messages after the greeting that this program speaks.
pub const VERSIONS: Versions = Versions { lowest: 1, highest: 1 };
/// Layout of a greeting with versions.
pub(crate) const LAYOUT: u32 = 2;
/// Unit number in a hello that lets the collector choose a free unit.
pub const ANY_UNIT: u64 = 65_535;

const MESSAGE_BYTES: usize = 32;
pub(crate) const ENTRY_BYTES: usize = 32;
const ALIGNMENT: usize = 8;

/// A message between a collector and a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct UnitFrame {
    pub(crate) kind: u32,
    pub(crate) small: u32,
    pub(crate) event: u64,
    pub(crate) first: u64,
    pub(crate) second: u64,
}

pub(crate) const HELLO: u32 = 1;
pub(crate) const MEMORY: u32 = 2;
pub(crate) const EVENT: u32 = 3;
pub(crate) const DECISION: u32 = 4;
pub(crate) const OTHER_VERSIONS: u32 = 5;

impl UnitFrame {
    /// Makes a greeting or its refusal with this side's versions.
    pub(crate) fn with_versions(kind: u32, first: u64, second: u64) -> Self {
        let event = u64::from(VERSIONS.lowest) | u64::from(VERSIONS.highest) << 16;
        Self { kind, small: LAYOUT, event, first, second }
    }

    /// Returns the versions in a greeting or its refusal; `None` if it has an unknown layout or no version.
    pub(crate) fn versions(&self) -> Option<Versions> {
        let versions = Versions { lowest: self.event as u16, highest: (self.event >> 16) as u16 };
        let is_valid = self.small == LAYOUT && self.event >> 32 == 0 && versions.lowest <= versions.highest;
        is_valid.then_some(versions)
    }

    fn to_bytes(self) -> [u8; MESSAGE_BYTES] {
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..4].copy_from_slice(&self.kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.small.to_le_bytes());
        for (place, number) in [self.event, self.first, self.second].into_iter().enumerate() {
            bytes[8 + 8 * place..16 + 8 * place].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; MESSAGE_BYTES]) -> Self {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Self { kind: word(0), small: word(4), event: long(8), first: long(16), second: long(24) }
    }
}

/// Sends a message, together with a file descriptor if given.
pub(crate) fn send(stream: &UnixStream, frame: UnitFrame, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let bytes = frame.to_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let mut sent = 0;
    while sent < bytes.len() {
        let now = sendmsg(stream, &[IoSlice::new(&bytes[sent..])], &mut control, SendFlags::NOSIGNAL);
        match now {
            Ok(count) => sent += count,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        control.clear();
    }
    Ok(())
}

/// Waits for a message, with the file descriptor that may accompany it. Returns `None` at the end of the connection.
pub(crate) fn receive(stream: &mut UnixStream) -> io::Result<Option<(UnitFrame, Option<OwnedFd>)>> {
    let mut bytes = [0; MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(&*stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) => break message.bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let mut fd = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            fd = fds.last().or(fd);
        }
    }
    if received == 0 {
        return Ok(None);
    }
    stream.read_exact(&mut bytes[received..])?;
    Ok(Some((UnitFrame::from_bytes(&bytes), fd)))
}

/// Encodes a decision as a message.
pub(crate) fn encode_decision(event: L1Id, decision: &Decision) -> UnitFrame {
    let (small, first) = match decision {
        Decision::Reject => (0, 0),
        Decision::Accept => (1, 0),
        Decision::Collect(Selection::Readouts(share)) => (3, share.get()),
        Decision::Collect(Selection::Fragments(share)) => (4, share.get()),
        Decision::Collect(_) => (2, 0),
    };
    UnitFrame { kind: DECISION, small, event: event.0, first, second: 0 }
}

/// Returns the decision in a message; `None` if the decision or the share is invalid.
pub(crate) fn decode_decision(frame: &UnitFrame) -> Option<Decision> {
    let share = || Some(Ratio::new(frame.first)).filter(|share| *share <= Ratio::ONE);
    match frame.small {
        0 => Some(Decision::Reject),
        1 => Some(Decision::Accept),
        2 => Some(Decision::Collect(Selection::Rest)),
        3 => Some(Decision::Collect(Selection::Readouts(share()?))),
        4 => Some(Decision::Collect(Selection::Fragments(share()?))),
        _ => None,
    }
}

/// Returns the bytes of memory that an event takes, and its number of fragments.
///
/// # Errors
/// If the data are no valid fragments.
pub(crate) fn room(data: &Data) -> Result<(usize, usize), FragmentError> {
    let (mut count, mut bytes) = (0, 0);
    for fragment in data.fragments() {
        count += 1;
        bytes += fragment?.bytes.len().next_multiple_of(ALIGNMENT);
    }
    Ok((count * ENTRY_BYTES + bytes, count))
}

/// Writes an event with `count` fragments into memory, which must have the bytes that [`room`] returns.
pub(crate) fn lay_out(data: &Data, count: usize, memory: &mut [u8]) {
    let (table, _) = memory.split_at_mut(count * ENTRY_BYTES);
    let table_bytes = table.len();
    let mut at = table_bytes;
    for (place, fragment) in data.fragments().flatten().enumerate() {
        let entry = &mut memory[place * ENTRY_BYTES..(place + 1) * ENTRY_BYTES];
        entry[..4].copy_from_slice(&fragment.source.to_le_bytes());
        entry[4..8].copy_from_slice(&fragment.status.to_le_bytes());
        entry[8..12].copy_from_slice(&fragment.checksum.to_le_bytes());
        entry[12..16].fill(0);
        entry[16..24].copy_from_slice(&(at as u64).to_le_bytes());
        entry[24..32].copy_from_slice(&(fragment.bytes.len() as u64).to_le_bytes());
        memory[at..at + fragment.bytes.len()].copy_from_slice(fragment.bytes);
        at += fragment.bytes.len().next_multiple_of(ALIGNMENT);
    }
}
