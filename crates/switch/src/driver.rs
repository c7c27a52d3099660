//! The interface to ports and their buffers.

use std::fmt;
use std::os::fd::RawFd;
use std::time::Duration;

/// The most frames received from a port, and sent to one, in a round.
pub const BURST: usize = 64;
/// Free buffers that are reserved for drivers: with fewer, arriving frames are dropped.
pub(crate) const ROOM_MIN: usize = 2 * BURST;

/// A received frame.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received<H> {
    /// The handle of the frame; the holder owns the frame.
    pub handle: H,
    /// Length of the frame in bytes, without the check sequence.
    pub bytes: u32,
}

/// A set of ports that share buffers: a frame moves between any two of them without a copy.
///
/// Handles are plain values, so that queues can hold them. Each handle belongs to one frame, which is freed or transmitted
/// once.
pub trait Driver {
    /// A handle of a frame.
    type Handle: Copy + Default + fmt::Debug + Send + 'static;

    /// Returns the number of ports.
    fn ports_len(&self) -> usize;

    /// Appends up to `frames_max` frames received by a port to `into`, in order.
    fn receive(&mut self, port: usize, frames_max: usize, into: &mut Vec<Received<Self::Handle>>);

    /// Sends frames by a port, in order. Returns the number of frames accepted, from the first on. The caller keeps the
    /// others.
    fn transmit(&mut self, port: usize, frames: &[Received<Self::Handle>]) -> usize;

    /// Starts the transmission of frames taken so far, and frees sent ones. Called once a round for every port.
    fn flush(&mut self, port: usize);

    /// Returns the start of a frame: at least its headers, if it has them.
    fn head(&self, handle: Self::Handle) -> &[u8];

    /// The mutable form of [`Self::head`].
    fn head_mut(&mut self, handle: Self::Handle) -> &mut [u8];

    /// Adds `bytes` bytes of room at the front of a frame; returns false without such room.
    fn grow_front(&mut self, handle: &mut Self::Handle, bytes: u16) -> bool;

    /// Cuts bytes off the front of a frame.
    fn cut_front(&mut self, handle: &mut Self::Handle, bytes: u16);

    /// Makes a frame with these bytes; `None` without memory.
    fn make(&mut self, frame: &[u8]) -> Option<Self::Handle>;

    /// Appends all bytes of a frame to `into`.
    fn copy_out(&self, frame: Received<Self::Handle>, into: &mut Vec<u8>);

    /// Frees a frame's memory.
    fn free(&mut self, frame: Received<Self::Handle>);

    /// Buffers left for new frames.
    fn room(&self) -> usize;

    /// Buffers in all: free, queued, or with the ports.
    fn capacity(&self) -> usize;

    /// Returns the next buffer of worker `worker` that this worker has freed. The caller sends it back there.
    fn poll_stray(&mut self, worker: usize) -> Option<Self::Handle>;

    /// Takes back a buffer of this worker that another has freed.
    fn handle_stray(&mut self, handle: Self::Handle);

    /// Returns true if a port has a link.
    fn is_up(&mut self, port: usize) -> bool;

    /// Returns the number of frames that a port lost before the switch received them, if the port counts them.
    fn missed(&self, port: usize) -> u64 {
        let _ = port;
        0
    }

    /// Returns true if a port holds accepted frames that it has not started to send.
    fn has_unsent(&self, port: usize) -> bool {
        let _ = port;
        false
    }

    /// Sleeps until a frame arrives at any port, `wake` is readable, or the time is over.
    fn wait(&mut self, timeout: Duration, wake: RawFd) {
        crate::sys::poll(&mut [libc::pollfd { fd: wake, events: libc::POLLIN, revents: 0 }], timeout);
    }
}
