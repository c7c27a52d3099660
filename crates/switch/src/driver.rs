//! Ports and the buffers that they share, as the switch sees them.

use std::fmt;
use std::os::fd::RawFd;
use std::time::Duration;

/// The most frames taken from a port, and given to one, in a round.
pub const BURST: usize = 64;
/// Free buffers kept for drivers: with fewer, frames are dropped rather than the drivers starved.
pub(crate) const ROOM_MIN: usize = 2 * BURST;

/// A frame that has come in.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<H> {
    /// Where it lies; whoever holds this owns the frame.
    pub handle: H,
    /// All its bytes, without the check sequence.
    pub bytes: u32,
}

/// A set of ports whose frames can move from any one to any other without being copied.
///
/// Handles are plain values, so that queues can hold them; each stands for one frame, which is freed or transmitted once.
pub trait Driver {
    /// Where a frame lies.
    type Handle: Copy + Default + fmt::Debug + Send + 'static;

    /// Number of ports.
    fn ports_len(&self) -> usize;

    /// Takes up to `frames_max` frames that have come in by a port, in their order, and adds them to `into`.
    fn receive(&mut self, port: usize, frames_max: usize, into: &mut Vec<Received<Self::Handle>>);

    /// Sends frames by a port, in their order. Returns how many it took: the first so many. The others stay with the caller.
    fn transmit(&mut self, port: usize, frames: &[Received<Self::Handle>]) -> usize;

    /// Called once a round for every port: what was handed over goes out now, and what was sent is freed.
    fn flush(&mut self, port: usize);

    /// The start of a frame: at least its headers, where it has them.
    fn head(&self, handle: Self::Handle) -> &[u8];

    /// As [`Self::head`], to be changed.
    fn head_mut(&mut self, handle: Self::Handle) -> &mut [u8];

    /// Adds `bytes` bytes of room at the front of a frame; `false` where there are none.
    fn grow_front(&mut self, handle: &mut Self::Handle, bytes: u16) -> bool;

    /// Cuts bytes off the front of a frame.
    fn cut_front(&mut self, handle: &mut Self::Handle, bytes: u16);

    /// A frame with these bytes; `None` where there is no memory.
    fn make(&mut self, frame: &[u8]) -> Option<Self::Handle>;

    /// Adds all bytes of a frame to `into`.
    fn copy_out(&self, frame: Received<Self::Handle>, into: &mut Vec<u8>);

    /// Gives a frame's memory back.
    fn free(&mut self, frame: Received<Self::Handle>);

    /// Buffers left for new frames.
    fn room(&self) -> usize;

    /// Buffers in all: free, queued, or with the ports.
    fn capacity(&self) -> usize;

    /// A buffer that this worker has freed and that belongs to another, to be sent there.
    fn poll_stray(&mut self, worker: usize) -> Option<Self::Handle>;

    /// A buffer of ours that another worker has freed.
    fn handle_stray(&mut self, handle: Self::Handle);

    /// Whether a port has a link.
    fn is_up(&mut self, port: usize) -> bool;

    /// Frames that a port lost before the switch saw them, where it knows.
    fn missed(&self, port: usize) -> u64 {
        let _ = port;
        0
    }

    /// Whether frames that a port has taken are not on their way yet.
    fn has_unsent(&self, port: usize) -> bool {
        let _ = port;
        false
    }

    /// Sleeps until a frame comes in by any port, `wake` can be read, or the time is over.
    fn wait(&mut self, timeout: Duration, wake: RawFd) {
        crate::sys::poll(&mut [libc::pollfd { fd: wake, events: libc::POLLIN, revents: 0 }], timeout);
    }
}
