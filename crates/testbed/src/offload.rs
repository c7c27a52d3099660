//! A device's transmit checksum offload, which must be off at every source of a software switch.
//!
//! On veth, packets otherwise travel as super-frames of 64 kB with incomplete checksums. Disabling the checksum offload
//! also disables segmentation offload (`netdev_fix_features` in the kernel).

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// `struct ethtool_value` of `linux/ethtool.h`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// `ETHTOOL_STXCSUM` of `linux/ethtool.h`.
const SET_TRANSMIT_CHECKSUM: u32 = 0x17;
/// `SIOCETHTOOL` of `linux/sockios.h`.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Disables the offload for a device of the calling thread's namespace.
pub(crate) fn transmit_checksum_off(device: &str) -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut value = EthtoolValue { command: SET_TRANSMIT_CHECKSUM, data: 0 };
    // SAFETY: ifreq is plain data, for which all zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if device.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a device's name has at most 15 bytes"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the kernel reads the name and the eight bytes of `value`, both of which outlive the call.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
