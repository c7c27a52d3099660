//! Integer socket options by number, for options that rustix has no name for.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

pub(crate) const TCP_WINDOW_CLAMP: (i32, i32) = (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP);
pub(crate) const BUSY_POLL: (i32, i32) = (libc::SOL_SOCKET, libc::SO_BUSY_POLL);
/// An option of Linux 6.15 and later, as the next two (net/ipv4/tcp.c). Most installed headers lack the numbers.
pub(crate) const TCP_RTO_MIN_US: (i32, i32) = (libc::IPPROTO_TCP, 45);
pub(crate) const TCP_RTO_MAX_MS: (i32, i32) = (libc::IPPROTO_TCP, 44);
pub(crate) const TCP_DELACK_MAX_US: (i32, i32) = (libc::IPPROTO_TCP, 46);
pub(crate) const IP_BIND_ADDRESS_NO_PORT: (i32, i32) = (libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT);
pub(crate) const TCP_MAXSEG: (i32, i32) = (libc::IPPROTO_TCP, libc::TCP_MAXSEG);

/// Sets an option.
pub(crate) fn set(fd: impl AsFd, (level, name): (i32, i32), value: u32) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as it is borrowed. The kernel only reads the four bytes of
    // `value`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads TCP_INFO into `info`; returns the number of bytes that this kernel fills.
pub(crate) fn tcp_info(fd: impl AsFd, info: &mut [u8; TCP_INFO_BYTES]) -> io::Result<usize> {
    let mut size = TCP_INFO_BYTES as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as it is borrowed. The kernel writes at most `size` bytes, the size
    // of `info`, and any bytes are valid there.
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    if result == 0 { Ok(size as usize) } else { Err(io::Error::last_os_error()) }
}

/// Bytes of `struct tcp_info` that are read: up to `tcpi_total_rto_time` (Linux 6.7).
pub(crate) const TCP_INFO_BYTES: usize = 248;

/// Reads an option.
#[cfg(test)]
pub(crate) fn value(fd: impl AsFd, (level, name): (i32, i32)) -> io::Result<u32> {
    let mut value = 0u32;
    let mut size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: as above; the kernel writes at most `size` bytes, which is the size of `value`.
    let result = unsafe {
        libc::getsockopt(fd.as_fd().as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut size)
    };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}
