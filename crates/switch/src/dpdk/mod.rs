//! DPDK ports: any ethdev, through a thin C shim over the inline functions. Built with the cargo feature `dpdk` only.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;

use crate::config::Config;
use crate::driver::{Driver, Received};

/// Slots of a device's rings, unless the device limits them.
const SLOTS: u16 = 2048;
/// Flushes between two counts of the free mbufs, and the number of free mbufs below which every flush counts.
const COUNT_EVERY: u32 = 64;
const ROOM_LOW: usize = 1024;
/// The most frames of one call to the shim.
const CALL_MAX: usize = 64;

/// `struct rte_mbuf` and `struct rte_mempool`, opaque to Rust.
type Mbuf = c_void;
type Mempool = c_void;

// SAFETY: the signatures are those of shim.c, which is compiled with this file.
unsafe extern "C" {
    fn fanin_dpdk_start(count: c_int, arguments: *mut *mut c_char) -> c_int;
    fn fanin_dpdk_port(name: *const c_char, port: *mut u16) -> c_int;
    fn fanin_dpdk_pool(name: *const c_char, frames: c_uint, room: u16) -> *mut Mempool;
    fn fanin_dpdk_open(port: u16, pool: *mut Mempool, slots: u16, mtu: u16) -> c_int;
    fn fanin_dpdk_close(port: u16);
    fn fanin_dpdk_thread() -> c_int;
    fn fanin_dpdk_receive(port: u16, frames: *mut Received<DpdkFrame>, count: u16) -> u16;
    fn fanin_dpdk_transmit(port: u16, frames: *const Received<DpdkFrame>, count: u16) -> u16;
    fn fanin_dpdk_free(mbuf: *mut Mbuf);
    fn fanin_dpdk_make(pool: *mut Mempool, bytes: *const u8, count: u32) -> *mut Mbuf;
    fn fanin_dpdk_copy(mbuf: *const Mbuf, bytes: *mut u8);
    fn fanin_dpdk_grow(mbuf: *mut Mbuf, bytes: u16) -> *mut c_void;
    fn fanin_dpdk_cut(mbuf: *mut Mbuf, bytes: u16) -> *mut c_void;
    fn fanin_dpdk_room(pool: *const Mempool) -> c_uint;
    fn fanin_dpdk_is_up(port: u16) -> c_int;
    fn fanin_dpdk_missed(port: u16) -> u64;
}

/// Error of the start of DPDK.
#[derive(Debug, thiserror::Error)]
#[error("{device}: {action}: {error}")]
pub struct DpdkError {
    /// The device, or `dpdk` for the environment.
    pub device: String,
    /// The step that failed.
    pub action: &'static str,
    /// The error that DPDK returned.
    pub error: std::io::Error,
}

/// A frame in an mbuf, with the address and length of its head: `struct fanin_handle` of the shim; [`Received`] is `struct fanin_frame`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DpdkFrame {
    mbuf: *mut Mbuf,
    data: NonNull<u8>,
    head: u32,
}

impl Default for DpdkFrame {
    fn default() -> Self {
        Self { mbuf: std::ptr::null_mut(), data: NonNull::dangling(), head: 0 }
    }
}

// SAFETY: any thread may use an mbuf, and only the holder of the handle uses it.
unsafe impl Send for DpdkFrame {}

impl DpdkFrame {
    fn new(mbuf: *mut Mbuf, data: *mut u8, head: u32) -> Option<Self> {
        Some(Self { mbuf: NonNull::new(mbuf)?.as_ptr(), data: NonNull::new(data)?, head })
    }
}

/// DPDK ports of one worker.
#[derive(Debug)]
pub struct DpdkPorts {
    pool: *mut Mempool,
    frames: usize,
    room: usize,
    flushes: u32,
    ports: Vec<Option<u16>>,
    registered: bool,
}

// SAFETY: any thread may use the mempool; everything else belongs to this worker.
unsafe impl Send for DpdkPorts {}

fn check(device: &str, action: &'static str, code: c_int) -> Result<(), DpdkError> {
    if code == 0 {
        return Ok(());
    }
    Err(DpdkError { device: device.to_owned(), action, error: std::io::Error::from_raw_os_error(code) })
}

fn text(text: &str) -> Result<CString, DpdkError> {
    CString::new(text).map_err(|error| DpdkError {
        device: text.replace('\0', " "),
        action: "reading its name",
        error: error.into(),
    })
}

impl DpdkPorts {
    /// Starts DPDK with the arguments of the configuration, and opens its devices. Returns the ports of each worker.
    ///
    /// # Errors
    /// If DPDK does not start, or a device cannot be opened.
    pub fn open(config: &Config) -> Result<Vec<Self>, DpdkError> {
        let words = std::iter::once("fanin").chain(config.dpdk.arguments.iter().map(String::as_str));
        let words = words.map(text).collect::<Result<Vec<_>, _>>()?;
        let mut arguments: Vec<*mut c_char> = words.iter().map(|word| word.as_ptr().cast_mut()).collect();
        // SAFETY: `arguments` holds that many terminated strings; DPDK does not write to them.
        let code = unsafe { fanin_dpdk_start(arguments.len() as c_int, arguments.as_mut_ptr()) };
        check("dpdk", "starting it", code)?;
        // DPDK keeps pointers into its arguments.
        std::mem::forget(words);
        let mtu = config.switch.mtu.get() as u16;
        let room = if mtu <= 1500 { 2048 } else { mtu + 128 };
        let frames = (config.switch.memory.get() / u64::from(room)) as usize;
        let name = text("fanin")?;
        // SAFETY: a NUL-terminated string.
        let pool = unsafe { fanin_dpdk_pool(name.as_ptr(), frames as c_uint, room) };
        if pool.is_null() {
            return check("dpdk", "making its packet memory", libc::ENOMEM).map(|()| Vec::new());
        }
        let ports = config.port.len();
        let mut all: Vec<Self> = (0..config.workers())
            .map(|_| Self {
                pool,
                frames,
                room: frames,
                flushes: 0,
                ports: vec![None; ports],
                registered: false,
            })
            .collect();
        for (index, spec) in config.port.iter().enumerate() {
            let device = spec.dpdk.as_deref().unwrap_or_default();
            let name = text(device)?;
            let mut port = 0;
            // SAFETY: a NUL-terminated string, and a number to write.
            check(device, "finding it", unsafe { fanin_dpdk_port(name.as_ptr(), &raw mut port) })?;
            // SAFETY: a port that exists and the pool just made.
            check(device, "opening it", unsafe { fanin_dpdk_open(port, pool, SLOTS, mtu) })?;
            all[config.worker_of(index)].ports[index] = Some(port);
        }
        Ok(all)
    }
}

impl Drop for DpdkPorts {
    fn drop(&mut self) {
        for port in self.ports.iter().flatten() {
            // SAFETY: an open port without other users.
            unsafe { fanin_dpdk_close(*port) };
        }
    }
}

impl Driver for DpdkPorts {
    type Handle = DpdkFrame;

    fn ports_len(&self) -> usize {
        self.ports.len()
    }

    fn receive(&mut self, port: usize, frames_max: usize, into: &mut Vec<Received<DpdkFrame>>) {
        let Some(port) = self.ports[port] else { return };
        if !self.registered {
            // SAFETY: has no argument. Without room for another thread, this one has no cache.
            unsafe { fanin_dpdk_thread() };
            self.registered = true;
        }
        let frames_max = frames_max.min(CALL_MAX);
        into.reserve(frames_max);
        let room = into.spare_capacity_mut().as_mut_ptr().cast();
        // SAFETY: `into` has room for that many frames, and the shim initializes as many as it returns.
        let received = unsafe {
            let received = usize::from(fanin_dpdk_receive(port, room, frames_max as u16));
            into.set_len(into.len() + received);
            received
        };
        self.room = self.room.saturating_sub(received);
    }

    fn transmit(&mut self, port: usize, frames: &[Received<DpdkFrame>]) -> usize {
        let Some(port) = self.ports[port] else { return 0 };
        let mut taken = 0;
        for frames in frames.chunks(CALL_MAX) {
            // SAFETY: the slice has this number of frames, which we own; the device owns those that it takes.
            let now = unsafe { fanin_dpdk_transmit(port, frames.as_ptr(), frames.len() as u16) };
            taken += usize::from(now);
            if usize::from(now) < frames.len() {
                break;
            }
        }
        taken
    }

    fn flush(&mut self, _: usize) {
        // DPDK counts the caches of all possible cores, which is too slow for every round. In between, frames taken and
        // freed here are counted, but not those that devices return.
        self.flushes = self.flushes.wrapping_add(1);
        if self.room < ROOM_LOW || self.flushes.is_multiple_of(COUNT_EVERY) {
            // SAFETY: the pool lives as long as DPDK.
            self.room = unsafe { fanin_dpdk_room(self.pool) } as usize;
        }
    }

    #[inline]
    fn head(&self, handle: DpdkFrame) -> &[u8] {
        // SAFETY: the first part of an mbuf that we hold.
        unsafe { std::slice::from_raw_parts(handle.data.as_ptr(), handle.head as usize) }
    }

    #[inline]
    fn head_mut(&mut self, handle: DpdkFrame) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(handle.data.as_ptr(), handle.head as usize) }
    }

    fn grow_front(&mut self, handle: &mut DpdkFrame, bytes: u16) -> bool {
        // SAFETY: an mbuf that we hold.
        let data = unsafe { fanin_dpdk_grow(handle.mbuf, bytes) };
        let grown = DpdkFrame::new(handle.mbuf, data.cast(), handle.head + u32::from(bytes));
        *handle = grown.unwrap_or(*handle);
        grown.is_some()
    }

    fn cut_front(&mut self, handle: &mut DpdkFrame, bytes: u16) {
        // SAFETY: an mbuf that we hold; the shim refuses a cut beyond its bytes.
        let data = unsafe { fanin_dpdk_cut(handle.mbuf, bytes) };
        *handle = DpdkFrame::new(handle.mbuf, data.cast(), handle.head.saturating_sub(bytes.into()))
            .expect("a frame is longer than the cut");
    }

    fn make(&mut self, frame: &[u8]) -> Option<DpdkFrame> {
        // SAFETY: the slice holds that many bytes.
        let mbuf = unsafe { fanin_dpdk_make(self.pool, frame.as_ptr(), frame.len() as u32) };
        let mbuf = NonNull::new(mbuf)?.as_ptr();
        self.room = self.room.saturating_sub(1);
        // SAFETY: an mbuf that we hold; a cut of 0 bytes returns its start.
        let data = unsafe { fanin_dpdk_cut(mbuf, 0) };
        DpdkFrame::new(mbuf, data.cast(), frame.len() as u32)
    }

    fn copy_out(&self, frame: Received<DpdkFrame>, into: &mut Vec<u8>) {
        let start = into.len();
        into.resize(start + frame.bytes as usize, 0);
        // SAFETY: room for all bytes of the mbuf's parts, whose sum is the frame's length.
        unsafe { fanin_dpdk_copy(frame.handle.mbuf, into[start..].as_mut_ptr()) };
    }

    fn free(&mut self, frame: Received<DpdkFrame>) {
        // SAFETY: an mbuf that we hold, and no longer.
        unsafe { fanin_dpdk_free(frame.handle.mbuf) };
        self.room += 1;
    }

    fn room(&self) -> usize {
        self.room
    }

    fn capacity(&self) -> usize {
        self.frames
    }

    fn poll_stray(&mut self, _: usize) -> Option<DpdkFrame> {
        // All workers share one pool, so no buffer strays.
        None
    }

    fn handle_stray(&mut self, _: DpdkFrame) {}

    fn is_up(&mut self, port: usize) -> bool {
        // SAFETY: a port that is open.
        self.ports[port].is_some_and(|port| unsafe { fanin_dpdk_is_up(port) } != 0)
    }

    fn missed(&self, port: usize) -> u64 {
        // SAFETY: a port that is open.
        self.ports[port].map_or(0, |port| unsafe { fanin_dpdk_missed(port) })
    }
}
