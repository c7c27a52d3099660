//! Completions by io_uring: multishot receives into buffers chosen by the kernel, and batched writes.
//!
//! io_uring carries established connections without TLS that receive small messages. Listeners and wakers stay with
//! epoll. So do connections during set-up, paused ones, and those that receive a large message. The ring watches
//! epoll's descriptor like any other.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::VecDeque;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::types::{BufRingEntry, CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

/// Submission-queue entries. The queue is submitted early when it is full.
const ENTRIES: u32 = 512;
/// Number of completion-queue entries.
const COMPLETIONS: u32 = 4096;
/// Completions handled before the requests that they caused are submitted.
const BATCH: usize = 128;
/// Number of receive buffers, and their size. Their distance is not a power of two, so their first bytes do not share
/// the same few cache sets.
const BUFFERS: u16 = 1024;
pub(crate) const BUFFER_BYTES: usize = 4096;
const STRIDE: usize = BUFFER_BYTES + 64;
const GROUP: u16 = 0;
const PAGE: usize = 4096;

/// Kinds of a request, in the two highest bits of its user data.
const RECEIVE: u64 = 0;
const SEND: u64 = 1 << 62;
const POLL: u64 = 2 << 62;
const CANCEL: u64 = 3 << 62;
const KIND: u64 = 3 << 62;
/// Mask of the generation's bits, next to the kind.
const GENERATION: u32 = (1 << 30) - 1;

/// A buffer with received bytes, returned to the kernel by [`Uring::recycle`].
#[derive(Debug)]
pub(crate) struct Chunk {
    buffer: u16,
    pub(crate) len: usize,
}

/// A completed request.
pub(crate) enum Completion {
    /// Bytes, the end, or an error of a receiving connection. Without `more`, receiving has stopped.
    Received { index: u32, generation: u32, result: i32, chunk: Option<Chunk>, more: bool },
    /// A write completed: all bytes were written, or it failed.
    Sent { index: u32, generation: u32, result: i32, bytes: Vec<u8>, offered: usize },
}

struct SubmittedWrite {
    index: u32,
    generation: u32,
    bytes: Vec<u8>,
    offset: usize,
}

pub(crate) struct Uring {
    ring: ManuallyDrop<IoUring>,
    memory: ManuallyDrop<BufferRing>,
    tail: u16,
    done: VecDeque<cqueue::Entry>,
    /// Buffers of writes that the kernel has not completed.
    flights: Vec<Option<SubmittedWrite>>,
    free: Vec<u32>,
    epoll: RawFd,
    epoll_watched: bool,
    epoll_ready: bool,
    enabled: bool,
}

// SAFETY: only this value and the kernel use the mapped rings and the buffers. The ring is tied to a thread only when
// it is enabled; the kernel then refuses other threads with an error.
unsafe impl Send for Uring {}

/// The ring of buffer entries, and the buffers.
struct BufferRing {
    ring: NonNull<u8>,
    buffers: NonNull<u8>,
}

impl BufferRing {
    fn layouts() -> (Layout, Layout) {
        let ring = Layout::from_size_align(usize::from(BUFFERS) * size_of::<BufRingEntry>(), PAGE);
        let buffers = Layout::from_size_align(usize::from(BUFFERS) * STRIDE, PAGE);
        (ring.expect("a page is a power of two"), buffers.expect("a page is a power of two"))
    }

    fn new() -> io::Result<Self> {
        let (ring, buffers) = Self::layouts();
        // SAFETY: neither layout has size zero.
        let (ring, buffers) = unsafe { (alloc_zeroed(ring), alloc_zeroed(buffers)) };
        match (NonNull::new(ring), NonNull::new(buffers)) {
            (Some(ring), Some(buffers)) => Ok(Self { ring, buffers }),
            _ => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        let (ring, buffers) = Self::layouts();
        // SAFETY: both were allocated with these layouts, and the kernel no longer uses them (see `Uring::drop`).
        unsafe {
            dealloc(self.ring.as_ptr(), ring);
            dealloc(self.buffers.as_ptr(), buffers);
        }
    }
}

impl Uring {
    /// Creates a ring that also watches `epoll`, which must outlive it.
    ///
    /// # Errors
    ///
    /// The system's error if the kernel is older than 6.1, or if io_uring is disabled.
    pub(crate) fn new(epoll: BorrowedFd<'_>) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_single_issuer()
            .setup_defer_taskrun()
            // The thread that polls first owns the ring.
            .setup_r_disabled()
            .dontfork()
            .build(ENTRIES)?;
        let memory = BufferRing::new()?;
        let address = memory.ring.as_ptr() as u64;
        // SAFETY: the memory is page-aligned and has an entry for each of `BUFFERS` buffers. It is freed only after
        // the ring is closed (see `drop`).
        unsafe { ring.submitter().register_buf_ring_with_flags(address, BUFFERS, GROUP, 0)? };
        let mut uring = Self {
            ring: ManuallyDrop::new(ring),
            memory: ManuallyDrop::new(memory),
            tail: 0,
            done: VecDeque::with_capacity(BATCH),
            flights: Vec::new(),
            free: Vec::new(),
            epoll: epoll.as_raw_fd(),
            epoll_watched: false,
            epoll_ready: false,
            enabled: false,
        };
        for buffer in 0..BUFFERS {
            uring.provide(buffer);
        }
        Ok(uring)
    }

    /// Receives from a connection until cancelled.
    pub(crate) fn receive(&mut self, fd: &OwnedFd, index: u32, generation: u32) {
        let number = RECEIVE | numbered(index, generation);
        let entry = opcode::RecvMulti::new(Fd(fd.as_raw_fd()), GROUP).build().user_data(number);
        // SAFETY: the request refers to no memory but the ring of buffers.
        unsafe { self.push(&entry) };
    }

    /// Cancels receiving; a last [`Completion::Received`] without `more` follows.
    pub(crate) fn cancel_receive(&mut self, index: u32, generation: u32) {
        let number = RECEIVE | numbered(index, generation);
        let entry = opcode::AsyncCancel::new(number).build().user_data(CANCEL);
        // SAFETY: the request refers to no memory.
        unsafe { self.push(&entry) };
    }

    /// Writes all bytes of `bytes` from `offset` on.
    pub(crate) fn send(&mut self, fd: &OwnedFd, index: u32, generation: u32, bytes: Vec<u8>, offset: usize) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            (self.flights.len() - 1) as u32
        });
        let rest = &bytes[offset..];
        let entry = opcode::Send::new(Fd(fd.as_raw_fd()), rest.as_ptr(), rest.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(SEND | u64::from(place));
        self.flights[place as usize] = Some(SubmittedWrite { index, generation, bytes, offset });
        // SAFETY: the bytes stay in `flights`, unmoved and unchanged, until the request completes. `drop` waits for
        // that, or leaks them.
        unsafe { self.push(&entry) };
    }

    /// Returns the bytes of a chunk.
    pub(crate) fn bytes(&self, chunk: &Chunk) -> &[u8] {
        assert!(chunk.len <= BUFFER_BYTES);
        // SAFETY: the kernel has filled that many bytes of this buffer, and does not use it until it is recycled. A
        // chunk is made only from a completion, and consumed by `recycle`.
        unsafe {
            std::slice::from_raw_parts(
                self.memory.buffers.as_ptr().add(usize::from(chunk.buffer) * STRIDE),
                chunk.len,
            )
        }
    }

    /// Returns a buffer to the kernel.
    #[allow(clippy::needless_pass_by_value, reason = "what was given back cannot be read again")]
    pub(crate) fn recycle(&mut self, chunk: Chunk) {
        self.provide(chunk.buffer);
    }

    /// Returns true if a completion is waiting.
    pub(crate) fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Returns the next completion.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Completion> {
        loop {
            let entry = self.done.pop_front()?;
            let (number, result, flags) = (entry.user_data(), entry.result(), entry.flags());
            match number & KIND {
                RECEIVE => {
                    let chunk = cqueue::buffer_select(flags)
                        .map(|buffer| Chunk { buffer, len: usize::try_from(result).unwrap_or(0) });
                    return Some(Completion::Received {
                        index: number as u32,
                        generation: (number >> 32) as u32,
                        result,
                        chunk,
                        more: cqueue::more(flags),
                    });
                }
                SEND => {
                    let place = number as u32;
                    let Some(flight) = self.flights[place as usize].take() else { continue };
                    self.free.push(place);
                    let SubmittedWrite { index, generation, bytes, offset } = flight;
                    let offered = bytes.len() - offset;
                    return Some(Completion::Sent { index, generation, result, bytes, offered });
                }
                POLL => {
                    self.epoll_watched = false;
                    self.epoll_ready = true;
                }
                _ => {}
            }
        }
    }

    /// Returns true if epoll became ready since the last call.
    pub(crate) fn take_epoll_ready(&mut self) -> bool {
        std::mem::take(&mut self.epoll_ready)
    }

    /// Submits the queued requests, and waits for a completion, for at most `timeout`.
    pub(crate) fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if !self.enabled {
            self.ring.submitter().register_enable_rings()?;
            self.enabled = true;
        }
        if !self.epoll_watched {
            let entry = opcode::PollAdd::new(Fd(self.epoll), libc::POLLIN as u32).build().user_data(POLL);
            // SAFETY: the request refers to no memory.
            unsafe { self.push(&entry) };
            self.epoll_watched = true;
        }
        let timespec = timeout.map(|time| Timespec::new().sec(time.as_secs()).nsec(time.subsec_nanos()));
        let mut arguments = SubmitArgs::new();
        if let Some(timespec) = &timespec {
            arguments = arguments.timespec(timespec);
        }
        if !self.done.is_empty() {
            self.submit();
            return Ok(());
        }
        // Waiting completions are handled without a wait.
        let want = usize::from(self.ring.completion().is_empty());
        let result = match want {
            0 => self.ring.submitter().submit_and_wait(1),
            _ => self.ring.submitter().submit_with_args(want, &arguments),
        };
        match result {
            Ok(_) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => {}
            Err(error) => return Err(error),
        }
        self.done.extend(self.ring.completion().take(BATCH));
        Ok(())
    }

    /// Submits the queued requests, without waiting.
    pub(crate) fn submit(&mut self) {
        if self.enabled {
            // If this fails, the next wait submits them, and reports the error.
            let _ = self.ring.submitter().submit();
        }
    }

    /// Queues a request; submits the queue first if it is full.
    ///
    /// # Safety
    ///
    /// The memory of the request has to stay valid until it completes.
    unsafe fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: guaranteed by the caller.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            if !self.enabled {
                self.enabled = self.ring.submitter().register_enable_rings().is_ok();
            }
            if self.ring.submitter().submit().is_err() {
                // The kernel may refuse until completions are taken.
                self.done.extend(self.ring.completion());
            }
        }
    }

    /// Appends a buffer to those that the kernel may fill.
    fn provide(&mut self, buffer: u16) {
        let ring = self.memory.ring.as_ptr().cast::<BufRingEntry>();
        let place = usize::from(self.tail & (BUFFERS - 1));
        // SAFETY: `place` and `buffer` are below `BUFFERS`. The kernel reads an entry only after the tail, which is
        // stored last, has passed it. It does not read the entry of a buffer that this side holds.
        unsafe {
            let entry = &mut *ring.add(place);
            entry.set_addr(self.memory.buffers.as_ptr().add(usize::from(buffer) * STRIDE) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(ring).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // Until every request has ended, the kernel writes into the receive buffers and reads the buffers of writes.
        let submitter = self.ring.submitter();
        let ended = !self.enabled
            || submitter.submit().is_ok()
                && match submitter.register_sync_cancel(None, CancelBuilder::any()) {
                    Ok(()) => true,
                    Err(error) => error.raw_os_error() == Some(libc::ENOENT),
                };
        if ended {
            // SAFETY: neither is used again; the ring is dropped before the memory that it refers to.
            unsafe {
                ManuallyDrop::drop(&mut self.ring);
                ManuallyDrop::drop(&mut self.memory);
            }
        } else {
            std::mem::forget(std::mem::take(&mut self.flights));
        }
    }
}

fn numbered(index: u32, generation: u32) -> u64 {
    u64::from(generation & GENERATION) << 32 | u64::from(index)
}

/// Returns true if a completion belongs to this generation of the slot.
pub(crate) fn same_generation(of_request: u32, of_slot: u32) -> bool {
    of_request & GENERATION == of_slot & GENERATION
}
