//! The redirect program: six instructions, loaded with bpf(2) and attached by a link that ends with its file descriptor.

use std::ffi::c_long;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::config::Attach;

// linux/bpf.h
const MAP_CREATE: c_long = 0;
const MAP_UPDATE_ELEM: c_long = 2;
const PROG_LOAD: c_long = 5;
const LINK_CREATE: c_long = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;
const PROG_HAS_FRAGS: u32 = 1 << 5;
const FLAG_GENERIC: u32 = 1 << 1;
const FLAG_NATIVE: u32 = 1 << 2;
const HELPER_REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;
/// Offset of `rx_queue_index` in `struct xdp_md`.
const RX_QUEUE_INDEX: i16 = 16;

/// The fields of `union bpf_attr` for the calls below; the kernel accepts a shorter one than its own.
#[repr(C)]
#[derive(Default)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgLoad {
    prog_type: u32,
    instructions_len: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// One instruction: opcode, registers (destination in the low half), offset, immediate.
#[repr(C)]
struct Instruction(u8, u8, i16, i32);

fn bpf<T>(command: c_long, attributes: &T) -> io::Result<libc::c_int> {
    // SAFETY: the attributes are plain values of the size given, and the pointers in them live until the call returns.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>() as libc::c_ulong)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

fn bpf_file<T>(command: c_long, attributes: &T) -> io::Result<OwnedFd> {
    let file = bpf(command, attributes)?;
    // SAFETY: the kernel has just opened this descriptor, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

/// The program on one interface, and its map from queues to sockets. The kernel removes both when this is dropped or the
/// process ends, even by a crash.
#[derive(Debug)]
pub(super) struct Redirect {
    map: OwnedFd,
    _link: OwnedFd,
    pub(super) is_native: bool,
}

impl Redirect {
    pub(super) fn attach(interface: u32, queues: u32, wanted: Attach, frags: bool) -> io::Result<Self> {
        let map = bpf_file(
            MAP_CREATE,
            &MapCreate {
                map_type: MAP_TYPE_XSKMAP,
                key_size: 4,
                value_size: 4,
                max_entries: queues,
                ..MapCreate::default()
            },
        )?;
        // Frames of queues without a socket pass to the kernel.
        let program = [
            Instruction(0x61, 0x12, RX_QUEUE_INDEX, 0), // r2 = *(u32 *)(r1 + RX_QUEUE_INDEX)
            Instruction(0x18, 0x11, 0, map.as_raw_fd()), // r1 = map
            Instruction(0, 0, 0, 0),                    //      (second half)
            Instruction(0xb7, 0x03, 0, XDP_PASS),       // r3 = XDP_PASS
            Instruction(0x85, 0x00, 0, HELPER_REDIRECT_MAP), // r0 = bpf_redirect_map(r1, r2, r3)
            Instruction(0x95, 0x00, 0, 0),              // return r0
        ];
        let mut name = [0; 16];
        name[..12].copy_from_slice(b"fanin_switch");
        let load = |flags: u32| {
            bpf_file(
                PROG_LOAD,
                &ProgLoad {
                    prog_type: PROG_TYPE_XDP,
                    instructions_len: program.len() as u32,
                    instructions: program.as_ptr() as u64,
                    license: c"Apache-2.0".as_ptr() as u64,
                    flags,
                    name,
                    attach_type: ATTACH_TYPE_XDP,
                    ..ProgLoad::default()
                },
            )
        };
        let program = load(if frags { PROG_HAS_FRAGS } else { 0 })?;
        let link = |flags: u32| {
            let program = program.as_raw_fd() as u32;
            bpf_file(LINK_CREATE, &LinkCreate { program, interface, attach_type: ATTACH_TYPE_XDP, flags })
        };
        let (link, is_native) = match wanted {
            Attach::Native => (link(FLAG_NATIVE)?, true),
            Attach::Generic => (link(FLAG_GENERIC)?, false),
            Attach::Auto => match link(FLAG_NATIVE) {
                Ok(link) => (link, true),
                // Another program on the interface excludes generic mode too.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Err(error),
                Err(_) => (link(FLAG_GENERIC)?, false),
            },
        };
        Ok(Self { map, _link: link, is_native })
    }

    /// Redirects the frames of a queue to this socket.
    pub(super) fn connect(&self, queue: u32, socket: &OwnedFd) -> io::Result<()> {
        let value = socket.as_raw_fd();
        let update = MapUpdate {
            map: self.map.as_raw_fd() as u32,
            key: std::ptr::from_ref(&queue) as u64,
            value: std::ptr::from_ref(&value) as u64,
            ..MapUpdate::default()
        };
        bpf(MAP_UPDATE_ELEM, &update).map(drop)
    }
}
