//! One queue of an interface: an AF_XDP socket with its four rings.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ring::Ring;
use super::socket::{option, set_option};
use crate::config::Copying;
use crate::driver::Received;
use crate::pool::{Buffer, Pool};

/// The most slots of a ring.
pub(super) const SLOTS_MAX: u32 = 4096;
/// The fewest slots of a ring.
pub(super) const SLOTS_MIN: u32 = 64;
/// Longest wait for an interface or queue that an ended process still holds.
const BUSY_FOR: Duration = Duration::from_secs(2);
/// Free chunks that are not lent to the kernel, for copies of frames.
const KEPT: usize = crate::driver::BURST;
/// The fewest frames that one call to the kernel sends in copy mode.
const SENT_BY_CALL: u32 = 32;
/// The most parts of a frame: the kernel's MAX_SKB_FRAGS and one.
const PARTS_MAX: usize = 18;

/// `struct xdp_ring_offset`, with a default.
#[repr(C)]
#[derive(Default)]
struct RingOffset([u64; 4]);

/// `struct xdp_mmap_offsets`: receive, transmit, fill, completion.
#[repr(C)]
#[derive(Default)]
struct Offsets([RingOffset; 4]);

impl RingOffset {
    const fn get(&self) -> libc::xdp_ring_offset {
        let [producer, consumer, desc, flags] = self.0;
        libc::xdp_ring_offset { producer, consumer, desc, flags }
    }
}

/// `struct xdp_statistics` of linux/if_xdp.h.
#[repr(C)]
#[derive(Default)]
struct Statistics {
    dropped: u64,
    invalid: u64,
    _tx_invalid: u64,
    ring_full: u64,
    fill_empty: u64,
    _tx_empty: u64,
}

/// One queue of an interface.
#[derive(Debug)]
pub(super) struct XdpQueue {
    receive: Ring<libc::xdp_desc>,
    pub(super) transmit: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    pub(super) socket: Arc<OwnedFd>,
    /// An incomplete frame of several parts: its first part, its last so far, its bytes.
    partial: Option<(Buffer, Buffer, u32)>,
}

/// The socket that registered the packet memory, which others share.
#[derive(Debug)]
pub(super) struct Umem {
    socket: Arc<OwnedFd>,
}

impl Umem {
    /// Returns the memory of an open queue, for other queues to share.
    pub(super) fn of(queue: &XdpQueue) -> Self {
        Self { socket: Arc::clone(&queue.socket) }
    }
}

/// The packet memory as the kernel registers it.
#[derive(Debug, Clone, Copy)]
pub(super) struct UmemArea {
    address: u64,
    bytes: u64,
    chunk_bytes: u32,
    /// The largest frame in one chunk.
    pub(super) room: u32,
}

impl UmemArea {
    pub(super) fn of(pool: &Pool) -> Self {
        Self {
            address: pool.base() as u64,
            bytes: pool.bytes() as u64,
            chunk_bytes: pool.chunk_bytes(),
            room: pool.room(),
        }
    }
}

/// The queue of an interface to open.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueAddress {
    pub(super) interface: u32,
    pub(super) queue: u32,
    pub(super) slots: u32,
    pub(super) copy: Copying,
}

impl XdpQueue {
    /// Opens the socket of a queue. The first one registers the packet memory, and the others share it with `umem`.
    pub(super) fn open(at: QueueAddress, area: UmemArea, umem: &mut Option<Umem>) -> io::Result<Self> {
        let QueueAddress { interface, queue, slots, copy } = at;
        // SAFETY: opens a descriptor and touches no memory.
        let socket = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened for us.
        let socket = Arc::new(unsafe { OwnedFd::from_raw_fd(socket) });
        if umem.is_none() {
            let registration = libc::xdp_umem_reg {
                addr: area.address,
                len: area.bytes,
                chunk_size: area.chunk_bytes,
                headroom: 0,
                flags: 0,
                tx_metadata_len: 0,
            };
            set_option(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)?;
        }
        for ring in
            [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING]
        {
            set_option(&socket, libc::SOL_XDP, ring, &slots)?;
        }
        let Offsets([receive, transmit, fill, completion]) = option(&socket, libc::XDP_MMAP_OFFSETS)?;
        let opened = Self {
            receive: Ring::map(&socket, libc::XDP_PGOFF_RX_RING, &receive.get(), slots)?,
            transmit: Ring::map(&socket, libc::XDP_PGOFF_TX_RING, &transmit.get(), slots)?,
            fill: Ring::map(&socket, libc::XDP_UMEM_PGOFF_FILL_RING as i64, &fill.get(), slots)?,
            completion: Ring::map(
                &socket,
                libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64,
                &completion.get(),
                slots,
            )?,
            socket: Arc::clone(&socket),
            partial: None,
        };
        let mut address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: 0,
            sxdp_ifindex: interface,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        match umem {
            Some(umem) => {
                // The flags of the first socket apply to all.
                address.sxdp_flags = libc::XDP_SHARED_UMEM;
                address.sxdp_shared_umem_fd = umem.socket.as_raw_fd() as u32;
            }
            None => {
                address.sxdp_flags = libc::XDP_USE_NEED_WAKEUP
                    | libc::XDP_USE_SG
                    | match copy {
                        Copying::Auto => 0,
                        Copying::Copy => libc::XDP_COPY,
                        Copying::ZeroCopy => libc::XDP_ZEROCOPY,
                    };
            }
        }
        bind(&socket, &address)?;
        if umem.is_none() {
            *umem = Some(Umem { socket });
        }
        Ok(opened)
    }

    /// Returns the number of frames that the kernel lost before the switch received them.
    pub(super) fn missed(&self) -> u64 {
        let seen = option::<Statistics>(&self.socket, libc::XDP_STATISTICS).unwrap_or_default();
        seen.dropped + seen.invalid + seen.ring_full
    }

    /// Takes back the kernel's chunks in the rings of a queue with a deleted interface. Returns the number of lost
    /// chunks, which the kernel had taken out of its rings.
    pub(super) fn reclaim(mut self, pool: &mut Pool, shift: u32) -> u32 {
        let mut lent = self.fill.position().wrapping_add(self.transmit.position());
        lent = lent.wrapping_sub(self.receive.position()).wrapping_sub(self.completion.position());
        let mut give = |address: u64| {
            pool.give_chunk((address >> shift) as u32);
            lent = lent.wrapping_sub(1);
        };
        self.fill.unconsumed().for_each(&mut give);
        self.transmit.unconsumed().map(|part| part.addr).for_each(&mut give);
        while let Some(address) = self.completion.take() {
            give(address);
        }
        while let Some(part) = self.receive.take() {
            give(part.addr);
        }
        if let Some((first, _, bytes)) = self.partial.take() {
            pool.free(first, bytes);
        }
        lent
    }

    /// Lends free chunks to the kernel.
    #[inline]
    pub(super) fn refill(&mut self, pool: &mut Pool, shift: u32, most: usize) {
        let room = (self.fill.room() as usize).min(most).min(pool.free_len().saturating_sub(KEPT));
        if room == 0 {
            return;
        }
        for _ in 0..room {
            let Some(chunk) = pool.take_chunk() else { break };
            self.fill.put(u64::from(chunk) << shift);
        }
        self.fill.submit();
    }

    pub(super) fn receive(
        &mut self,
        pool: &mut Pool,
        shift: u32,
        frames_max: usize,
        into: &mut Vec<Received<Buffer>>,
    ) {
        let end = into.len() + frames_max;
        let mut any = false;
        while into.len() < end
            && let Some(part) = self.receive.take()
        {
            any = true;
            let offset = part.addr & ((1 << shift) - 1);
            let buffer = Buffer::new((part.addr >> shift) as u32, offset as u16, part.len as u16);
            let (first, bytes) = match self.partial.take() {
                None => (buffer, part.len),
                Some((first, last, bytes)) => {
                    pool.set_next(last, buffer);
                    (first, bytes + part.len)
                }
            };
            if part.options & libc::XDP_PKT_CONTD != 0 {
                self.partial = Some((first, buffer, bytes));
            } else {
                into.push(Received { handle: first, bytes });
            }
        }
        if any {
            self.receive.release();
        }
    }

    pub(super) fn transmit(&mut self, pool: &Pool, frames: &[Received<Buffer>]) -> usize {
        let mut taken = 0;
        for frame in frames {
            if frame.bytes == frame.handle.len() {
                if self.transmit.room() == 0 {
                    break;
                }
                self.transmit.put(descriptor(pool, frame.handle, false));
            } else {
                let mut parts = [Buffer::default(); PARTS_MAX];
                let mut len = 0;
                for part in pool.parts(frame.handle, frame.bytes) {
                    assert!(len < PARTS_MAX, "a frame with more parts than the kernel accepts");
                    parts[len] = part;
                    len += 1;
                }
                if (self.transmit.room() as usize) < len {
                    break;
                }
                for (place, &part) in parts[..len].iter().enumerate() {
                    self.transmit.put(descriptor(pool, part, place + 1 < len));
                }
            }
            taken += 1;
        }
        if taken > 0 {
            self.transmit.submit();
        }
        taken
    }

    /// Starts transmission, takes back sent chunks, and lends free chunks to the kernel.
    #[inline]
    pub(super) fn flush(&mut self, pool: &mut Pool, shift: u32, slots: usize) {
        let waiting = self.transmit.waiting();
        if waiting > 0 && self.transmit.needs_wakeup() {
            self.kick(waiting);
        }
        let mut any = false;
        while let Some(address) = self.completion.take() {
            pool.give_chunk((address >> shift) as u32);
            any = true;
        }
        if any {
            self.completion.release();
        }
        self.refill(pool, shift, slots);
        if self.fill.needs_wakeup() {
            // SAFETY: receives nothing; it only wakes the driver.
            unsafe {
                libc::recvfrom(
                    self.socket.as_raw_fd(),
                    std::ptr::null_mut(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                )
            };
        }
    }

    #[cold]
    fn kick(&self, waiting: u32) {
        // In copy mode the kernel sends a few frames a call and returns EAGAIN while there are more.
        for _ in 0..=waiting / SENT_BY_CALL {
            // SAFETY: passes no data; it makes the kernel read the ring.
            let result = unsafe {
                libc::sendto(
                    self.socket.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null(),
                    0,
                )
            };
            if result >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EAGAIN) {
                // Frames that the kernel could not send (ENOBUFS, EBUSY, ENETDOWN) stay in the ring for the next round.
                break;
            }
        }
    }
}

#[inline]
fn descriptor(pool: &Pool, part: Buffer, goes_on: bool) -> libc::xdp_desc {
    libc::xdp_desc {
        addr: pool.offset_of(part),
        len: part.len(),
        options: if goes_on { libc::XDP_PKT_CONTD } else { 0 },
    }
}

/// Repeats an attempt while it fails with EBUSY, for at most [`BUSY_FOR`].
pub(super) fn unless_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && began.elapsed() <= BUSY_FOR => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

fn bind(socket: &OwnedFd, address: &libc::sockaddr_xdp) -> io::Result<()> {
    unless_busy(|| {
        // SAFETY: the kernel reads an address of the size given.
        let result = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                std::ptr::from_ref(address).cast(),
                size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    })
}
