//! Options of sockets.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Sets an option of a socket.
pub(super) fn set_option<T>(
    socket: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the value has.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads an option of an AF_XDP socket.
pub(super) fn option<T: Default>(socket: &OwnedFd, name: libc::c_int) -> io::Result<T> {
    let mut value = T::default();
    let mut bytes = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most as many bytes as the value has.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            name,
            std::ptr::from_mut(&mut value).cast(),
            &raw mut bytes,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}
