//! AF_XDP ports: frames of the kernel's interfaces, with one packet memory for all ports.
//!
//! Linux's `Documentation/networking/af_xdp.rst`. Each queue of an interface has a socket with four rings: fill and receive,
//! transmit and completion. A program of six instructions sends the frames of these queues to the sockets; it is attached by
//! a link that ends with the process, so that a crash leaves nothing behind.

mod bpf;
mod device;
mod ring;
mod socket;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanin_units::Bytes;

use crate::config::{Config, Copying, PortSpec};
use crate::driver::{Driver, Received};
use crate::frame::ETHERNET_BYTES;
use crate::memory::over_a_pool;
use crate::pool::{Buffer, Pool};
use bpf::Redirect;
use device::Device;
use ring::Ring;
use socket::{option, set_option};

/// The most slots of a ring.
const SLOTS_MAX: u32 = 4096;
const SLOTS_MIN: u32 = 64;
/// Time to wait for an interface or queue that an ended process still holds.
const BUSY_FOR: Duration = Duration::from_secs(2);
/// Free chunks that are not lent to the kernel, for copies of frames.
const KEPT: usize = crate::driver::BURST;
/// The fewest frames that one call to the kernel sends in copy mode.
const SENT_BY_CALL: u32 = 32;
/// The most parts of a frame: the kernel's MAX_SKB_FRAGS and one.
const PARTS_MAX: usize = 18;

/// Error while a port is opened.
#[derive(Debug, thiserror::Error)]
#[error("{interface}: {what}: {error}{}", self.advice())]
pub struct OpenError {
    /// Name of the interface.
    pub interface: String,
    /// The step that failed.
    pub what: &'static str,
    /// The system's error.
    pub error: io::Error,
}

impl OpenError {
    /// Returns true if a privilege or a feature of the kernel is missing; false if the configuration is wrong.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self.error.raw_os_error(),
            Some(
                libc::EPERM
                    | libc::EACCES
                    | libc::EOPNOTSUPP
                    | libc::EAFNOSUPPORT
                    | libc::ENOSYS
                    | libc::EPROTONOSUPPORT
            )
        )
    }

    fn advice(&self) -> &'static str {
        match self.error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                " (needs root, or the capabilities CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF)"
            }
            Some(libc::EAFNOSUPPORT) => " (the kernel has no AF_XDP: CONFIG_XDP_SOCKETS)",
            Some(libc::EBUSY) => " (another program uses this queue)",
            Some(libc::EOPNOTSUPP) => {
                " (the driver does not support this: try `attach = \"generic\"` or `copy = \"copy\"`)"
            }
            _ => "",
        }
    }
}

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
struct XdpQueue {
    receive: Ring<libc::xdp_desc>,
    transmit: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    completion: Ring<u64>,
    socket: Arc<OwnedFd>,
    /// An incomplete frame of several parts: its first part, its last so far, its bytes.
    partial: Option<(Buffer, Buffer, u32)>,
}

/// An open interface with its queues.
#[derive(Debug)]
struct XdpPort {
    device: Device,
    redirect: Redirect,
    queues: Vec<XdpQueue>,
}

/// The socket that registered the packet memory, which all others share, and its address.
#[derive(Debug)]
struct Umem {
    socket: Arc<OwnedFd>,
}

/// AF_XDP ports of one worker, over its share of the packet memory.
#[derive(Debug)]
pub struct XdpPorts {
    pool: Pool,
    shift: u32,
    ports: Vec<Option<XdpPort>>,
}

impl XdpPorts {
    /// Opens all interfaces of a configuration. Returns the ports of each worker.
    ///
    /// # Errors
    /// If a privilege, the interface or a feature of the kernel is missing.
    pub fn open(config: &Config) -> Result<Vec<Self>, OpenError> {
        let spec = &config.switch;
        let workers = config.workers();
        let no_memory =
            |error| OpenError { interface: "memory".to_owned(), what: "mapping packet memory", error };
        let pools = Pool::new(spec.memory, spec.mtu, spec.hugepages, workers).map_err(no_memory)?;
        raise_memory_lock();
        let mut all: Vec<Self> = pools
            .into_iter()
            .map(|pool| Self {
                shift: pool.chunk_bytes().ilog2(),
                pool,
                ports: config.port.iter().map(|_| None).collect(),
            })
            .collect();
        let mut umem = None;
        let mut devices = Vec::new();
        for (index, port) in config.port.iter().enumerate() {
            let name = port.interface.as_deref().unwrap_or_default();
            let fail = |what, error| OpenError { interface: name.to_owned(), what, error };
            let device = Device::open(name).map_err(|error| fail("opening the interface", error))?;
            let queues = port.queues.map_or_else(|| device.queues(), u32::from);
            devices.push((index, port, device, queues));
        }
        let sockets = |worker| -> u32 {
            devices.iter().filter(|(n, ..)| config.worker_of(*n) == worker).map(|(.., queues)| queues).sum()
        };
        let slots: Vec<u32> = (0..workers)
            .map(|worker| {
                let each = all[worker].pool.share_len() as u32 / 2 / sockets(worker).max(1);
                (1 << each.max(1).ilog2()).clamp(SLOTS_MIN, SLOTS_MAX)
            })
            .collect();
        for (index, port, device, queues) in devices {
            let worker = config.worker_of(index);
            let ports = &mut all[worker];
            let opened = ports.open_port(port, device, queues, slots[worker], spec.mtu, &mut umem)?;
            ports.ports[index] = Some(opened);
        }
        Ok(all)
    }

    fn open_port(
        &mut self,
        spec: &PortSpec,
        device: Device,
        queues: u32,
        slots: u32,
        mtu: Bytes,
        umem: &mut Option<Umem>,
    ) -> Result<XdpPort, OpenError> {
        let name = spec.interface.as_deref().unwrap_or_default();
        let fail = |what| move |error| OpenError { interface: name.to_owned(), what, error };
        let largest = device.mtu().map_err(fail("reading its MTU"))?.max(mtu.get() as u32);
        let frags = largest + ETHERNET_BYTES as u32 + 4 > self.pool.room();
        let redirect = unless_busy(|| Redirect::attach(device.index, queues, spec.attach, frags))
            .map_err(fail("attaching the redirect program"))?;
        let mut opened = Vec::new();
        for queue in 0..queues {
            let mut queue_opened = self
                .open_queue(device.index, queue, slots, spec.copy, umem)
                .map_err(fail("opening an AF_XDP socket"))?;
            queue_opened.refill(&mut self.pool, self.shift, slots as usize);
            redirect.connect(queue, &queue_opened.socket).map_err(fail("connecting the socket"))?;
            opened.push(queue_opened);
        }
        Ok(XdpPort { device, redirect, queues: opened })
    }

    fn open_queue(
        &self,
        interface: u32,
        queue: u32,
        slots: u32,
        copy: Copying,
        umem: &mut Option<Umem>,
    ) -> io::Result<XdpQueue> {
        // SAFETY: opens a descriptor and touches no memory.
        let socket = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened for us.
        let socket = Arc::new(unsafe { OwnedFd::from_raw_fd(socket) });
        if umem.is_none() {
            let registration = libc::xdp_umem_reg {
                addr: self.pool.base() as u64,
                len: self.pool.bytes() as u64,
                chunk_size: self.pool.chunk_bytes(),
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
        let queue_opened = XdpQueue {
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
        Ok(queue_opened)
    }

    /// The packet memory.
    pub const fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns true if the redirect of a port runs in its driver.
    pub fn is_native(&self, port: usize) -> Option<bool> {
        self.ports[port].as_ref().map(|port| port.redirect.is_native)
    }
}

/// Repeats an attempt while it fails with EBUSY, for at most [`BUSY_FOR`].
fn unless_busy<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
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

/// Raises the limit on locked memory, for packet memory, if permitted.
fn raise_memory_lock() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: reads a plain value. If it is refused, registering the memory fails.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
}

impl XdpQueue {
    /// Lends free chunks to the kernel.
    #[inline]
    fn refill(&mut self, pool: &mut Pool, shift: u32, most: usize) {
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

    fn receive(&mut self, pool: &mut Pool, shift: u32, frames_max: usize, into: &mut Vec<Received<Buffer>>) {
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

    fn transmit(&mut self, pool: &Pool, frames: &[Received<Buffer>]) -> usize {
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
    fn flush(&mut self, pool: &mut Pool, shift: u32, slots: usize) {
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
                // Frames that it could not send (ENOBUFS, EBUSY, ENETDOWN) stay in the ring for the next round.
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

impl Driver for XdpPorts {
    type Handle = Buffer;

    fn ports_len(&self) -> usize {
        self.ports.len()
    }

    fn receive(&mut self, port: usize, frames_max: usize, into: &mut Vec<Received<Buffer>>) {
        let Some(port) = &mut self.ports[port] else { return };
        let start = into.len();
        for queue in &mut port.queues {
            let left = frames_max - (into.len() - start);
            queue.receive(&mut self.pool, self.shift, left, into);
        }
        for frame in &into[start..] {
            self.pool.prefetch(frame.handle);
        }
    }

    fn transmit(&mut self, port: usize, frames: &[Received<Buffer>]) -> usize {
        // One queue for all frames keeps their order.
        let Some(queue) = self.ports[port].as_mut().and_then(|port| port.queues.first_mut()) else {
            return 0;
        };
        queue.transmit(&self.pool, frames)
    }

    fn flush(&mut self, port: usize) {
        let Some(port) = &mut self.ports[port] else { return };
        for queue in &mut port.queues {
            queue.flush(&mut self.pool, self.shift, SLOTS_MAX as usize);
        }
    }

    fn is_up(&mut self, port: usize) -> bool {
        self.ports[port].as_mut().is_some_and(|port| port.device.is_up())
    }

    fn missed(&self, port: usize) -> u64 {
        let Some(port) = &self.ports[port] else { return 0 };
        port.queues
            .iter()
            .filter_map(|queue| option::<Statistics>(&queue.socket, libc::XDP_STATISTICS).ok())
            .map(|seen| seen.dropped + seen.invalid + seen.ring_full)
            .sum()
    }

    fn has_unsent(&self, port: usize) -> bool {
        let Some(port) = &self.ports[port] else { return false };
        port.queues.iter().any(|queue| queue.transmit.waiting() > 0)
    }

    fn wait(&mut self, timeout: Duration, wake: RawFd) {
        let mut files: Vec<libc::pollfd> = self
            .ports
            .iter()
            .flatten()
            .flat_map(|port| &port.queues)
            .map(|queue| queue.socket.as_raw_fd())
            .chain([wake])
            .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
            .collect();
        crate::sys::poll(&mut files, timeout);
    }

    over_a_pool!();
}
